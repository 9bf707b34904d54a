"""A pod that does one piece of work for a command: files are copied into it, programs run in it, results come back.

It sleeps until it is used, has no token of its own, and is deleted at the end, also after an error. Should this process
be killed, the pod ends by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paddlecloud.cli.failures import CliError
from paddlecloud.cli.objects.blocking_program import BlockingProgram
from paddlecloud.cli.session import Session
from paddlecloud.kube.resource import PODS, Object
from paddlecloud.sdk.core import AsyncClient
from paddlecloud.sdk.handles import Completed
from paddlecloud.sdk.members import member
from paddlecloud.sdk.object_ref import of_object
from paddlecloud.sdk.portal import Portal
from paddlecloud.sdk.remote import Remote
from paddlecloud.sdk.watching import until

_NO_IMAGE = ("ImagePullBackOff", "InvalidImageName")
WORK = "/work"
"""An empty folder of the pod, for the files."""


def worker_pod(name: str, namespace: str, image: str, *, seconds: int, **container: Any) -> Object:
    """A pod whose only container, `name`, sleeps; it ends after these seconds, whatever becomes of its maker."""
    main = {
        "name": name,
        "image": image,
        "command": ["sh", "-c", f"sleep {seconds}"],
        **container,
        "volumeMounts": [{"name": "work", "mountPath": WORK}, *container.get("volumeMounts", ())],
    }
    return {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "metadata": {"generateName": f"{name}-", "namespace": namespace},
        "spec": {
            "restartPolicy": "Never",
            "activeDeadlineSeconds": seconds,
            "automountServiceAccountToken": False,
            "containers": [main],
            "volumes": [{"name": "work", "emptyDir": {}}],
        },
    }


class WorkerPod:
    """A context: the pod exists, and runs, from its beginning to its end."""

    def __init__(self, session: Session, pod: Object) -> None:
        self._session = session
        self._wanted = pod
        self._client = AsyncClient(session.api.config, namespace=session.namespace)
        self._remote = Remote(session.api.config)
        self._portal = Portal(self._close)

    def __enter__(self) -> WorkerPod:
        try:
            self._pod = self._portal.run(self._client.api.create(PODS, self._wanted))
        except BaseException:
            self._portal.close()
            raise
        try:
            self._pod = self._portal.run(
                until(
                    self._client.api,
                    of_object(PODS, self._pod),
                    _started,
                    timeout=float(self._wanted["spec"]["activeDeadlineSeconds"]),
                )
            )
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        delete = self._client.api.delete(PODS, self.name, namespace=self._session.namespace, grace_period=0)
        try:
            self._portal.run(delete)
        finally:
            self._portal.close()

    @property
    def name(self) -> str:
        return str(self._pod["metadata"]["name"])

    def start(self, command: Sequence[str]) -> BlockingProgram:
        """A program in the pod, with its input open."""
        container = str(self._wanted["spec"]["containers"][0]["name"])
        running = self._remote.exec(self._session.namespace, self.name, command, container=container, stdin=True)
        return BlockingProgram(self._portal, self._portal.run(running))

    def run(self, command: Sequence[str]) -> Completed:
        """A program to its end."""
        return self._portal.run(self._client.exec(member(self._pod), command))

    async def _close(self) -> None:
        await self._remote.close()
        await self._client.close()


def _started(now: Object | None) -> Object | None:
    status = (now or {}).get("status") or {}
    phase = status.get("phase")
    if now is None or phase in ("Succeeded", "Failed"):
        raise CliError("the pod that does the work ended", why=str(phase or "deleted"), next="pdc events")
    for container in status.get("containerStatuses") or ():
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") in _NO_IMAGE:
            why = waiting.get("message") or waiting["reason"]
            raise CliError(f"the image {container.get('image')} cannot be had", why=str(why), reason="ImagePull")
    return now if phase == "Running" else None
