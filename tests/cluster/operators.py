"""Our kinds and controllers on a cluster, as users would have them there: definitions, accounts, Deployments."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from harness import Target, pdc

from .harness import own_image

MANIFEST = Path(__file__).with_name("operators.yaml")
NAMESPACE = "paddlecloud-system"
PADDLEJOB = "paddlejob-controller"


@contextmanager
def running(server: Target, kubectl: str) -> Iterator[None]:
    """Present while the context is open; a controller that raised anything fails whoever leaves it."""

    def run(*arguments: str, input: str | None = None) -> str:
        command = [kubectl, "--kubeconfig", str(server.kubeconfig), *arguments]
        done = subprocess.run(command, input=input, capture_output=True, text=True, timeout=180)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    server.offer(own_image.NAME)
    definitions = pdc("crds").stdout
    run("apply", "--server-side", "--force-conflicts", "-f", "-", input=definitions)
    run("wait", "--for=condition=Established", "--timeout=60s", "-f", "-", input=definitions)
    run("apply", "--server-side", "--force-conflicts", "-f", str(MANIFEST))
    objects = yaml.safe_load_all(MANIFEST.read_text())
    controllers = [each["metadata"]["name"] for each in objects if each["kind"] == "Deployment"]
    for name in controllers:
        run("rollout", "status", f"deployment/{name}", "-n", NAMESPACE, "--timeout=120s")
    yield
    logs = {name: run("logs", "-n", NAMESPACE, "-l", f"app={name}", "--tail=-1", "--prefix") for name in controllers}
    run("delete", "-f", str(MANIFEST), "--timeout=120s")
    for log in logs.values():
        assert "Traceback" not in log, log[-4000:]
