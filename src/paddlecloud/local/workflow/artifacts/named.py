"""Which keys of the built-in repository the outputs of a step name. Pure.

A step names them as output artifacts, or as parameters: those of a pipeline of kfp 2 pass artifacts on as references in
JSON, with a `key` (docs/design/pipelines.md).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from paddlecloud.local.workflow.artifacts.locations import LOG, Artifact, key_of
from paddlecloud.local.workflow.expressions.budget import take_work

_REFERENCE = "artifact-"
"""The name of a parameter that refers to artifacts begins with it."""


def named_keys(outputs: Mapping[str, Any], *, built_in: bool) -> Iterator[str]:
    """`built_in` says whether references are to the built-in repository: they have a key alone."""
    elsewhere: set[str] = set()
    artifacts = outputs.get("artifacts")
    for artifact in artifacts if isinstance(artifacts, list) else ():
        if not isinstance(artifact, dict) or not isinstance(place := artifact.get("s3"), dict):
            continue
        key = key_of(artifact)
        if key is None:
            elsewhere.add(str(place.get("key")))
        elif not _is_log(artifact):
            yield key
    if built_in:
        parameters = outputs.get("parameters")
        for parameter in parameters if isinstance(parameters, list) else ():
            yield from (key for key in _referred(parameter) if key not in elsewhere)


def _is_log(artifact: Artifact) -> bool:
    """No step takes the log of another one (`archiveLogs`): an answer is as good without it."""
    return str(artifact.get("name")).endswith(LOG) and not artifact.get("path")


def _referred(parameter: Any) -> Iterator[str]:
    """A reference without a digest may have no content: metrics are metadata alone. What was stored although its step
    made no digest is among the output artifacts of that step."""
    if not isinstance(parameter, dict) or not str(parameter.get("name")).startswith(_REFERENCE):
        return
    text = parameter.get("value")
    if not isinstance(text, str) or text.lstrip()[:1] not in ("{", "["):
        return
    take_work(1, len(text))
    try:
        todo = [json.loads(text)]
    except (ValueError, RecursionError):
        return
    while todo:  # loops in loops give lists of lists
        found = todo.pop()
        if isinstance(found, list):
            todo += found
        elif isinstance(found, dict) and isinstance(found.get("key"), str) and found.get("digest"):
            yield found["key"]
