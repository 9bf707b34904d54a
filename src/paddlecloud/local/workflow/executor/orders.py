"""What the controller and the executor of a pod agree on: where orders and reports are. Read by both."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any

ORDERS = "ARGO_TEMPLATE"
"""The variable with the orders, as JSON. What one variable cannot hold goes on in `ARGO_TEMPLATE_1` and so on."""
MOST_VARIABLE = 120 * 1024
"""Characters of one piece, which are ASCII: Linux starts no program with a variable of more than 128 KiB. A piece of
this length is followed by another."""
MOST_ORDERS = 1024 * 1024
"""Characters of all orders of a container, as the spec of its pod has them."""
MESSAGE = "/dev/termination-log"
MOST_MESSAGE = 4096
"""Bytes of a termination message. A longer report is a file of the outputs volume."""
MOST_REPORT = 1024 * 1024
"""Bytes of a report; the workflow that stores it has 1.5 MiB for all of its nodes."""
MOST_VALUE = 256 * 1024
"""Bytes of one output parameter or result, as in Argo (`MaxEnvVarLen` of its offloading, and its result limit)."""
BROKEN = 64
"""The exit code of a step whose program cannot be started, or succeeded and its outputs are not there."""

ARTIFACTS = "/argo/artifacts"
"""The artifact repository of the pod's namespace, read-only."""
OUTPUTS = "/argo/outputs"
"""A folder of this pod alone, which the controller takes over when the pod is over."""
INPUTS = "/argo/inputs"
"""In the init container: input artifacts, by their number. The main container has each of them at its path."""
MAIN_VOLUMES = "/argo/main"
"""In the init container: the volumes of the main container, for artifacts whose path is inside one of them."""

PACKAGES = "/argo/packages"
"""The packages of the platform, for a step that cannot read them where they lie."""

SHARED = "/var/run/argo"
"""A folder of all containers of a pod, in which each that ends leaves its exit code as `NAME.exit`."""

REPORT_FILE = "report.json"
WITHOUT_OUTPUTS = "withoutOutputs"
"""In the message of a step that ended as `BROKEN`: its program succeeded. Argo's wait container fails then."""


def shortened(message: str) -> str:
    """What of a message fits into a termination message, beside other parts of a report."""
    return message.encode(errors="replace")[: MOST_MESSAGE // 2].decode(errors="ignore")


def as_variables(orders: Any) -> list[dict[str, Any]]:
    """As variables of a container, in whose values Kubernetes replaces `$(NAME)` and `$$`. Raises `ExecutorError`."""
    text = json.dumps(orders)
    length = len(text) + text.count("$")
    if length > MOST_ORDERS:
        raise ExecutorError(
            f"the source of its script, its manifest or its raw artifacts are too long: {length:,} characters as JSON, "
            f"and at most {MOST_ORDERS:,} reach a container; give it what is long as an artifact or in a volume"
        )
    pieces = (text[start : start + MOST_VARIABLE] for start in range(0, len(text) + 1, MOST_VARIABLE))
    return [{"name": _variable(number), "value": piece.replace("$", "$$")} for number, piece in enumerate(pieces)]


def taken_out(environment: MutableMapping[str, str]) -> str:
    """The JSON, from the variables that the executor has; those that it starts have them no more."""
    pieces: list[str] = []
    while not pieces or len(pieces[-1]) == MOST_VARIABLE:
        pieces.append(environment.pop(_variable(len(pieces)), ""))
    return "".join(pieces)


def in_spec(variables: Iterable[Mapping[str, Any]]) -> str:
    """The JSON, from `env` of a container. The last variable of a name counts, as in Kubernetes."""
    return taken_out({str(each["name"]): str(each.get("value") or "").replace("$$", "$") for each in variables})


def _variable(number: int) -> str:
    return f"{ORDERS}_{number}" if number else ORDERS


class ExecutorError(Exception):
    """The executor cannot do as it was ordered; the message goes to the node of the workflow."""
