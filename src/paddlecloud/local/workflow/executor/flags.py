"""`flags` of resource templates: the few of kubectl that have a meaning here. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from paddlecloud.local.workflow.executor.orders import ExecutorError

_IGNORED = ("--ignore-not-found", "--wait", "--force", "--grace-period", "--cascade", "--timeout", "--now")
"""Flags that change nothing of the outcome here: a deletion is asked for once, and not waited for."""
_WITH_VALUE = ("--selector", "-l", "--namespace", "-n", "--grace-period", "--timeout")


@dataclass(frozen=True)
class Flags:
    kind: str = ""
    names: tuple[str, ...] = ()
    selector: str = ""
    namespace: str = ""
    validates: bool = True

    @property
    def name(self) -> str:
        if len(self.names) != 1:
            raise ExecutorError("flags must name a kind and one object")
        return self.names[0]

    @property
    def validation(self) -> dict[str, str]:
        return {} if self.validates else {"fieldValidation": "Ignore"}

    @staticmethod
    def of(words: list[str]) -> Flags:
        """Raises `ExecutorError` for a flag that is not served."""
        positional: list[str] = []
        given: dict[str, str] = {}
        todo = [str(word) for word in words]
        while todo:
            word = todo.pop(0)
            if not word.startswith("-"):
                positional.append(word)
                continue
            flag, assigned, value = word.partition("=")
            if not assigned and flag in _WITH_VALUE and todo:
                value = todo.pop(0)
            if flag not in (*_IGNORED, *_WITH_VALUE, "--validate"):
                raise ExecutorError(f"the flag {flag} of kubectl is not served")
            given[flag] = value
        first, *names = positional or [""]
        if "/" in first:
            first, _, name = first.partition("/")
            names = [name, *names]
        return Flags(
            first,
            tuple(names),
            given.get("--selector") or given.get("-l") or "",
            given.get("--namespace") or given.get("-n") or "",
            given.get("--validate") not in ("false", "ignore", "warn"),
        )
