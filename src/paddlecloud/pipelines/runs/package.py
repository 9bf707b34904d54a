"""A compiled pipeline as users have it in a file: an Argo workflow (also what kfp 1 compiles), or the IR of kfp 2.

kfp 1 wraps it in a zip or tar.gz file if asked to. Sizes are counted while unpacking: the file may come from anybody.
"""

from __future__ import annotations

import io
import tarfile
import zipfile
import zlib
from typing import Any, Literal, NamedTuple

import msgspec

from paddlecloud.api.json_values import has_more_values
from paddlecloud.kube import yamlio
from paddlecloud.kube.resource import Object
from paddlecloud.pipelines import names

MAX_BYTES = 4 << 20
"""Of a package, packed or unpacked. A Workflow is stored in at most 1.5 MiB; JSON in JSON takes up to twice as much."""
MAX_VALUES = 500_000
"""Of a package in JSON; `yamlio` has the same limit."""
MOST_DOCUMENTS = 2
"""Of a file: what kfp 2 compiles, and its platform. A Workflow stands alone."""
MAX_MEMBERS = 100
"""Files of an archive that are looked at."""
_NAMES = ("pipeline.yaml", "pipeline.yml")


class PackageError(ValueError):
    """The file is no pipeline; the message names the reason and what to do."""


class Parameter(NamedTuple):
    name: str
    value: Any = None
    """Its default; None where the pipeline has none."""


class Package(NamedTuple):
    format: Literal["workflow", "ir"]
    spec: Object
    """The Workflow, or the PipelineSpec."""
    platforms: Object
    """The PlatformSpec of an IR file (its second document); empty for most."""
    name: str
    description: str
    parameters: tuple[Parameter, ...]


def read(data: bytes) -> Package:
    """From the bytes of a file. Raises `PackageError`."""
    return parse(text_of(data))


def parse(text: str) -> Package:
    """From YAML or JSON."""
    try:
        if text.lstrip()[:1] == "{":
            if has_more_values(text.encode(), MAX_VALUES):
                raise PackageError(f"the pipeline has more than {MAX_VALUES:,} values; that is the most that is read")
            documents: list[Any] = [msgspec.json.decode(text)]
        else:
            documents = [value for _, value in yamlio.load_all(text, MOST_DOCUMENTS + yamlio.MAX_SPARE)]
    except (yamlio.YamlError, msgspec.DecodeError, RecursionError) as error:
        raise PackageError(f"the pipeline is not valid YAML: {error}") from error
    if not documents or not all(isinstance(document, dict) for document in documents):
        raise PackageError("the pipeline is empty or not a mapping; compile it with kfp, or give an Argo Workflow")
    package = of_document(documents[0], documents[1] if len(documents) > 1 else {})
    if len(documents) > (MOST_DOCUMENTS if package.format == "ir" else 1):
        raise PackageError(
            f"the file has {len(documents)} documents; a pipeline is one, and of kfp 2 one more for its platform. "
            "Create other objects before it, with `kubectl apply`"
        )
    return package


def of_document(spec: Object, platforms: Object | None = None) -> Package:
    """From what was decoded already: a Workflow, a PipelineSpec, or both as kfp 2's client sends them."""
    wrapped = spec.get("pipeline_spec")
    if isinstance(wrapped, dict):
        outer = spec.get("platform_spec")
        spec, platforms = wrapped, outer if isinstance(outer, dict) else {}
    kind = spec.get("kind")
    if kind == names.WORKFLOWS.kind:
        return _of_workflow(spec)
    if "pipelineInfo" in spec:
        return _of_ir(spec, platforms or {})
    if kind is not None:
        raise PackageError(f"the kind is {str(kind)[:60]}; a pipeline is an Argo Workflow or what kfp compiles")
    if "pipelineSpec" in spec:
        raise PackageError(
            "this is a job of kfp 1.8's v2 compiler; compile it without mode=V2_COMPATIBLE, or with kfp 2"
        )
    raise PackageError("this is neither an Argo Workflow (kind: Workflow) nor a file compiled by kfp 2 (pipelineInfo)")


def _of_workflow(workflow: Object) -> Package:
    spec, meta = _mapping(workflow, "spec"), _mapping(workflow, "metadata")
    written = (_mapping(meta, "annotations")).get(names.PIPELINE_SPEC)
    described: Any = {}
    if isinstance(written, str):
        try:
            described = msgspec.json.decode(written)
        except (msgspec.DecodeError, RecursionError):
            described = {}  # an annotation that somebody else wrote; the workflow's own name serves
    described = described if isinstance(described, dict) else {}
    found = _mapping(spec, "arguments").get("parameters") or []
    if not isinstance(found, list) or not all(isinstance(each, dict) and "name" in each for each in found):
        raise PackageError("spec.arguments.parameters must be a list of parameters with names")
    name = described.get("name") or meta.get("name") or str(meta.get("generateName") or "pipeline").rstrip("-")
    parameters = tuple(Parameter(str(each["name"]), each.get("value")) for each in found)
    return Package("workflow", workflow, {}, str(name), str(described.get("description") or ""), parameters)


def _of_ir(spec: Object, platforms: Object) -> Package:
    info, root = _mapping(spec, "pipelineInfo"), _mapping(spec, "root")
    definitions = _mapping(_mapping(root, "inputDefinitions"), "parameters")
    parameters = tuple(
        Parameter(name, definition.get("defaultValue") if isinstance(definition, dict) else None)
        for name, definition in definitions.items()
    )
    name = str(info.get("name") or "pipeline")
    return Package("ir", spec, platforms, name, str(info.get("description") or ""), parameters)


def _mapping(obj: Object, field: str) -> Object:
    found = obj.get(field)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise PackageError(f"{field} must be a mapping")
    return found


def text_of(data: bytes) -> str:
    """The YAML or JSON in the bytes of a file, unpacked where it is an archive."""
    if len(data) > MAX_BYTES:
        raise PackageError(f"the package has {len(data)} bytes; at most {MAX_BYTES} are read")
    try:
        if data[:4] == b"PK\x03\x04":
            data = _unzipped(data)
        elif data[:2] == b"\x1f\x8b":
            data = _untarred(data)
        return data.decode()
    except UnicodeDecodeError as error:
        raise PackageError("the package is neither text (UTF-8) nor a zip or tar.gz file") from error
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, OSError, RuntimeError) as error:
        raise PackageError(f"the archive cannot be read: {error}") from error


def _unzipped(data: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [member.filename for member in archive.infolist()[:MAX_MEMBERS]]
        with archive.open(_choice(members)) as file:
            return _bounded(file.read(MAX_BYTES + 1))


def _untarred(data: bytes) -> bytes:
    """The stream is unpacked up to a limit before anything is looked at: headers of tar files may be bombs."""
    content = _bounded(zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(data, MAX_BYTES + 1))
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        files: dict[str, tarfile.TarInfo] = {}
        for _ in range(MAX_MEMBERS):
            member = archive.next()
            if member is None:
                break
            if member.isfile():
                files[member.name] = member
        file = archive.extractfile(files[_choice(list(files))])
        return file.read() if file else b""


def _choice(members: list[str]) -> str:
    """kfp's rule: a single YAML file, or the one that is called pipeline.yaml."""
    named = [name for name in members if name.endswith((".yaml", ".yml"))]
    chosen = [name for name in named if name.rpartition("/")[2] in _NAMES] or named
    if len(chosen) != 1:
        raise PackageError("the archive must hold one YAML file, or one that is called pipeline.yaml")
    return chosen[0]


def _bounded(data: bytes) -> bytes:
    if len(data) > MAX_BYTES:
        raise PackageError(f"the archive holds more than {MAX_BYTES} bytes; that is the most that is read")
    return data
