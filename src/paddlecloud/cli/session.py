"""What a running command has of the outside world: its flags, its streams, its prompts and the API of its context.

The API is opened on first use, so commands that need none work without a kubeconfig.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any, TextIO

from paddlecloud.cli.control_characters import painted, visible
from paddlecloud.cli.failures import CANCELLED, CliError, UsageError
from paddlecloud.kube.errors import NotFound

if TYPE_CHECKING:
    from paddlecloud.cli.objects.api import Api

SCHEMA = "cli.paddlecloud.org/v1"
"""The apiVersion of what pdc prints as JSON or YAML and that is no object of the server. Fields are only added."""


class Session:
    def __init__(self, args: argparse.Namespace, *, api: Api | None = None) -> None:
        """`api` where it is open already: else that of the context is opened."""
        self.args = args
        self.timeout = 60.0  # seconds for one answer of the server
        self._api = api

    def __enter__(self) -> Session:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if self._api is not None:
            refusal = error.__cause__ if isinstance(error, CliError) else error
            if isinstance(refusal, NotFound) and not (refusal.details or {}).get("name"):
                self._api.forget()  # a collection is missing, not an object: the next command asks what there is
            self._api.close()

    @property
    def api(self) -> Api:
        if self._api is None:
            from paddlecloud.cli.objects.api import connect

            self._api = connect(
                kubeconfig=self.args.kubeconfig,
                context=self.args.context,
                on_warning=self.warn,
                timeout=self.timeout,
            )
        return self._api

    @property
    def namespace(self) -> str:
        """Where objects without their own namespace go: the flag's, else the context's."""
        return str(self.args.namespace or self.api.namespace)

    @property
    def namespace_flag(self) -> str:
        """What a command that is advised needs besides the name: ` -n NAMESPACE`, unless it is the context's."""
        return f" -n {self.namespace}" if self.namespace != self.api.namespace else ""

    @property
    def scope(self) -> str | None:
        """The namespace to list in; None for all of them."""
        return None if getattr(self.args, "all_namespaces", False) else self.namespace

    # Streams: data on stdout, everything said about it on stderr.

    def print(self, text: str = "") -> None:
        """Text for people."""
        self.print_data(visible(text))

    def print_data(self, text: str) -> None:
        """Text for programs, as it is."""
        sys.stdout.write(text if text.endswith("\n") else text + "\n")

    def note(self, text: str) -> None:
        print(visible(text), file=sys.stderr, flush=True)

    def warn(self, text: str) -> None:
        self.note(self.paint("Warning:", "yellow", sys.stderr) + f" {text}")

    def paint(self, text: str, colour: str, stream: TextIO | None = None) -> str:
        return painted(text, colour) if wants_colour(stream or sys.stdout) else text

    def report(self, kind: str, body: dict[str, Any]) -> dict[str, Any]:
        """The envelope of pdc's own machine-readable answers."""
        return {"apiVersion": SCHEMA, "kind": kind, **body}

    @property
    def can_ask(self) -> bool:
        """Whether the command runs on a terminal, where a user can answer."""
        return sys.stdin.isatty() and sys.stderr.isatty()

    def confirm(self, question: str) -> None:
        """Returns when the user agreed. Prompts only on a terminal; without one, `-y` must have been given."""
        if self.args.yes:
            return
        if not self.can_ask:
            raise UsageError(
                f"{question.rstrip('?')} needs a confirmation",
                why="there is no terminal to ask on",
                next="the same command with -y",
            )
        sys.stderr.write(visible(f"{question} [y/N] "))
        sys.stderr.flush()
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise CliError("cancelled", why="the answer was not yes", exit_code=CANCELLED)


def wants_colour(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
