"""What a read command costs: which modules it may import (a hard count) and CPU-seconds (a generous bound)."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

import pytest

from unit.cli.stub import Stub

FORBIDDEN = ("aiohttp", "asyncio", "rich", "cryptography", "hypothesis", "concurrent.futures", "multiprocessing")
GOAL = 0.15
BOUND = 3 * GOAL  # a machine busy with other tests is slower; `make bench` measures against the goal itself

COMMANDS = [
    ["--help"],
    ["version", "--client"],
    ["version"],
    ["get", "pods"],
    ["get", "pods", "-A", "-o", "json"],
    ["ps"],
    ["describe", "pods"],
    ["events"],
    ["explain", "pod/web"],
    ["logs", "web"],
    ["logs", "-f", "done"],
    ["wait", "pod/web", "--for=create"],
    ["api-resources"],
    ["image", "ls"],
    ["model", "ls"],
    ["model", "ls", "ocr"],
    ["model", "show", "ocr"],
    ["get", "--help"],
    ["__complete", "--", "get", "po"],
]

PROBE = """
import sys
from paddlecloud.cli.main import main
code = main(sys.argv[1:])
sys.stderr.write("\\nMODULES " + " ".join(sorted(sys.modules)))
sys.exit(code)
"""


@pytest.fixture
def cluster(stub: Stub) -> Stub:
    stub.add({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "status": {"phase": "Running"}})
    stub.add({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "done"}, "status": {"phase": "Succeeded"}})
    stub.logs["done"] = ["2026-01-01T00:00:00Z bye"]
    stub.logs["web"] = ["2026-01-01T00:00:00Z hello"]
    group = {"apiVersion": "modelhub.paddlepaddle.org/v1alpha1"}
    stub.add({**group, "kind": "Model", "metadata": {"name": "ocr"}, "spec": {"aliases": {"latest": "1"}}})
    version = {"model": "ocr", "version": "1", "digest": f"sha256:{64 * '0'}", "size": 1, "files": 1}
    stub.add({**group, "kind": "ModelVersion", "metadata": {"name": "ocr.1"}, "spec": version})
    return stub


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_read_commands_import_nothing_heavy(cluster: Stub, arguments: list[str]) -> None:
    done = subprocess.run([sys.executable, "-c", PROBE, *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    loaded = done.stderr.rpartition("MODULES ")[2].split()
    heavy = [name for name in FORBIDDEN if name in loaded]
    assert heavy == []


@pytest.mark.parametrize("arguments", [["--help"], ["version", "--client"]], ids=" ".join)
def test_commands_without_a_server_import_no_client(arguments: list[str]) -> None:
    done = subprocess.run([sys.executable, "-c", PROBE, *arguments], capture_output=True, text=True, timeout=60)
    loaded = done.stderr.rpartition("MODULES ")[2].split()
    assert not {"http.client", "ssl", "yaml", "msgspec"} & set(loaded)


@pytest.mark.parametrize(
    "arguments", [["--help"], ["version", "--client"], ["get", "pods"], ["ps"], ["model", "ls"]], ids=" ".join
)
def test_read_commands_are_cheap(cluster: Stub, arguments: list[str]) -> None:
    command = [sys.executable, "-m", "paddlecloud.cli.main", *arguments]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    spent = []
    for _ in range(4):  # the first run compiles the bytecode
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True, timeout=60, env=environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(spent[1:]) < BOUND
