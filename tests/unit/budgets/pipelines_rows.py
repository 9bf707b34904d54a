"""What callers of the pipelines' API send: bodies, packages, filters, page tokens, schedules."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import random
import zipfile
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

from paddlecloud.api.argo_nodes import packed
from paddlecloud.pipelines import ir
from paddlecloud.pipelines.api import filters, handlers, identifiers, paging, routing, server, v1beta1, v2beta1
from paddlecloud.pipelines.runs import package, retry, schedule, states, submission
from paddlecloud.pipelines.runs.nodes import nodes_of
from unit.budgets.inputs import JSON, Row, times

FIELDS = ("created_at", "name", "id", "state")
YAML: dict[str, Callable[[int], bytes]] = {
    "lists in lists": times(b"["),
    "blocks in blocks": times(b"- "),
    "many keys": lambda size: b"".join(b"k%d: 1\n" % n for n in range(size // 9)),
    "aliases": times(b"- *a\n", b"a: &a [x, x, x, x]\nb:\n"),
    "documents": times(b"---\na: 1\n"),
    "one text": times(b"a", b"kind: "),
}


def zip_of(size: int) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for number in range(max(1, size // 100)):
            archive.writestr(zipfile.ZipInfo(f"d{number}/"), b"")
    return held.getvalue()


def workflow_of(size: int) -> Any:
    """With parameters and nodes, each of which is a parent of the next."""
    count = size // 64
    nodes = {
        f"n{at}": {"type": "Retry", "phase": "Failed", "children": [f"n{at + 1}"], "name": f"w.n{at}", "message": "m"}
        for at in range(count)
    }
    return {
        "kind": "Workflow",
        "metadata": {"name": "w"},
        "spec": {"arguments": {"parameters": [{"name": f"p{at}", "value": "{{workflow.uid}}"} for at in range(count)]}},
        "status": {"phase": "Failed", "nodes": nodes},
    }


def submit(workflow: Any) -> None:
    values = {each["name"]: "x" for each in workflow["spec"]["arguments"]["parameters"]}
    request = submission.RunRequest("r", "n", run_id="u", parameters=values)
    submission.workflow_of(package.of_document(workflow), request, suffix="x")


def compiled(tasks: dict[str, Any], args: list[str], **component: Any) -> bytes:
    """A pipeline of kfp 2 whose tasks all use one component."""
    step = {"executorLabel": "e", "inputDefinitions": {"parameters": {"x": {"defaultValue": "d"}}}, **component}
    return json.dumps(
        {
            "schemaVersion": "2.1.0",
            "pipelineInfo": {"name": "p"},
            "components": {"c": step},
            "deploymentSpec": {"executors": {"e": {"container": {"image": "i", "args": args}}}},
            "root": {"dag": {"tasks": {name: {"componentRef": {"name": "c"}, **task} for name, task in tasks.items()}}},
        }
    ).encode()


def text_input(text: str) -> dict[str, Any]:
    return {"inputs": {"parameters": {"x": {"runtimeValue": {"constant": text}}}}}


IR: dict[str, Callable[[int], bytes]] = {
    "tasks": lambda size: compiled({f"t{at}": {} for at in range(size // 64)}, []),
    "tasks in a row": lambda size: compiled(
        {f"t{at}": {"dependentTasks": [f"t{at - 1}"] if at else []} for at in range(size // 96)}, []
    ),
    "one dependency many times": lambda size: compiled({"a": {}, "b": {"dependentTasks": ["a"] * (size // 5)}}, []),
    "a circle": lambda size: compiled(
        {f"t{at}": {"dependentTasks": [f"t{(at + 1) % (size // 96)}"]} for at in range(size // 96)}, []
    ),
    "placeholders": lambda size: compiled({"t": {}}, ["{{$.inputs.parameters['x']}}" * (size // 28)]),
    "braces": lambda size: compiled({"t": text_input("{" * size)}, ["{{$" * (size // 3)]),
    "words of the run": lambda size: compiled({"t": text_input("{{$.pipeline_job_name}}" * (size // 22))}, []),
    "choices in choices": lambda size: compiled({"t": {}}, ['{"Concat": [' * (size // 12)]),
    "a condition": lambda size: compiled({"t": {"triggerPolicy": {"condition": "1 == 1 && " * (size // 10)}}}, []),
    "a default that all tasks use": lambda size: compiled(
        {f"t{at}": {} for at in range(size // 128)}, [],
        inputDefinitions={"parameters": {"x": {"defaultValue": "d" * (size // 2)}}},
    ),
}  # fmt: skip


def translate(documents: bytes) -> None:
    with contextlib.suppress(ir.InvalidPipeline):
        ir.translate(documents, {}, "run")


def rows_of(size: int) -> list[dict[str, Any]]:
    return [{"id": str(at), "name": "a", "created_at": 0.0, "state": ""} for at in range(size // 32)]


def token_of(size: int) -> str:
    return base64.urlsafe_b64encode(b"[" * size).decode()


def compressed_nodes_of(size: int) -> dict[str, Any]:
    nodes = {f"n{at}": {"id": f"n{at}", "children": [[]]} for at in range(size // 64)}
    return {"metadata": {"name": "w"}, "status": packed({"nodes": nodes})}


def names_of(size: int) -> tuple[str, str]:
    """A long name, and one that differs from it in every third character."""
    drawn = random.Random(1)
    name = [chr(0x4E00 + drawn.randrange(9000)) for _ in range(size)]
    return "".join(name), "".join("x" if at % 3 == 0 else each for at, each in enumerate(name))


def run_of(size: int) -> dict[str, Any]:
    """The body of a run, in the words of both versions, whose reference comes last of very many."""
    count = size // 64
    named = [{"name": f"p{at}", "value": "1"} for at in range(count)]
    references = [{"key": {"type": "JOB", "id": str(at)}} for at in range(count)]
    return {
        "name": "r",
        "pipeline_spec": {"parameters": named},
        "resource_references": [*references, {"key": {"type": "NAMESPACE", "id": "n"}}],
        "runtime_config": {"parameters": {each["name"]: "1" for each in named}},
    }


def read_run(body: dict[str, Any]) -> None:
    for words in (v1beta1, v2beta1):
        words.namespace_in_body(body)
        words.experiment_in_body(body)
        with contextlib.suppress(handlers.RequestRefused):
            words.run_in_body(body)


def wrong_name(names: tuple[str, str]) -> None:
    known, given = names
    with contextlib.suppress(package.PackageError):
        submission.check_names([known], [given])


def pipelines() -> Iterator[Row]:
    for name, make in JSON.items():
        yield Row("pipelines: bodies", name, make, server.decoded)
        yield Row("pipelines: packages", f"JSON of {name}", make, package.read)
    for name, make in YAML.items():
        yield Row("pipelines: packages", f"YAML of {name}", make, package.read, 1 << 18)
    for name, make in IR.items():
        yield Row("pipelines: packages", f"kfp 2 of {name}", cache(make), translate, 1 << 18)
    yield Row("pipelines: packages", "members of a zip", cache(zip_of), package.read, 1 << 16)
    yield Row("pipelines: runs", "parameters", cache(workflow_of), submit, 1 << 19)
    yield Row("pipelines: runs", "references", cache(run_of), read_run, 1 << 19)
    yield Row("pipelines: runs", "a wrong name", cache(names_of), wrong_name, 1 << 13)
    yield Row("pipelines: runs", "steps to retry", cache(workflow_of), retry.retried, 1 << 18)
    yield Row("pipelines: runs", "steps that failed", cache(workflow_of), states.failure, 1 << 18)
    yield Row("pipelines: runs", "compressed nodes", cache(compressed_nodes_of), nodes_of, 1 << 18)
    values = '{"predicates":[{"op":8,"key":"name","stringValues":{"values":['
    for name, texts in {"lists": times("["), "values": times('"a",', values, '"b"]}}]}')}.items():
        yield Row("pipelines: lists", f"a filter of {name}", texts, partial(filters.parse, fields=FIELDS))
    yield Row("pipelines: lists", "a page token", token_of,
              lambda text: paging.page([], paging.Query(page_token=text), FIELDS))  # fmt: skip
    yield Row(
        "pipelines: lists", "a sorting", times("a "), lambda text: paging.page([], paging.Query(sort_by=text), FIELDS)
    )
    yield Row("pipelines: lists", "rows", cache(rows_of), lambda rows: paging.page(rows, paging.Query(), FIELDS))
    for name, texts in {"words": times("a"), "dots": times("."), "slashes": times("/x", "/apis/v1beta1/runs"),
                        "colons": times(":a", "/apis/v2beta1/runs/1")}.items():  # fmt: skip
        yield Row("pipelines: paths", name, texts, lambda path: routing.match(server.ROUTES, "GET", path))
        yield Row("pipelines: ids", name, texts, lambda text: identifiers.read(text, "n"))
    for name, texts in {
        "stars": times("* "),
        "commas": times("1,"),
        "ranges": times("1-2,"),
        "digits": times("1"),
    }.items():
        yield Row("pipelines: schedules", name, texts, lambda text: schedule.read(cron=text))
