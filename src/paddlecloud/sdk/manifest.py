"""Objects of the API as data: plain dicts with names for what everybody asks of them, and typed views of our own kinds.

The dict (`body`) is the truth and is kept whole, so what this release does not know survives reading and writing. A
typed view (`job.spec`, `job.status`) is read from it; `with_spec` carries changes of the view back and leaves the rest.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddlecloud.api.names import PADDLEJOB, ROLES
from paddlecloud.kube.resource import Object
from paddlecloud.kube.wording import cause_of
from paddlecloud.sdk import html
from paddlecloud.sdk.checking import ArgumentError

if TYPE_CHECKING:
    from paddlecloud.api.paddlejob import PaddleJobSpec, PaddleJobStatus

ManifestSource = str | os.PathLike[str] | Mapping[str, Any] | Sequence[Any] | Any
"""What can be applied: the path of a YAML file, YAML text, a dict, a typed object, a Manifest, or a list of these."""


class ManifestError(ArgumentError):
    """What was given is no object of Kubernetes; the text says where and why."""


class Manifest:
    def __init__(self, body: Object) -> None:
        self._body = body

    @property
    def body(self) -> Object:
        return self._body

    @property
    def api_version(self) -> str:
        return str(self.body.get("apiVersion") or "")

    @property
    def kind(self) -> str:
        return str(self.body.get("kind") or "")

    @property
    def metadata(self) -> Object:
        found = self.body.get("metadata")
        return found if isinstance(found, dict) else {}

    @property
    def name(self) -> str:
        return str(self.metadata.get("name") or "")

    @property
    def namespace(self) -> str:
        return str(self.metadata.get("namespace") or "")

    @property
    def uid(self) -> str:
        return str(self.metadata.get("uid") or "")

    @property
    def labels(self) -> dict[str, str]:
        return dict(self.metadata.get("labels") or {})

    @property
    def annotations(self) -> dict[str, str]:
        return dict(self.metadata.get("annotations") or {})

    @property
    def spec(self) -> Any:
        return self.body.get("spec") or {}

    @property
    def status(self) -> Any:
        return self.body.get("status") or {}

    @property
    def phase(self) -> str:
        return str((self.body.get("status") or {}).get("phase") or "")

    def to_dict(self) -> Object:
        """A copy: changing it changes nothing else."""
        return copy.deepcopy(self.body)

    def to_yaml(self) -> str:
        """The whole object; only the server's notes on who owns which field are left out."""
        from paddlecloud.kube.yamlio import dump

        meta = {key: value for key, value in self.metadata.items() if key != "managedFields"}
        return dump({**self.body, "metadata": meta} if "metadata" in self.body else self.body)

    def __repr__(self) -> str:
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        phase = f" {self.phase}" if self.phase else ""
        return f"<{self.kind} {where}{phase}>"

    def _repr_html_(self) -> str:
        return html.card(f"{self.kind} {self.name}", self._facts())

    def _facts(self) -> dict[str, object]:
        """What a notebook shows."""
        facts: dict[str, object] = {"Namespace": self.namespace, "Phase": self.phase}
        facts["Created"] = self.metadata.get("creationTimestamp")
        return {name: value for name, value in facts.items() if value}


class JobManifest(Manifest):
    """A PaddleJob. Its views raise `api.problems.DecodeError` when a field has another shape than the kind declares."""

    @property
    def spec(self) -> PaddleJobSpec:
        from paddlecloud.api.paddlejob import PaddleJobSpec
        from paddlecloud.api.problems import decode_as

        return decode_as(PaddleJobSpec, self.body.get("spec") or {})

    @property
    def status(self) -> PaddleJobStatus:
        from paddlecloud.api.paddlejob import PaddleJobStatus
        from paddlecloud.api.problems import decode_as

        return decode_as(PaddleJobStatus, self.body.get("status") or {})

    def with_spec(self, spec: PaddleJobSpec) -> JobManifest:
        """The same job with another spec; fields that the view does not know stay as they are."""
        from paddlecloud.api.problems import encode

        changed = _carry_over(self.body.get("spec") or {}, encode(self.spec), encode(spec))
        return JobManifest({**self.to_dict(), "spec": changed})

    def _facts(self) -> dict[str, object]:
        status = self.body.get("status") or {}
        roles = {role.title(): (status.get(role) or {}).get("ready") for role in ROLES}
        facts = {"Namespace": self.namespace, "Phase": self.phase, "Mode": status.get("mode"), **roles}
        facts |= {"Restarts": status.get("restarts"), "Message": status.get("message")}
        facts |= {"Started": status.get("startTime"), "Ended": status.get("completionTime")}
        return {name: value for name, value in facts.items() if value}


def _carry_over(raw: Any, before: Any, after: Any) -> Any:
    """`raw` with the difference between two readings of it applied. Lists are one value, as in a merge patch."""
    if not (isinstance(raw, dict) and isinstance(before, dict) and isinstance(after, dict)):
        return raw if before == after else after
    kept = {key: value for key, value in raw.items() if key not in before or key in after}
    for key, value in after.items():
        kept[key] = _carry_over(raw.get(key), before.get(key), value)
    return kept


def read(source: ManifestSource) -> list[Manifest]:
    """The objects of a source, in the order in which they can be applied. Raises `ManifestError`."""
    found = [manifest(body, where) for where, body in _bodies(source)]
    if not found:
        raise ManifestError("there is no object in it")
    first = {"Namespace": 0, "CustomResourceDefinition": 1}
    return sorted(found, key=lambda one: first.get(one.kind, 2))


def manifest(body: Any, where: str = "the object") -> Manifest:
    """A `JobManifest` for a PaddleJob, a `Manifest` for everything else."""
    if not isinstance(body, dict):
        raise ManifestError(f"{where} is a {type(body).__name__}, not an object")
    for name in ("apiVersion", "kind"):
        if not isinstance(body.get(name), str) or not body[name]:
            raise ManifestError(f"{where} is no object of Kubernetes: {name} is missing or not text")
    meta = body.get("metadata")
    if not isinstance(meta, dict) or not meta.get("name"):
        raise ManifestError(f"{where}: {body['kind']} has no metadata.name")
    return JobManifest(body) if is_job(body) else Manifest(body)


def is_job(body: Mapping[str, Any]) -> bool:
    return body.get("kind") == PADDLEJOB.kind and str(body.get("apiVersion", "")).startswith(f"{PADDLEJOB.group}/")


def _bodies(source: ManifestSource) -> Iterator[tuple[str, Any]]:
    import msgspec

    if isinstance(source, Manifest):
        yield source.name, source.body
    elif isinstance(source, msgspec.Struct):
        from paddlecloud.api.problems import encode

        yield type(source).__name__, encode(source)
    elif isinstance(source, Mapping):
        yield from _unfold("the object", dict(source))
    elif isinstance(source, (str, os.PathLike)):
        yield from _text(source)
    elif isinstance(source, Sequence):
        for one in source:
            yield from _bodies(one)
    else:
        raise ManifestError(f"a {type(source).__name__} cannot be applied: give a path, YAML, a dict or an object")


def _text(source: str | os.PathLike[str]) -> Iterator[tuple[str, Any]]:
    """Text with a line break or a colon and a space is YAML; anything else is the path of a file."""
    from paddlecloud.kube.yamlio import YamlError, load_all

    where, text = "the text", str(source)
    if not isinstance(source, str) or ("\n" not in source and ": " not in source):
        where = os.fspath(source)
        try:
            text = Path(source).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ManifestError(f"cannot read {where}: {cause_of(error)}") from error
    try:
        for line, value in load_all(text):
            yield from _unfold(f"{where}:{line}", value)
    except YamlError as error:
        raise ManifestError(f"{where}:{error.line}: {error.problem}") from error


def _unfold(where: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and str(value.get("kind", "")).endswith("List") and isinstance(value.get("items"), list):
        for item in value["items"]:
            yield from _unfold(where, item)
    else:
        yield where, value
