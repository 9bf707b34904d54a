"""Two releases of one name side by side, each for its own namespace; and an API server that is away for a while.

That controllers ask for nothing outside of their namespace is a unit test, too; this is the whole of it, and long.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from rendered import CHART, helm

from chart_exercise import job
from chart_rights import refused
from cluster.harness import own_image
from harness import Target, pdc, until
from paddlecloud.local.images.store import ImageStore
from paddlecloud.platform import endpoint

pytestmark = [pytest.mark.soak, pytest.mark.timeout(400)]

TEAMS = ("team-a", "team-b")
VALUES = {
    "watch": "namespace",
    "sampleset.enabled": "false",
    "serving.enabled": "false",
    "paddlejob.replicas": "1",
    # The images of this machine lie where only its user may read.
    "podSecurityContext.runAsNonRoot": "false",
    "podSecurityContext.runAsUser": "0",
    "podSecurityContext.runAsGroup": "0",
}


class Teams:
    """A platform with a release for each of two teams."""

    def __init__(self, data: Path, kubectl: str) -> None:
        self.data = data
        self._kubectl = kubectl
        self.target = Target(data / "kubeconfig", embedded=True)

    def run(self, *command: str, input: str | None = None) -> str:
        done = subprocess.run(command, env=self.target.env, capture_output=True, text=True, input=input, timeout=200)
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def kubectl(self, team: str, *arguments: str, input: str | None = None) -> str:
        return self.run(self._kubectl, "-n", team, *arguments, input=input)

    def install(self, team: str) -> None:
        values = [word for name, value in VALUES.items() for word in ("--set", f"{name}={value}")]
        place = ["--namespace", team, "--create-namespace", "--wait", "--timeout=150s"]
        self.run(helm(), "install", "pdc", str(CHART), *place, *values)

    def start(self, team: str) -> None:
        self.kubectl(team, "apply", "-f", "-", input=json.dumps(job("same", workers=2)))

    def phase(self, team: str) -> str:
        return self.kubectl(team, "get", "pdj", "same", "-o", "jsonpath={.status.phase}")

    def pods(self, team: str) -> str:
        chosen = ("-l", "paddlepaddle.org/job-name=same", "-o", "jsonpath={.items[*].metadata.uid}")
        return self.kubectl(team, "get", "pods", *chosen)

    def release(self, team: str) -> None:
        for worker in range(2):
            self.kubectl(team, "exec", f"same-worker-{worker}", "--", "touch", "/tmp/go")

    def up(self) -> None:
        pdc("up", "--data", str(self.data), "--port", "0", "--no-controllers")

    def controllers(self) -> set[int]:
        """Processes of the releases' pods, which know their names from the environment."""
        chosen = ("-l", "app.kubernetes.io/name=paddlecloud", "-o", "jsonpath={.items[*].metadata.name}")
        names = [name for team in TEAMS for name in self.kubectl(team, "get", "pods", *chosen).split()]
        wanted = [f"POD_NAME={name}".encode() for name in names]
        return {int(pid) for pid in os.listdir("/proc") if pid.isdigit() and _runs_with(int(pid), wanted)}


def _runs_with(pid: int, wanted: list[bytes]) -> bool:
    try:
        around = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False  # gone, or somebody else's
    return b"paddlecloud.controllers" in words and any(name in around for name in wanted)


@pytest.fixture
def teams(tmp_path: Path, kubectl_binary: str) -> Iterator[Teams]:
    made = Teams(tmp_path / "platform", kubectl_binary)
    own_image.write_recipe(made.data / "images")
    made.up()
    asyncio.run(ImageStore(folders=[made.data / "images"]).build(own_image.NAME))
    yield made
    pdc("down", "--data", str(made.data))


def test_each_release_serves_its_own_namespace_and_outlives_its_api_server(teams: Teams) -> None:
    for team in TEAMS:
        teams.install(team)
        teams.start(team)
    for team in TEAMS:
        until(lambda team=team: teams.phase(team) == "Running")  # type: ignore[misc]
    before = {team: teams.pods(team) for team in TEAMS}
    log = teams.data / "audit.log"
    for team, other in (TEAMS, TEAMS[::-1]):
        assert refused(log, team) == []
        asked = [line for line in log.read_text().splitlines() if f":{team}:paddlejob-sa" in line]
        assert asked
        assert not [line for line in asked if f'"namespace":"{other}"' in line], "neither looks into the other's"

    # The API server dies, for longer than a lease lasts: controllers give up leading and end, jobs go on.
    controllers = teams.controllers()
    assert len(controllers) == 2
    found = endpoint.find(teams.data)
    assert found is not None
    os.kill(found.pid, signal.SIGKILL)
    until(lambda: not any(Path(f"/proc/{pid}/environ").exists() for pid in controllers))
    teams.up()
    for team in TEAMS:
        teams.release(team)
        until(lambda team=team: teams.phase(team) == "Completed")  # type: ignore[misc]
    assert {team: teams.pods(team) for team in TEAMS} == before, "none lost, none made twice"
