"""Our kinds and controllers on a cluster, as users have them there: installed by the chart, with the rights it grants.

So every test on a cluster is also one of the chart. Serving is left out where no test asks for it (`serving`): tests
of it bring controllers of their own, with and without Knative, and the chart's is tried in `test_chart`.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from rendered import CHART, helm

from harness import Target, until

from .harness import own_image

HELM = helm()
NAMESPACE, RELEASE = "paddlecloud-system", "pdc"
PADDLEJOB, SAMPLESET = f"{RELEASE}-paddlecloud-paddlejob", f"{RELEASE}-paddlecloud-sampleset"
"""Deployments."""
LEASE = "paddlejob-controller"
VALUES = {
    "image.tag": "latest",
    "image.pullPolicy": "Always",
    "runtimeImage": "paddlecloud/runtime",
    "serving.enabled": "false",
}
KINDS = "paddlejobs.batch.paddlepaddle.org"


def flags(**more: str) -> list[str]:
    """For helm install and upgrade; `more` are values, with two underscores for each dot."""
    values = {**VALUES, **{name.replace("__", "."): value for name, value in more.items()}}
    chosen = [word for name, value in values.items() for word in ("--set", f"{name}={value}")]
    return ["--namespace", NAMESPACE, "--wait", "--timeout=150s", *chosen]


def pods_of(component: str) -> str:
    """The label selector of a controller's pods."""
    return f"app.kubernetes.io/instance={RELEASE},app.kubernetes.io/component={component}"


@contextmanager
def running(server: Target, kubectl: str) -> Iterator[None]:
    """Present while the context is open; a controller that raised anything fails the test that leaves it."""

    def run(*command: str) -> str:
        done = subprocess.run(command, env=server.env, capture_output=True, text=True, timeout=200)
        assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
        return done.stdout

    server.offer(own_image.NAME)
    run(HELM, "upgrade", "--install", RELEASE, str(CHART), "--create-namespace", *flags())
    yield
    log = _logs(server, kubectl)
    run(HELM, "uninstall", RELEASE, "--namespace", NAMESPACE, "--wait", "--timeout=120s")
    assert "Traceback" not in log, log[-4000:]
    assert run(kubectl, "get", "crd", KINDS, "-o", "name"), "kinds, and with them what users made, stay"


def _logs(server: Target, kubectl: str) -> str:
    """What all controllers wrote; asked again when a pod that an upgrade replaced goes while they are read."""
    selector = f"app.kubernetes.io/instance={RELEASE}"
    command = [kubectl, "logs", "-n", NAMESPACE, "-l", selector, "--tail=-1", "--prefix"]
    read: list[str] = []

    def all_answered() -> bool:
        done = subprocess.run(command, env=server.env, capture_output=True, text=True, timeout=200)
        read[:] = [done.stdout]
        return done.returncode == 0

    until(all_answered)
    return read[0]


@contextmanager
def upgraded(server: Target, *, file: str = "", **values: str) -> Iterator[None]:
    """The same release with other values (two underscores for each dot; `file` has more of them), for as long as the
    context is open."""

    def upgrade(*more: str, **values: str) -> None:
        command = [HELM, "upgrade", RELEASE, str(CHART), *flags(**values), *more]
        done = subprocess.run(command, env=server.env, capture_output=True, text=True, timeout=200)
        assert done.returncode == 0, done.stderr

    upgrade(*(["--values", file] if file else []), **values)
    yield
    upgrade()


def serving(server: Target) -> AbstractContextManager[None]:
    """With the controller of PaddleServices."""
    return upgraded(server, serving__enabled="true")
