"""A Go program of client-go and the apiextensions client, as controllers are written: `clients/go/main.go`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness import REQUIRED, Target, need
from tools import go

pytestmark = pytest.mark.timeout(go.BUILD_SECONDS)
SOURCE = Path(__file__).parent / "clients" / "go" / "main.go"
ENGINES = Path(__file__).parents[1] / "cluster" / "engines"
STEPS = (
    "discovery", "every kind as protobuf", "typed objects", "errors", "pages", "custom kind", "dynamic objects",
    "server-side apply", "metadata alone", "informers", "leader election", "custom kind gone",
)  # fmt: skip


@pytest.fixture(scope="session")
def program() -> Path:
    """Built once from the modules of the cluster's engines, and kept."""
    need("go", have="go" in REQUIRED or go.find() is not None, hint="put Go on PATH")
    folder = go.tools() / f"client-{go.key_of(ENGINES, SOURCE.read_text())}"
    if not (folder / "client").is_file():
        go.build(ENGINES, lambda run, built: run("build", *go.LINKED, "-o", f"{built}/client", "."), folder, SOURCE)
    return folder / "client"


def test_a_controllers_use_of_the_api_works_from_go(server: Target, namespace: str, program: Path) -> None:
    command = [str(program), f"--kubeconfig={server.kubeconfig}", f"--namespace={namespace}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"ok: {step}" for step in STEPS]
