"""The Events of a container's way through life, in the words of Kubernetes' kubelet.

Pulling, Pulled, Created, Started, Killing: each once per run of a container, from the kubelet that took the step. A
kubelet that finds a pod at work, because it was restarted itself, writes none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from paddlecloud.local.kubelet.pod.pod_state import ContainerRun

Record = Callable[[str, str], None]
"""Writes an Event of type Normal: (reason, message)."""


class Steps:
    def __init__(self, record: Record) -> None:
        self._record = record
        self._done: set[tuple[str, str, int]] = set()
        self._ordered: set[tuple[str, int]] = set()
        """Runs that this kubelet ordered and that are not known to have begun."""

    def pulling(self, image: str, what: str) -> None:
        """`what` is built for it, in words; may be empty."""
        self._record("Pulling", f'Pulling image "{image}"' + (f": {what}" if what else ""))

    def pulled(self, name: str, image: str, seconds: float) -> None:
        self._record("Pulled", f'Successfully pulled image "{image}" in {seconds:.1f}s')
        self._done.add(("Pulled", name, 0))

    def present(self, name: str, image: str, attempt: int) -> None:
        """The image needs no pull for this run."""
        if self._is_new("Pulled", name, attempt):
            self._record("Pulled", f'Container image "{image}" already present on machine')

    def created(self, name: str, attempt: int) -> None:
        if self._is_new("Created", name, attempt):
            self._record("Created", f"Created container: {name}")
            self._ordered.add((name, attempt))

    def observe(self, runs: Mapping[str, ContainerRun]) -> None:
        """Runs that began since the last look."""
        for name, run in runs.items():
            if (name, run.attempt) in self._ordered and (run.started is not None or run.ended):
                self._ordered.discard((name, run.attempt))
                if run.started is not None:
                    self._record("Started", f"Started container {name}")

    def killing(self, name: str, attempt: int) -> None:
        if self._is_new("Killing", name, attempt):
            self._record("Killing", f"Stopping container {name}")

    def _is_new(self, reason: str, name: str, attempt: int) -> bool:
        step = (reason, name, attempt)
        if step in self._done:
            return False
        self._done.add(step)
        return True
