"""How long the arguments and variables of a program may be: what execve(2) of Linux takes.

A pod's author writes few bytes and asks for many: `$(V)$(V)` doubles with every variable, and one Secret can be named a
thousand times. What no program could be started with is refused before it is computed.
"""

from __future__ import annotations

from paddlecloud.local.kubelet.pod.errors import ContainerConfigError

ONE = 128 * 1024
"""Bytes of one argument, or of `NAME=value`, with the zero byte at its end (MAX_ARG_STRLEN)."""

ALL = 2 * 1024 * 1024
"""Bytes of all arguments and variables: a quarter of the stack, which has 8 MiB unless somebody changed that."""

PATH = 4096
"""Bytes of a path (PATH_MAX)."""


def encoded(text: str) -> bytes:
    """As the program sees it; values of Secrets need not be text."""
    return text.encode(errors="surrogateescape")


class Room:
    """What is left for one program. Raises `ContainerConfigError` when something does not fit.

    A variable that is set again later counts each time: each had to be computed.
    """

    def __init__(self) -> None:
        self._left = ALL

    def take(self, what: str, text: str, *, name: str = "") -> str:
        """Count one string; `what` is what a message calls it, `name` what stands before it as in `NAME=value`."""
        size = len(name) + 2 + (len(text) if len(text) > ONE else len(encoded(text)))
        if size > ONE:
            raise too_long(what)
        self._left -= size
        if self._left < 0:
            raise ContainerConfigError(
                f"arguments and environment variables are longer than {ALL // 1024} KiB together at {what}, more than "
                "a program can be started with: mount what is large as a volume"
            )
        return text


def too_long(what: str, limit: int = ONE) -> ContainerConfigError:
    return ContainerConfigError(
        f"{what} is longer than {limit // 1024} KiB with all its $(VAR) references replaced, more than a program can "
        "be started with: shorten it, or mount what is large as a volume"
    )
