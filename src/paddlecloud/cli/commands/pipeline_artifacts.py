"""`pdc pipeline artifacts`: what the steps of a run made, and with --to a copy of it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from paddlecloud.cli.commands.pipeline_runs import find_run
from paddlecloud.cli.failures import CONFLICT, NOT_FOUND, OK, CliError, attempting
from paddlecloud.cli.render import output, table
from paddlecloud.cli.session import Session
from paddlecloud.kube.nearest import question
from paddlecloud.kube.resource import Object
from paddlecloud.kube.sizes import size
from paddlecloud.pipelines.runs import record
from paddlecloud.sdk.artifacts import Artifact, artifacts_of, content, files
from paddlecloud.sdk.pipelines import stored_artifacts


def run(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, ("", *output.STRUCTURED))
    word, step, name = [*args.words, "", "", ""][:3]
    with attempting(f"read the artifacts of {word or 'the newest run'}"):
        workflow = find_run(session, word)
        stored = session.api.do(stored_artifacts(session.api.client, workflow))
        found = artifacts_of(workflow, record.steps(workflow, artifacts=stored), stored)
        chosen = _choose(session, workflow, found, step, name)
        copies = _fetch_all(session, workflow, chosen, Path(args.to)) if args.to else {}
    if fmt.name:
        body = [_report(each, copies.get(each)) for each in chosen]
        output.print_report(session, "PipelineArtifacts", {"run": workflow["metadata"]["name"], "artifacts": body})
    elif not chosen:
        session.note(f"workflow/{workflow['metadata']['name']} has no artifacts")
    elif args.to:
        for copy in copies.values():
            session.print(str(copy))
    else:
        rows = [(each.step, each.name, "" if each.size is None else size(each.size), _content(each)) for each in chosen]
        sys.stdout.write(table.render(("step", "name", "size", "content"), rows))
    return OK


def _choose(session: Session, workflow: Object, found: list[Artifact], step: str, name: str) -> list[Artifact]:
    chosen = [
        each
        for each in found
        if (not step or step in (each.step, each.step.rpartition(".")[2])) and (not name or name == each.name)
    ]
    if chosen or not step:
        return chosen
    known = sorted({f"{each.step} {each.name}" if name else each.step for each in found})
    asked = f"{step} {name}".rstrip()
    meant = question(asked, known)
    raise CliError(
        f"workflow/{workflow['metadata']['name']} has no artifact of {asked!r}",
        why=f"it has: {', '.join(known) or 'none'}" + (f"; {meant}" if meant else ""),
        next=f"pdc pipeline artifacts {workflow['metadata']['name']}{session.namespace_flag}",
        exit_code=NOT_FOUND,
    )


def _fetch_all(session: Session, workflow: Object, chosen: list[Artifact], folder: Path) -> dict[Artifact, Path]:
    """Nothing is copied over: where something lies in the way, and where one cannot be had, nothing is begun."""
    copies = {each: folder / each.file for each in chosen}
    for each, target in copies.items():
        if not each.stored:
            raise CliError(
                f"artifact {each.name} of {each.step} cannot be copied",
                why="it was deleted, or lies in an artifact store that pdc does not read"
                + (f": {each.place}" if each.place else ""),
                exit_code=NOT_FOUND,
            )
        if target.exists():
            raise CliError(f"{target} exists already", next="another --to", exit_code=CONFLICT)
    for each, target in copies.items():
        for path in session.api.do(files(session.api.client, workflow, each)):
            file = target / path if path else target
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("xb") as copy:
                for piece in session.api.each(content(session.api.client, workflow, each, path)):
                    copy.write(piece)
    return copies


def _content(artifact: Artifact) -> str:
    """Its digest; of one that is not here the place where it was put."""
    return artifact.digest if artifact.stored else artifact.place


def _report(artifact: Artifact, copy: Path | None) -> Object:
    fields = ("step", "name", "place", "digest", "size", "stored")
    return {**{field: getattr(artifact, field) for field in fields}, **({"file": str(copy)} if copy else {})}


RUN = {"artifacts": run}
