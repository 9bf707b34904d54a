"""What the API does, for both of its versions: one function for each call.

The versions differ in what they call things, so every function gets a `Vocabulary`: the module `v1beta1` or `v2beta1`,
which reads the fields of requests and writes those of answers. Calls that only one version has, or that the two carry
out in different ways, are in that version's own `TABLE`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, Protocol

from paddlecloud.kube.resource import Object
from paddlecloud.pipelines.api import argo_objects, library, recurring, runs
from paddlecloud.pipelines.api.argo_objects import RECURRING_RUN, RUN
from paddlecloud.pipelines.api.artifacts import read_artifact
from paddlecloud.pipelines.api.caller import Caller
from paddlecloud.pipelines.api.records import Record
from paddlecloud.pipelines.api.replies import RequestRefused, text_in
from paddlecloud.pipelines.api.routing import Handler, Request, Table
from paddlecloud.pipelines.api.wire import page_query, read_trigger, shown_list
from paddlecloud.pipelines.runs.submission import RunRequest


class RunAsked(NamedTuple):
    """What a request for a run or a recurring run names: one of manifest, document, and pipeline or version."""

    name: str
    manifest: str = ""
    """A package as text."""
    document: Object | None = None
    """A package as the object that its text holds."""
    pipeline_id: str = ""
    version_id: str = ""
    parameters: Mapping[str, Any] = {}


class Vocabulary(Protocol):
    """What a version of the API calls things. What is read from a body or a query is empty where it is not given."""

    __name__: str
    TABLE: Table
    """Calls of this version alone."""
    RECURRING_PATH: str
    RECURRING_LIST: str
    """The field of a list of recurring runs."""
    ACTION: str
    """What is between an id and what is done with it, in the paths of actions such as terminate."""
    NOTHING_TO_RUN: str
    """The refusal of a run that names no pipeline."""

    def name_in_body(self, body: Object) -> str: ...
    def namespace_in_body(self, body: Object) -> str: ...
    def experiment_in_body(self, body: Object) -> str: ...
    def enabled_in_body(self, body: Object) -> bool: ...
    def run_in_body(self, body: Object) -> RunAsked: ...
    def namespace_in_query(self, query: Mapping[str, str]) -> str: ...
    def experiment_in_query(self, query: Mapping[str, str]) -> str: ...
    def upload_in_query(self, query: Mapping[str, str]) -> tuple[str, str]:
        """Name and namespace of what is uploaded."""

    def experiment(self, caller: Caller, record: Record) -> Object: ...
    def run(self, caller: Caller, workflow: Object) -> Object: ...
    def run_created(self, caller: Caller, workflow: Object) -> Object: ...
    def run_detail(self, caller: Caller, workflow: Object) -> Object: ...
    def recurring_run(self, caller: Caller, cron: Object) -> Object: ...
    async def pipeline(self, caller: Caller, record: Record, version: Record | None = None) -> Object: ...
    async def pipeline_version(self, caller: Caller, record: Record) -> Object: ...


# Experiments


async def create_experiment(words: Vocabulary, caller: Caller, request: Request) -> Object:
    body = request.body
    namespace = caller.namespace_named(words.namespace_in_body(body))
    name, description = words.name_in_body(body), text_in(body, "description")
    made = await library.create(caller, "experiment", name, namespace, description=description)
    return words.experiment(caller, made)


async def get_experiment(words: Vocabulary, caller: Caller, request: Request) -> Object:
    return words.experiment(caller, await library.find(caller, "experiment", request.path["id"]))


async def list_experiments(words: Vocabulary, caller: Caller, request: Request) -> Object:
    namespace = caller.namespace_named(words.namespace_in_query(request.query))
    page = await library.listed(caller, "experiment", namespace, page_query(request))
    return shown_list("experiments", [words.experiment(caller, each) for each in page.records], page)


# Runs


async def create_run(words: Vocabulary, caller: Caller, request: Request) -> Object:
    source, wanted = await _wanted(words, caller, request.body)
    return words.run_created(caller, await runs.create(caller, source, wanted))


async def get_run(words: Vocabulary, caller: Caller, request: Request) -> Object:
    return await asyncio.to_thread(words.run_detail, caller, await runs.find(caller, request.path["id"]))


async def list_runs(words: Vocabulary, caller: Caller, request: Request) -> Object:
    experiment, namespace = _place(words, caller, request)
    page = await runs.listed(caller, namespace, page_query(request), experiment_id=experiment)
    found = [
        await asyncio.to_thread(words.run, caller, workflow)
        async for workflow in argo_objects.each(caller, RUN, namespace, page.names)
    ]
    return shown_list("runs", found, page)


def _place(words: Vocabulary, caller: Caller, request: Request) -> tuple[str, str]:
    """Of a list: the experiment's own id, if one is named, and the namespace."""
    experiment = words.experiment_in_query(request.query)
    if not experiment:
        return "", caller.namespace_named(words.namespace_in_query(request.query))
    at = caller.read_id(experiment, "experiment")
    return at.own, at.namespace


async def _wanted(words: Vocabulary, caller: Caller, body: Object) -> tuple[runs.RunSource, RunRequest]:
    """What a run or a recurring run is made of, and in which namespace: that of its experiment, if it has one."""
    asked, experiment_id = words.run_in_body(body), words.experiment_in_body(body)
    if experiment_id:
        experiment = await library.find(caller, "experiment", experiment_id)
    else:
        namespace = caller.namespace_named(words.namespace_in_body(body))
        experiment = await library.default_experiment(caller, namespace)
    source = await _source(words, caller, asked)
    return source, RunRequest(
        name=asked.name or source.package.name,
        namespace=experiment.namespace,
        parameters=asked.parameters,
        experiment_id=experiment.id,
        description=text_in(body, "description"),
        service_account=text_in(body, "service_account"),
    )


async def _source(words: Vocabulary, caller: Caller, asked: RunAsked) -> runs.RunSource:
    if asked.document is not None:
        return runs.RunSource(library.of_document(asked.document, "pipeline_spec"))
    if asked.manifest:
        return runs.RunSource(await library.parsed(asked.manifest))
    if asked.version_id or asked.pipeline_id:
        return await runs.source_of_pipeline(caller, asked.pipeline_id, asked.version_id)
    raise RequestRefused(400, words.NOTHING_TO_RUN)


# Pipelines


async def upload_pipeline(words: Vocabulary, caller: Caller, request: Request) -> Object:
    name, named = words.upload_in_query(request.query)
    namespace, description = caller.namespace_named(named), request.query.get("description", "")
    made, version = await library.upload(caller, request.upload, name, namespace, description)
    return await words.pipeline(caller, made, version)


async def upload_version(words: Vocabulary, caller: Caller, request: Request) -> Object:
    query = request.query
    if not query.get("pipelineid"):
        raise RequestRefused(400, "pipelineid is missing: the id of the pipeline that gets the version")
    name, _ = words.upload_in_query(query)
    made = await library.upload_version(caller, request.upload, name, query["pipelineid"], query.get("description", ""))
    return await words.pipeline_version(caller, made)


async def get_pipeline(words: Vocabulary, caller: Caller, request: Request) -> Object:
    return await words.pipeline(caller, await library.find(caller, "pipeline", request.path["id"]))


async def list_pipelines(words: Vocabulary, caller: Caller, request: Request) -> Object:
    namespace = caller.namespace_named(words.namespace_in_query(request.query))
    page = await library.listed(caller, "pipeline", namespace, page_query(request))
    return shown_list("pipelines", [await words.pipeline(caller, each) for each in page.records], page)


# Recurring runs


async def create_recurring_run(words: Vocabulary, caller: Caller, request: Request) -> Object:
    source, wanted = await _wanted(words, caller, request.body)
    made = await recurring.create(
        caller, source, wanted, trigger=read_trigger(request.body), enabled=words.enabled_in_body(request.body),
        max_concurrency=text_in(request.body, "max_concurrency"),
    )  # fmt: skip
    return words.recurring_run(caller, made)


async def get_recurring_run(words: Vocabulary, caller: Caller, request: Request) -> Object:
    return words.recurring_run(caller, await recurring.find(caller, request.path["id"]))


async def list_recurring_runs(words: Vocabulary, caller: Caller, request: Request) -> Object:
    experiment, namespace = _place(words, caller, request)
    page = await recurring.listed(caller, namespace, page_query(request), experiment_id=experiment)
    found = argo_objects.each(caller, RECURRING_RUN, namespace, page.names)
    return shown_list(words.RECURRING_LIST, [words.recurring_run(caller, cron) async for cron in found], page)


# Which function answers which path

SharedHandler = Callable[[Vocabulary, Caller, Request], Awaitable[Object]]
Action = Callable[[Caller, str], Awaitable[None]]
"""What is done to the object of an id, and answered with nothing."""


def table(words: Vocabulary) -> Table:
    """All calls of a version."""
    then, recurring_runs = words.ACTION, words.RECURRING_PATH
    shared: list[tuple[str, str, SharedHandler]] = [
        ("POST", "/experiments", create_experiment),
        ("GET", "/experiments", list_experiments),
        ("GET", "/experiments/{id}", get_experiment),
        ("POST", "/runs", create_run),
        ("GET", "/runs", list_runs),
        ("GET", "/runs/{id}", get_run),
        ("GET", "/pipelines", list_pipelines),
        ("POST", "/pipelines/upload", upload_pipeline),
        ("POST", "/pipelines/upload_version", upload_version),
        ("GET", "/pipelines/{id}", get_pipeline),
        ("POST", recurring_runs, create_recurring_run),
        ("GET", recurring_runs, list_recurring_runs),
        ("GET", f"{recurring_runs}/{{id}}", get_recurring_run),
    ]
    actions: list[tuple[str, str, Action]] = [
        ("DELETE", "/experiments/{id}", lambda caller, own: library.delete(caller, "experiment", own)),
        ("POST", "/experiments/{id}:archive", lambda caller, own: library.archive(caller, "experiment", own, True)),
        ("POST", "/experiments/{id}:unarchive", lambda caller, own: library.archive(caller, "experiment", own, False)),
        ("DELETE", "/runs/{id}", runs.delete),
        ("POST", "/runs/{id}:archive", lambda caller, own: runs.archive(caller, own, True)),
        ("POST", "/runs/{id}:unarchive", lambda caller, own: runs.archive(caller, own, False)),
        ("POST", f"/runs/{{id}}{then}terminate", runs.terminate),
        ("POST", f"/runs/{{id}}{then}retry", runs.retry_failed),
        ("DELETE", f"{recurring_runs}/{{id}}", recurring.delete),
        ("POST", f"{recurring_runs}/{{id}}{then}enable", lambda caller, own: recurring.enable(caller, own, True)),
        ("POST", f"{recurring_runs}/{{id}}{then}disable", lambda caller, own: recurring.enable(caller, own, False)),
    ]
    return (
        *((method, template, _in_words(words, handler)) for method, template, handler in shared),
        *((method, template, _acting(words, action)) for method, template, action in actions),
        ("GET", "/runs/{id}/nodes/{node}/artifacts/{artifact}:read", read_artifact),
        *words.TABLE,
    )


def _in_words(words: Vocabulary, handler: SharedHandler) -> Handler:
    async def answer(caller: Caller, request: Request) -> Object:
        return await handler(words, caller, request)

    answer.__module__, answer.__qualname__ = words.__name__, handler.__name__  # its version and its call, for people
    return answer


def _acting(words: Vocabulary, action: Action) -> Handler:
    async def answer(caller: Caller, request: Request) -> Object:
        await action(caller, request.path["id"])
        return {}

    answer.__module__ = words.__name__
    return answer
