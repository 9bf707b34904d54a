"""`pdc sampleset retained` and `rm-data`: what deleted SampleSets of the embedded platform left on this machine.

The data of a set is a folder below the data directory of the platform, and outlives the set. On a cluster it is in the
file system that the Secret of the set names, which belongs to its owner.
"""

from __future__ import annotations

import re

from paddlecloud.cache.retained import Retained, SetFolders
from paddlecloud.cli.failures import CONFLICT, NOT_FOUND, CliError, UsageError, attempting
from paddlecloud.cli.objects import embedded
from paddlecloud.cli.render import output
from paddlecloud.cli.render.table import render
from paddlecloud.cli.session import Session
from paddlecloud.kube.resource import SAMPLESETS, Object
from paddlecloud.kube.sizes import binary_size
from paddlecloud.kube.wording import cause_of, number_of

UNKNOWN = "<unknown>"
LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
"""Of which namespaces and names consist; nothing else may become part of a path that is removed."""


def list_retained(session: Session) -> int:
    fmt = output.parse_format(session.args.output, ("", *output.STRUCTURED))
    with attempting("list the data of deleted SampleSets"):
        folders = _folders(session)
        listed = session.api.do(session.api.client.list(SAMPLESETS, session.scope)).items
    kept = {(obj["metadata"]["namespace"], obj["metadata"]["name"]) for obj in listed if not _waits_for_removal(obj)}
    within = [key for key in folders.names() if session.scope in (None, key[0]) and key not in kept]
    found = [data for key in within if (data := folders.retained(*key)) is not None]
    if fmt.name:
        items = [{**data.__dict__} for data in found]
        output.print_report(session, "RetainedSampleSets", {"items": items})
    elif found:
        rows = [(d.namespace, d.name, d.source or UNKNOWN, f"{d.files:,}", binary_size(d.size)) for d in found]
        session.print(render(("namespace", "name", "source", "files", "size"), rows))
    else:
        session.note("No data of deleted SampleSets found")
    return 0


def remove_data(session: Session, name: str) -> int:
    fmt = output.parse_format(session.args.output, ("", *output.STRUCTURED))
    namespace = session.namespace
    if not all(re.fullmatch(LABEL, part) for part in (namespace, name)):
        raise UsageError(
            f"{namespace}/{name} is not the namespace and name of a SampleSet", next="pdc sampleset retained"
        )
    with attempting(f"remove the data of SampleSet {name}"):
        folders = _folders(session)
        found = session.api.do(session.api.client.find(SAMPLESETS, name, namespace))
        if found is not None and not _waits_for_removal(found):
            raise CliError(
                f"SampleSet {name} exists: its data is in use",
                why="only data of deleted sets is removed",
                next=f"pdc delete sampleset {name}, or pdc samplejob rmr {name} PATH… for a part of it",
                exit_code=CONFLICT,
            )
        data = folders.retained(namespace, name)
        if data is None:
            raise CliError(
                f"no deleted SampleSet {name} of namespace {namespace} left data here",
                next="pdc sampleset retained -A",
                exit_code=NOT_FOUND,
            )
        session.confirm(f"Remove {_counted(data)}?")
        try:
            folders.remove(namespace, name)
        except OSError as error:
            raise CliError(f"the data of {name} cannot be removed", why=cause_of(error)) from error
    if fmt.name:
        output.print_report(session, "RetainedSampleSetRemoved", {**data.__dict__})
    else:
        session.print(f"removed {_counted(data)}")
    return 0


def _folders(session: Session) -> SetFolders:
    if not embedded.is_embedded(session):
        raise UsageError(
            "this is no embedded platform",
            why="on a cluster the data of a SampleSet is in the file system that its Secret names",
            next="pdc samplejob rmr SET PATH…, before the set is deleted",
        )
    return SetFolders(embedded.data_of(session) / "samplesets")


def _waits_for_removal(sample_set: Object) -> bool:
    """A new set that refuses the data of a deleted one: it has neither volume nor servers yet."""
    status = sample_set.get("status") or {}
    listed = status.get("conditions") or ()
    return not status.get("phase") and any(c["type"] == "Valid" and c.get("reason") == "DataRetained" for c in listed)


def _counted(data: Retained) -> str:
    return f"{number_of(data.files, 'file')} ({binary_size(data.size)}) of {data.source or 'an unknown source'}"
