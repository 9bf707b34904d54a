"""`pdc pipeline ls, show, logs, diff, cache` and `stop, resume`: runs that there are."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Coroutine
from typing import Any

from paddlecloud.cli import times
from paddlecloud.cli.failures import CONFLICT, INTERRUPTED, NOT_FOUND, OK, CliError, attempting
from paddlecloud.cli.objects import members, outcome, targets
from paddlecloud.cli.objects.placing import ObjectRef
from paddlecloud.cli.render import output, table
from paddlecloud.cli.session import Session
from paddlecloud.kube.client import Client
from paddlecloud.kube.errors import ApiError
from paddlecloud.kube.resource import CONFIGMAPS, Object
from paddlecloud.pipelines import names
from paddlecloud.pipelines.runs import actions, states

_METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
_PAGE = "500"


def run_ls(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, ("", *output.OBJECTS))
    with attempting("list runs"):
        if fmt.name:
            found = session.api.do(session.api.client.list(names.WORKFLOWS, session.scope, limit=100)).items
            output.print_objects(session, sorted(found, key=_age_order, reverse=True), fmt, single=False)
            return OK
        rows = _metadata(session)
    if not rows:
        elsewhere = "; those of other namespaces: pdc pipeline ls -A" if _has_runs_elsewhere(session) else ""
        session.note(f"no runs in {f'namespace {session.scope}' if session.scope else 'any namespace'}{elsewhere}")
        return OK
    rows.sort(key=_age_order, reverse=True)
    now = time.time()
    lines = [
        (
            *([obj["metadata"]["namespace"]] if session.scope is None else []),
            obj["metadata"]["name"],
            (obj["metadata"].get("annotations") or {}).get(names.RUN_NAME, ""),
            states.phase_of(obj) or "Pending",
            times.age(obj["metadata"]["creationTimestamp"], now),
        )
        for obj in rows
    ]
    columns = (*(["namespace"] if session.scope is None else []), "name", "run", "status", "age")
    sys.stdout.write(table.render(columns, lines))
    return OK


def _metadata(session: Session) -> list[Object]:
    """Names, labels and times alone: the status of a large run has a megabyte."""
    query = {"limit": _PAGE}
    found: list[Object] = []
    while True:
        page = session.api.json(names.WORKFLOWS.path(session.scope), query=query, accept=_METADATA)
        found += page.get("items") or []
        more = (page.get("metadata") or {}).get("continue")
        if not more:
            return found
        query = {**query, "continue": more}


def _has_runs_elsewhere(session: Session) -> bool:
    """Whether there are runs in another namespace: kfp's own client does not use that of the context."""
    if session.scope is None:
        return False
    try:
        page = session.api.json(names.WORKFLOWS.path(None), query={"limit": "1"}, accept=_METADATA)
    except ApiError:
        return False  # a tenant may not list other namespaces
    return bool(page.get("items"))


def _age_order(obj: Object) -> tuple[str, int]:
    """Times have seconds; of those that began in the same one the API server's own order decides."""
    meta = obj["metadata"]
    version = str(meta.get("resourceVersion") or "")
    return str(meta["creationTimestamp"]), int(version) if version.isdigit() else 0


def run_show(session: Session, args: argparse.Namespace) -> int:
    from paddlecloud.cli.render import pipeline_graph
    from paddlecloud.sdk.failed_steps import failure_of
    from paddlecloud.sdk.pipelines import steps_of

    fmt = output.parse_format(args.output, ("", *output.STRUCTURED))
    with attempting(f"show {_asked(args)}"):
        workflow = find_run(session, _word(args))
        if args.watch and not states.is_over(workflow):
            from paddlecloud.cli.commands.pipeline_start import follow

            try:
                workflow = follow(session, workflow, timeout=None, quiet=bool(fmt.name))
            except KeyboardInterrupt:
                return INTERRUPTED
        steps = session.api.do(steps_of(session.api.client, workflow))
        why = "" if fmt.name else session.api.do(failure_of(session.api.client, workflow)).why
    if fmt.name:
        output.print_report(session, "PipelineRun", pipeline_graph.report(workflow, [step.report() for step in steps]))
    else:
        session.print(pipeline_graph.page(session, workflow, steps, time.time(), why=why))
    return OK


def run_logs(session: Session, args: argparse.Namespace) -> int:
    from paddlecloud.cli.render.log_lines import Writer
    from paddlecloud.sdk.failed_steps import has_log
    from paddlecloud.sdk.logs import LogOptions, merged

    fmt = output.parse_format(args.output, ("", "json"))
    args.rank, args.all_ranks = None, True  # a workflow's pods are steps, not ranks
    step = args.words[1] if len(args.words) > 1 else ""
    with attempting(f"read the logs of {_asked(args)}"):
        workflow = find_run(session, _word(args))
        place = ObjectRef(names.WORKFLOWS, workflow["metadata"]["name"], session.namespace)
        options = LogOptions(tail=args.tail)
        writer = Writer(session, as_json=fmt.name == "json", options=options)
        ended = outcome.finished(workflow) if args.follow else None
        if args.follow and ended is None:
            from paddlecloud.cli.render.follow import Printer

            return Printer(session, place, writer, options, only=lambda one: not step or _is_step(one, step)).run(
                workflow
            )
        found = members.lives_of(session, workflow)
        chosen = [one for one in found if not step or _is_step(one, step)]
        if not chosen:
            _refuse_cached(session, workflow, step)
            known = ", ".join(sorted({one.tag for one in found})) or "no pods"
            raise CliError(
                f"{place.display} has no pod of step {step!r}" if step else f"{place.display} has no pods",
                why=f"it has: {known}",
                next=f"pdc pipeline show {place.name}{session.namespace_flag}",
                exit_code=NOT_FOUND,
            )
        started = [one for one in chosen if has_log(one)]
        writer.introduce(started)
        for line in session.api.each(merged(session.api.client, started, options)):
            writer.write(line)
    _note_without_log(session, workflow, [one for one in chosen if not has_log(one)])
    return ended.exit_code if ended else OK


def _refuse_cached(session: Session, workflow: Object, step: str) -> None:
    """A step that was answered from the cache has no pod and no log; the run that it was answered from may have one."""
    from paddlecloud.pipelines.runs import record

    cached = [each for each in record.steps(workflow) if each.cache_hit and step in ("", each.name)]
    if not cached:
        return
    name, source = workflow["metadata"]["name"], _cached_from(session, workflow, cached[0].id)
    listed = ", ".join(each.name for each in cached)
    raise CliError(
        f"workflow/{name} has no log of {listed}",
        why=f"answered from the cache{f', by the run {source}' if source else ''}",
        next=(
            f"pdc pipeline logs {source} {cached[0].name}{session.namespace_flag}"
            if source
            else f"pdc pipeline cache {name}{session.namespace_flag}"
        ),
        exit_code=NOT_FOUND,
    )


def _cached_from(session: Session, workflow: Object, node: str) -> str:
    """The run whose answer a step got. Empty where the run is gone, or the cache is not kept beside it, as in Argo."""
    from paddlecloud.pipelines.runs import cache_entries

    name, key = cache_entries.cache_of(workflow, node)
    client = session.api.client
    try:
        cache = session.api.do(client.get(CONFIGMAPS, name, session.namespace)) if name else {}
        source = cache_entries.run_of_entry((cache.get("data") or {}).get(key) or "")
        if source:
            session.api.do(client.get(names.WORKFLOWS, source, session.namespace))
        return source
    except ApiError:
        return ""  # all that is wanted is a better advice


def _note_without_log(session: Session, workflow: Object, silent: list[members.Member]) -> None:
    """Of steps whose program has not begun, or never did, the message of their node is all there is."""
    from paddlecloud.pipelines.runs import record

    steps = {step.id: step for step in record.steps(workflow)} if silent else {}
    sys.stdout.flush()
    for one in silent:
        step = steps.get(str((one.pod["metadata"].get("annotations") or {}).get(names.NODE_ID)))
        state = "ended before its program began" if one.ended else "has not begun"
        session.note(f"{one.tag}: no output: the step {state}{f': {step.message}' if step and step.message else ''}")


def _is_step(one: members.Member, step: str) -> bool:
    """By its whole path or its last part: `train`, `loop(0:a).train`."""
    return one.tag == step or one.tag.rpartition(".")[2] == step


def run_diff(session: Session, args: argparse.Namespace) -> int:
    from paddlecloud.pipelines.runs.comparison import differences
    from paddlecloud.sdk.pipelines import steps_of

    fmt = output.parse_format(args.output, ("", *output.STRUCTURED))
    with attempting(f"compare {args.words[0]} with {args.words[1]}"):
        first, second = (find_run(session, word) for word in args.words)
        steps = [session.api.do(steps_of(session.api.client, each)) for each in (first, second)]
    found = differences(first, second, *steps)
    if fmt.name:
        body = {"runs": [each["metadata"]["name"] for each in (first, second)]}
        output.print_report(session, "PipelineDiff", {**body, "differences": [each._asdict() for each in found]})
    elif not found:
        session.print("no difference")
    else:
        columns = ("what", first["metadata"]["name"], second["metadata"]["name"])
        rows = [(each.where, _short(each.before), _short(each.after)) for each in found]
        sys.stdout.write(table.render(columns, rows))
    return OK


def run_cache(session: Session, args: argparse.Namespace) -> int:
    from paddlecloud.cli.render import pipeline_graph
    from paddlecloud.pipelines.runs import record

    fmt = output.parse_format(args.output, ("", *output.STRUCTURED))
    with attempting(f"read the cache of {_asked(args)}"):
        workflow = find_run(session, _word(args))
        reasons = _cache_misses(session, workflow)
    steps = [step for step in record.steps(workflow) if step.is_leaf or step.cache_key]
    rows = [(step.name, *pipeline_graph.cache_words(step, reasons.get(step.id, ""))) for step in steps]
    if fmt.name:
        body = [{"step": name, "cache": word, "key": key, "why": why} for name, word, key, why in rows]
        output.print_report(session, "PipelineCache", {"run": workflow["metadata"]["name"], "steps": body})
    else:
        sys.stdout.write(table.render(("step", "cache", "key", "why"), rows))
    return OK


def _cache_misses(session: Session, workflow: Object) -> dict[str, str]:
    """Why steps missed, by their ids: compared with those of earlier runs, which are read one at a time."""
    from paddlecloud.pipelines.runs import cache_misses

    if not cache_misses.missed(workflow):
        return {}
    api = session.api
    return cache_misses.reasons(
        workflow,
        (
            api.do(api.client.get(names.WORKFLOWS, name, session.namespace))
            for name in cache_misses.earlier_runs(workflow, _metadata(session))
        ),
    )


Act = Callable[[Client, Object], Coroutine[Any, Any, None]]


def change(session: Session, args: argparse.Namespace, done: str, call: Act) -> Object:
    """Carry out an action on the run that is named; the run as it was before it."""
    with attempting(f"{args.action} {args.words[0]}"):
        workflow = find_run(session, args.words[0])
        try:
            session.api.do(call(session.api.client, workflow))
        except actions.NotPossible as error:
            name = workflow["metadata"]["name"]
            raise CliError(
                f"workflow/{name} cannot be {done}",
                why=str(error),
                next=f"pdc pipeline show {name}{session.namespace_flag}",
                exit_code=CONFLICT,
            ) from error
    return workflow


def _act(done: str, call: Act) -> Callable[[Session, argparse.Namespace], int]:
    def act(session: Session, args: argparse.Namespace) -> int:
        fmt = output.parse_format(args.output, ("", *output.STRUCTURED))
        name = change(session, args, done, call)["metadata"]["name"]
        if fmt.name:
            output.print_report(session, "PipelineAction", {"run": name, "result": done})
        else:
            session.print(f"workflow/{name} {done}")
        return OK

    return act


def find_run(session: Session, word: str) -> Object:
    """The run of a name; without one the newest of the namespace."""
    if not word:
        found = _metadata(session)
        if not found:
            raise CliError(
                f"there are no runs in namespace {session.namespace}",
                next="pdc pipeline ls -A" if _has_runs_elsewhere(session) else "pdc pipeline run FILE",
                exit_code=NOT_FOUND,
            )
        word = max(found, key=_age_order)["metadata"]["name"]
    name = targets.name_in(session.api, word, names.WORKFLOWS)
    return session.api.do(session.api.client.get(names.WORKFLOWS, name, session.namespace))


def _word(args: argparse.Namespace) -> str:
    return str(args.words[0]) if args.words else ""


def _asked(args: argparse.Namespace) -> str:
    return _word(args) or "the newest run"


def _short(value: object) -> str:
    text = "–" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


RUN: dict[str, Callable[[Session, argparse.Namespace], int]] = {
    "ls": run_ls,
    "show": run_show,
    "logs": run_logs,
    "diff": run_diff,
    "cache": run_cache,
    "stop": _act("stopped", actions.stop),
    "resume": _act("resumed", actions.resume),
}
