"""A compiled pipeline from its text: one document of the pipeline, and one of the platform if kfp-kubernetes was used.

Reads YAML and JSON within the bounds of `kube.yamlio`. What the documents refer to is checked in `checks.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from paddlecloud.kube import yamlio
from paddlecloud.pipelines.ir.checks import check
from paddlecloud.pipelines.ir.errors import InvalidPipeline
from paddlecloud.pipelines.ir.pipeline_spec import PipelineSpec
from paddlecloud.pipelines.ir.platform_spec import ExecutorConfig, KubernetesPlatform, PlatformSpec

NEWEST_SCHEMA = (2, 1)
"""kfp 2.17 writes 2.1.0. What a newer one means is not known here."""
LARGEST = 8 * 1024 * 1024
MOST_DOCUMENTS = 2
"""The pipeline, and its platform."""
_VERSION = re.compile(r"(\d{1,6})\.(\d{1,6})(?:\.\S{1,40})?")
_PLACE = re.compile(r"(?P<message>.*?)(?: - at `(?P<path>[^`]*)`)?$", re.DOTALL)


class Pipeline(msgspec.Struct, frozen=True, kw_only=True):
    """A pipeline that was read and whose references were checked."""

    spec: PipelineSpec
    platform: KubernetesPlatform = msgspec.field(default_factory=KubernetesPlatform)

    @property
    def name(self) -> str:
        return self.spec.pipeline_info.name

    def config_of(self, executor: str) -> ExecutorConfig:
        return self.platform.deployment_spec.executors.get(executor, ExecutorConfig())


def read(documents: bytes) -> Pipeline:
    """Raises InvalidPipeline with the line or the field to mend."""
    if len(documents) > LARGEST:
        raise InvalidPipeline("", f"the file has {len(documents):,} bytes; a pipeline has at most {LARGEST:,}")
    try:
        text = documents.decode()
        found = [value for _, value in yamlio.load_all(text, MOST_DOCUMENTS + yamlio.MAX_SPARE)]
    except UnicodeDecodeError:
        raise InvalidPipeline("", "the file is not text in UTF-8") from None
    except yamlio.YamlError as why:
        raise InvalidPipeline(f"line {why.line}", why.problem) from None
    return read_documents(found)


def read_documents(documents: Sequence[Any]) -> Pipeline:
    """As `read`, of documents that are parsed already: the pipeline's, and the platform's where there is one."""
    if not documents:
        raise InvalidPipeline("", "the file is empty; compile a pipeline with kfp.compiler.Compiler().compile()")
    if len(documents) > MOST_DOCUMENTS:
        raise InvalidPipeline("", f"{len(documents)} documents; a pipeline has one, and one for its platform")
    if not all(isinstance(each, Mapping) for each in documents):
        raise InvalidPipeline("", "not a pipeline that kfp 2 compiled: each document must be a map")
    first = documents[0]
    if first.get("apiVersion") and first.get("kind"):
        raise InvalidPipeline(
            "kind", f"{first['kind']!r} is a Kubernetes object, not a pipeline of kfp 2: create it as it is"
        )
    if "pipelineSpec" in first:
        raise InvalidPipeline(
            "pipelineSpec", "a pipeline job of an early kfp 2; compile the pipeline again with kfp 2.0 or later"
        )
    _check_version(first)
    spec: PipelineSpec = _converted(first, PipelineSpec)
    platform = KubernetesPlatform()
    if len(documents) == 2:
        described: PlatformSpec = _converted(documents[1], PlatformSpec)
        if others := sorted(set(described.platforms) - {"kubernetes"}):
            raise InvalidPipeline(f"platforms.{others[0]}", "only the platform kubernetes is carried out")
        platform = described.platforms.get("kubernetes", platform)
    pipeline = Pipeline(spec=spec, platform=platform)
    check(spec, platform)
    return pipeline


def _check_version(document: Mapping[str, Any]) -> None:
    """Before the types are: fields of a newer schema would be reported one by one otherwise."""
    version = document.get("schemaVersion")
    if version is None:
        raise InvalidPipeline("schemaVersion", "required: this is not a pipeline that kfp 2 compiled")
    match = _VERSION.fullmatch(str(version))
    if match is None:
        raise InvalidPipeline("schemaVersion", f"{str(version)[:40]!r} is not a version such as 2.1.0")
    if (int(match[1]), int(match[2])) > NEWEST_SCHEMA:
        known = ".".join(str(part) for part in NEWEST_SCHEMA)
        maker = str(document.get("sdkVersion", "an unknown SDK"))[:40]
        raise InvalidPipeline(
            "schemaVersion",
            f"{version} (by {maker}) is newer than {known}, the newest "
            "that is known here; compile with an older kfp, or update PaddleCloud",
        )


def _converted(document: Any, kind: type[Any]) -> Any:
    try:
        return msgspec.convert(document, kind)
    except (msgspec.ValidationError, RecursionError) as why:
        match = _PLACE.match(str(why))
        path = (match["path"] or "") if match else ""
        raise InvalidPipeline(path.removeprefix("$").lstrip("."), match["message"] if match else str(why)) from None
