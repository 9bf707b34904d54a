"""An object as text for people: the parts of `pdc describe`. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from paddlecloud.api.argo import GROUP
from paddlecloud.cli import times
from paddlecloud.cli.objects.events import planned_ends_of
from paddlecloud.cli.objects.members import Member
from paddlecloud.cli.objects.why import Verdict, why
from paddlecloud.cli.render import events as event_rows
from paddlecloud.cli.render.table import render
from paddlecloud.kube.resource import Object, controller_of

LONG = 120
LONG_VALUE = 256
"""Characters of a value in the spec or status of a workflow."""
HIDDEN_ANNOTATIONS = ("kubectl.kubernetes.io/last-applied-configuration",)


def describe(obj: Object, *, members: Sequence[Member], events: Sequence[Object], verdict: Verdict, now: float) -> str:
    """All of it; the first line is the reason why."""
    lines = [f"Why:          {verdict.text}", *(f"              {line}" for line in verdict.details)]
    lines += ["", *_identity(obj, now)]
    lines += _conditions(obj, now)
    if obj.get("kind") == "Pod":
        lines += _containers(obj)
    elif members:
        lines += _pods(members, now)
    body = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata", "status")}
    if obj.get("kind") == "Secret":
        body = {key: _masked(value) if key in ("data", "stringData") else value for key, value in body.items()}
    status = {key: value for key, value in (obj.get("status") or {}).items() if key not in _SHOWN_ELSEWHERE}
    if status.get("lastValidSpec") == obj.get("spec"):
        status.pop("lastValidSpec", None)  # of interest only where the job runs by another spec than the one shown
    if str(obj.get("apiVersion")).startswith(f"{GROUP}/"):
        body, status = _cut(body), _cut(status)
    for key, value in body.items():
        lines += ["", *_yaml({key: value})]
    if status:
        lines += ["", *_yaml({"status": status})]
    lines += _events(events, now, planned_ends_of([obj, *(one.pod for one in members)]))
    return "\n".join(lines) + "\n"


_SHOWN_ELSEWHERE = ("conditions", "containerStatuses", "initContainerStatuses")


def _identity(obj: Object, now: float) -> list[str]:
    meta = obj["metadata"]
    fields: list[tuple[str, str]] = [("Name", str(meta["name"]))]
    if meta.get("namespace"):
        fields.append(("Namespace", str(meta["namespace"])))
    fields.append(("Kind", f"{obj.get('kind')} ({obj.get('apiVersion')})"))
    created = meta.get("creationTimestamp")
    fields.append(("Created", f"{created} ({times.age(created, now)} ago)" if created else "<unknown>"))
    owner = controller_of(obj)
    if owner:
        fields.append(("Controlled by", f"{owner.get('kind')}/{owner.get('name')}"))
    if meta.get("deletionTimestamp"):
        fields.append(("Deleting", str(meta["deletionTimestamp"])))
    if meta.get("finalizers"):
        fields.append(("Finalizers", ", ".join(map(str, meta["finalizers"]))))
    lines = [f"{name + ':':<13} {value}" for name, value in fields]
    for name in ("labels", "annotations"):
        pairs = [(key, value) for key, value in (meta.get(name) or {}).items() if key not in HIDDEN_ANNOTATIONS]
        for index, (key, value) in enumerate(sorted(pairs)):
            head = f"{name.title()}:" if index == 0 else ""
            lines.append(f"{head:<13} {key}={_short(value)}")
    return lines


def _conditions(obj: Object, now: float) -> list[str]:
    conditions = [entry for entry in (obj.get("status") or {}).get("conditions") or () if isinstance(entry, dict)]
    if not conditions:
        return []
    rows = [
        [
            entry.get("type"),
            entry.get("status"),
            times.age(entry.get("lastTransitionTime"), now) if entry.get("lastTransitionTime") else "",
            entry.get("reason") or "",
            entry.get("message") or "",
        ]
        for entry in conditions
    ]
    return ["", "Conditions:", *_indented(render(["Type", "Status", "Since", "Reason", "Message"], rows))]


def _containers(pod: Object) -> list[str]:
    status = pod.get("status") or {}
    rows = []
    for field in ("initContainerStatuses", "containerStatuses"):
        for entry in status.get(field) or ():
            name = f"{entry.get('name')}{' (init)' if field.startswith('init') else ''}"
            rows.append(
                [
                    name,
                    _state(entry.get("state") or {}),
                    entry.get("ready"),
                    entry.get("restartCount", 0),
                    entry.get("image"),
                ]
            )
    if not rows:
        return []
    return ["", "Containers:", *_indented(render(["Name", "State", "Ready", "Restarts", "Image"], rows))]


def _state(state: Object) -> str:
    for name, body in state.items():
        detail = body.get("reason") if isinstance(body, dict) else ""
        code = f", exit code {body['exitCode']}" if isinstance(body, dict) and "exitCode" in body else ""
        return f"{name}{f' ({detail})' if detail else ''}{code}"
    return "unknown"


def _pods(members: Sequence[Member], now: float) -> list[str]:
    shown = list(members[:50])
    rows = [
        [
            one.name,
            (one.pod.get("status") or {}).get("phase") or "",
            (one.pod.get("spec") or {}).get("nodeName"),
            why(one.pod, now=now).text,
        ]
        for one in shown
    ]
    more = [f"  … and {len(members) - len(shown)} more: pdc get pods"] if len(members) > len(shown) else []
    return ["", "Pods:", *_indented(render(["Name", "Phase", "Node", "Why"], rows)), *more]


def _events(events: Sequence[Object], now: float, planned: Mapping[str, str]) -> list[str]:
    if not events:
        return ["", "Events:       <none>"]
    rows = event_rows.rows(events[-30:], now, planned)
    return ["", "Events:", *_indented(render(event_rows.COLUMNS, rows))]


def _indented(text: str) -> Iterator[str]:
    return (f"  {line}" for line in text.splitlines())


def _yaml(value: Object) -> list[str]:
    """Under the names the API has for its fields, so that they can be copied into a file or a JSONPath."""
    from paddlecloud.kube.yamlio import dump

    return dump(value).splitlines()


def _masked(values: Any) -> Any:
    if not isinstance(values, dict):
        return "<hidden>"
    return {key: f"<{len(str(value)) * 3 // 4} bytes>" for key, value in values.items()}


def _cut(value: Any) -> Any:
    """Without the rest of long texts: workflows carry whole programs and pipelines as values of parameters."""
    if isinstance(value, dict):
        return {key: _cut(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_cut(each) for each in value]
    if isinstance(value, str) and len(value) > LONG_VALUE:
        return f"{value[:LONG_VALUE]}… ({len(value):,} characters; -o yaml of `pdc get` shows all)"
    return value


def _short(value: object) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= LONG else f"{text[:LONG]}…"
