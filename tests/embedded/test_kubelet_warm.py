"""Pods of an image with a warm parent start by a fork, and cannot tell."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from unit.local.kubelet.machine import TestMachine, running_machine, state_of

REPORT = """import statistics
import atexit, inspect, json, os, signal, sys
atexit.register(lambda: print("bye"))
print(json.dumps({
    "warm": inspect.stack()[-2:][0].filename.endswith("warmstart.py"),
    "argv": sys.argv, "name": __name__, "own": os.environ.get("OWN"),
    "fds": sorted(int(n) for n in os.listdir("/proc/self/fd") if int(n) < 100)[:4], "cwd": os.getcwd(),
    "platform": [name for name in sys.modules if name.startswith("paddlecloud")],
}))
sys.exit(7)
"""


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[TestMachine]:
    folder = tmp_path / "images" / "warm"
    folder.mkdir(parents=True)
    (folder / "run.py").write_text(REPORT)
    recipe = {"names": ["warm"], "preload": ["statistics"], "files": {"/app/run.py": "run.py"}, "workdir": "/app"}
    (folder / "image.yaml").write_text(yaml.safe_dump(recipe))
    broken = tmp_path / "images" / "broken"
    broken.mkdir()
    (broken / "image.yaml").write_text(yaml.safe_dump({"names": ["broken"], "preload": ["no_such_module"]}))
    async with running_machine(tmp_path) as running:
        yield running


async def run(machine: TestMachine, name: str, *command: str, image: str = "warm") -> tuple[dict[str, object], int]:
    env = [{"name": "OWN", "value": "value"}]
    await machine.run("", name=name, container={"image": image, "command": list(command), "env": env})
    pod = await machine.phase(name, "Failed", "Succeeded")
    first, *rest = (await machine.log(name)).splitlines()
    assert rest == ["bye"], state_of(pod)
    return json.loads(first), state_of(pod)["state"]["terminated"]["exitCode"]


async def test_a_warm_start_differs_from_a_cold_one_in_nothing_that_it_reports(machine: TestMachine) -> None:
    command = ("python3", "/app/run.py", "--flag")
    cold, code = await run(machine, "cold", *command)
    assert (cold.pop("warm"), code) == (False, 7)
    await machine.kubelet.machine.warm.settled()
    warm, code = await run(machine, "hot", *command)
    assert (warm.pop("warm"), code) == (True, 7)
    assert warm == cold
    assert warm["argv"] == ["/app/run.py", "--flag"]
    assert warm["platform"] == []


async def test_modules_and_code_strings_start_warm_too(machine: TestMachine) -> None:
    await run(machine, "cold", "python", "-c", REPORT)
    await machine.kubelet.machine.warm.settled()
    warm, _ = await run(machine, "code", "python", "-u", "-c", REPORT, "x")
    assert (warm["warm"], warm["argv"], warm["name"]) == (True, ["-c", "x"], "__main__")
    warm, _ = await run(machine, "module", "python", "-m", "run", "y")
    assert (warm["warm"], warm["argv"]) == (True, ["/app/run.py", "y"])


async def test_what_is_not_python_is_executed_as_ever(machine: TestMachine) -> None:
    await run(machine, "cold", "python", "-c", REPORT)
    await machine.kubelet.machine.warm.settled()
    await machine.run("", name="shell", container={"image": "warm", "command": ["sh", "-c", "echo plain"]})
    await machine.phase("shell", "Succeeded")
    assert await machine.log("shell") == "plain\n"


async def test_an_image_whose_modules_are_missing_stays_cold(machine: TestMachine) -> None:
    for name in ("first", "second"):
        report, _ = await run(machine, name, "python", "-c", REPORT, image="broken")
        assert report["warm"] is False
        await machine.kubelet.machine.warm.settled()
