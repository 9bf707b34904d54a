"""What came of a workflow, without what differs from run to run: names, identities, times, the interpreter. Pure."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

Object = dict[str, Any]

DONE = ("Succeeded", "Failed", "Error")
REFUSED = "refused"
"""The embedded platform refuses at creation what Argo's controller ends with the phase Error."""
UNSERVED = "not served"
"""Refused for a field that the embedded platform does not carry out."""
LIMIT = 150.0
"""Seconds after which a run of a case is left as it is."""
_INVALID = ("invalid spec", "cannot unmarshall spec")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?( [+-]\d{4} UTC)?")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_HASH = re.compile(r"(?<=-)\d{5,10}\b")


_OUTSIDE = re.compile(
    "failed to look-up entrypoint/cmd for image|ImagePullBackOff|ErrImagePull"
    "|dial tcp|no such host|Name or service not known"
)


class Node(NamedTuple):
    name: str
    """Its display name."""
    kind: str
    phase: str
    outputs: Mapping[str, Any]


class Verdict(NamedTuple):
    phase: str
    message: str
    nodes: tuple[Node, ...]
    outputs: Mapping[str, Any]
    seconds: float = 0.0
    outside: str = ""
    """The message that shows that it failed for something that is not on this machine: a network, an image."""

    @property
    def judges(self) -> bool:
        """Whether it came to an end that another platform can be held to."""
        return self.phase in (*DONE, REFUSED) and not self.outside

    @property
    def out_of_time(self) -> bool:
        """Whether it still ran at the limit, and nothing outside of this machine is known to keep it."""
        return self.phase not in (*DONE, REFUSED, UNSERVED) and not self.outside and self.seconds >= LIMIT


def judge(workflow: Object, seconds: float) -> Verdict:
    status = workflow.get("status") or {}
    phase, message = str(status.get("phase") or "Pending"), str(status.get("message") or "")
    if phase in ("Error", "Failed") and message.startswith(_INVALID):
        return refusal(message, seconds)
    clean = _cleaner(workflow)
    nodes = [
        Node(clean(node.get("displayName", "")), node.get("type", ""), node.get("phase", ""), _outputs(node, clean))
        for node in (status.get("nodes") or {}).values()
    ]
    outside = next((text for text in _messages(status) if _OUTSIDE.search(text)), "")
    return Verdict(
        phase, clean(message), tuple(sorted(nodes, key=str)), _outputs(status, clean), seconds, clean(outside)
    )


def _messages(status: Object) -> list[str]:
    nodes = (status.get("nodes") or {}).values()
    return [str(each.get("message") or "") for each in (status, *nodes) if each.get("phase") != "Succeeded"]


def refusal(message: str, seconds: float) -> Verdict:
    phase = UNSERVED if "this platform does not serve" in message else REFUSED
    return Verdict(phase, message.partition(" is invalid: ")[2] or message, (), {}, seconds)


def _outputs(holder: Object, clean: Any) -> dict[str, Any]:
    """Values of parameters, the result, the exit code, and which artifacts there are."""
    outputs = holder.get("outputs") or {}
    found: dict[str, Any] = {
        each["name"]: clean(str(each.get("value", ""))) for each in outputs.get("parameters") or ()
    }
    if "result" in outputs:
        found["result"] = clean(str(outputs["result"]))
    if "exitCode" in outputs:
        found["exitCode"] = outputs["exitCode"]
    if artifacts := sorted(each["name"] for each in outputs.get("artifacts") or ()):
        found["artifacts"] = artifacts
    return found


def _cleaner(workflow: Object) -> Any:
    metadata = workflow["metadata"]
    name, namespace = metadata["name"], metadata.get("namespace", "")

    def clean(text: str) -> str:
        text = text.replace(sys.executable, "PYTHON")
        text = text.replace(name, "NAME").replace(namespace, "NAMESPACE") if namespace else text.replace(name, "NAME")
        return _HASH.sub("HASH", _UID.sub("UID", _TIME.sub("TIME", text)))

    return clean


def document(name: str, verdict: Verdict) -> Object:
    return {
        "name": name,
        "phase": verdict.phase,
        "message": verdict.message,
        "seconds": round(verdict.seconds, 1),
        "outside": verdict.outside,
        "outputs": verdict.outputs,
        "nodes": [list(node) for node in verdict.nodes],
    }


def read(line: Object) -> Verdict:
    nodes = tuple(Node(*node) for node in line["nodes"])
    return Verdict(line["phase"], line["message"], nodes, line["outputs"], line["seconds"], line["outside"])
