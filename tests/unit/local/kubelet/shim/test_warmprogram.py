"""Which calls of Python a fork can stand in for, and with which environment its parent is started."""

from __future__ import annotations

import pytest

from paddlecloud.local.kubelet.shim.warmprogram import CODE, MODULE, SCRIPT, begins_with, parent_environment, parse

CALLS: dict[str, tuple[str, str, tuple[str, ...], bool, bool] | None] = {
    "python train.py": (SCRIPT, "train.py", (), False, True),
    "/opt/bin/python3.11 -u train.py -u x": (SCRIPT, "train.py", ("-u", "x"), True, True),
    "python -B -u -m a.b --flag": (MODULE, "a.b", ("--flag",), True, False),
    "python -uBma.b": (MODULE, "a.b", (), True, False),
    "python -c code x": (CODE, "code", ("x",), False, True),
    "python": None,
    "python -": None,
    "python -u": None,
    "python -c": None,
    "python -O train.py": None,
    "python -uO train.py": None,
    "python -X dev train.py": None,
    "python -- train.py": None,
    "python --version": None,
    "pythonista train.py": None,
    "sh train.py": None,
}


@pytest.mark.parametrize("call", CALLS)
def test_a_call_is_taken_apart_or_left_to_exec(call: str) -> None:
    program = parse(call.split(), {})
    assert (program and program[1:]) == CALLS[call]


@pytest.mark.parametrize(
    ("value", "unbuffered"), [("1", True), ("x", True), ("0", False), ("", False), ("²", True), ("1" * 5_000, True)]
)
def test_a_variable_switches_as_it_does_for_the_interpreter(value: str, unbuffered: bool) -> None:
    program = parse(["python", "x.py"], {"PYTHONUNBUFFERED": value})
    assert program is not None
    assert program.unbuffered is unbuffered


def test_an_image_that_ignores_a_warning_starts_warm() -> None:
    assert parse(["python", "x.py"], {"PYTHONWARNINGS": "ignore:words"}) is not None


@pytest.mark.parametrize("name", ["PYTHONHASHSEED", "PYTHONINSPECT", "PYTHONOPTIMIZE", "PYTHONNEWERTHANTHIS"])
def test_a_variable_for_the_interpreter_leaves_the_call_to_exec(name: str) -> None:
    assert parse(["python", "x.py"], {name: "1"}) is None


BEGINNINGS = {
    "import paddle": True,
    "from paddle import nn": True,
    "import paddle.nn as nn": True,
    '"""About."""\nfrom __future__ import annotations\nimport os, sys\nimport numpy\nimport paddle': True,
    "import os; os.environ['FLAGS_x'] = '1'; import paddle": False,
    "try:\n    import paddle\nexcept ImportError:\n    pass": False,
    "def f():\n    import paddle": False,
    "import yaml\nimport paddle": False,
    "from . import paddle": False,
    "import paddlenlp": False,
    "import os": False,
    "import paddle\nprint(": False,
    "": False,
}


@pytest.mark.parametrize("source", BEGINNINGS)
def test_a_program_begins_with_the_modules_if_nothing_comes_before_their_import(source: str) -> None:
    known = {"os", "sys", "__future__", "numpy"}
    assert begins_with(source, ["paddle"], inert=known.__contains__) is BEGINNINGS[source]


IMAGE = {
    "PATH": "/image/bin",
    "HOME": "/home",
    "PYTHONPATH": "/lib",
    "PYTHONUNBUFFERED": "1",
    "FLAGS_a": "b",
    "PYTHONWARNINGS": "ignore:words",
}
READS = {"PATH", "PADDLE_TRAINER_ID"}
ENVIRONMENTS = {
    "nothing of its own": ({}, {}),
    "what no module reads": ({"TOKEN": "secret", "PADDLE_PORT": "1"}, {}),
    "a rank that is read": ({"PADDLE_TRAINER_ID": "3"}, {"PADDLE_TRAINER_ID": "3"}),
    "a count of threads": ({"OMP_NUM_THREADS": "4"}, {"OMP_NUM_THREADS": "4"}),
    "unbuffered or not": ({"PYTHONUNBUFFERED": "0"}, {}),
    "a path for modules": ({"PYTHONPATH": "/tmp/theirs"}, None),
    "other warnings than the image's": ({"PYTHONWARNINGS": "error"}, None),
    "a path for programs": ({"PATH": "/tmp/theirs"}, None),
    "a library": ({"LD_PRELOAD": "/tmp/theirs.so"}, None),
    "a path that is a number": ({"PYTHONPATH": "7"}, None),
    "a folder of libraries that is a number": ({"LD_LIBRARY_PATH": "7"}, None),
    "a word": ({"PADDLE_TRAINER_ID": "x"}, None),
    "another value than the image's": ({"FLAGS_a": "c"}, None),
}


@pytest.mark.parametrize("case", ENVIRONMENTS)
def test_a_parent_takes_from_a_pod_only_numbers_that_modules_read(case: str) -> None:
    given, expected = ENVIRONMENTS[case]
    base = {name: value for name, value in IMAGE.items() if name != "PYTHONUNBUFFERED"}
    made = parent_environment(IMAGE, {**IMAGE, **given}, READS)
    assert made == (None if expected is None else {**base, **expected})
