"""docs/conformance.md: what passes, what fails and what is refused, on both platforms. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from .areas import Area, find
from .record import Record

REFUSED = "refused"


def render(
    embedded: Record,
    cluster: Record,
    refused: Sequence[Area],
    failures: Sequence[Area],
    cluster_failures: Sequence[Area] = (),
) -> str:
    """`failures` and `cluster_failures` say why specs fail here and there."""
    judged = {name: judge(name, embedded, refused) for name in sorted({*cluster.states, *embedded.states})}
    served = [name for name in judged if judged[name] != REFUSED]
    passed = [name for name in served if judged[name] == "passed"]
    version = embedded.kubernetes or cluster.kubernetes
    lines = [
        "<!-- Written by `make test-conformance` (tests/e2e/page.py). -->",
        "",
        "# Kubernetes judges the embedded platform",
        "",
        f"Kubernetes {version} has {len(judged)} specs marked [Conformance] in its own test suite, "
        "`test/e2e`. `make test-conformance` builds that suite, brings up a platform of two nodes and runs every spec",
        f"outside of the refused areas: **{_share(len(passed), len(served))}**; "
        f"{len(judged) - len(served)} are refused.",
        *_stricter(judged, refused, len(passed), len(served)),
        "The same specs on a real cluster of three nodes (docs/design/cluster-fixture.md) show what the suite and the",
        "machine themselves can do. Images of the suite are played by its own program `agnhost` and by programs of the",
        "machine.",
        "",
        *_conditions(embedded, cluster),
        "",
        *_by_group(judged, cluster),
        "",
        "## Refused",
        "",
        "| Area | Specs | Why |",
        "|---|---|---|",
        *(f"| {area.name} | {sum(find(refused, name) is area for name in judged)} | {area.why} |" for area in refused),
        "",
        "## Fails",
        "",
        *_failures([name for name in served if judged[name] != "passed"], cluster, failures),
        "",
        "## Fails on the cluster",
        "",
        *_on_the_cluster(cluster, judged, cluster_failures),
        "",
        "## Every spec",
        "",
        "| Spec | Embedded | Cluster |",
        "|---|---|---|",
        *(f"| {_escaped(name)} | {state} | {cluster.states.get(name, 'not run')} |" for name, state in judged.items()),
    ]
    return "\n".join(lines) + "\n"


def _share(passed: int, of: int) -> str:
    return f"{passed} of {of} pass ({100 * passed / max(1, of):.1f} %)"


def _stricter(judged: Mapping[str, str], refused: Sequence[Area], passed: int, served: int) -> list[str]:
    """The share with areas as failures that a platform of one machine could serve."""
    areas = [area for area in refused if area.stricter]
    if not areas:
        return []
    more = sum(find(refused, name) in areas for name in judged)
    names = "; ".join(area.name for area in areas)
    return [
        f"Areas that a platform of one machine could serve ({names}) have {more} of these; with them as failures it is "
        f"{_share(passed, served + more).replace(' pass', '')}."
    ]


def _on_the_cluster(cluster: Record, judged: Mapping[str, str], known: Sequence[Area]) -> list[str]:
    failed = [name for name, state in cluster.states.items() if state == "failed"]
    if not failed:
        return ["Nothing."]
    rows = ["| Spec | Embedded | Why |", "|---|---|---|"]
    for name in failed:
        area = find(known, name)
        rows.append(f"| {_escaped(name)} | {judged[name]} | {area.why if area else 'not explained'} |")
    return rows


def judge(name: str, embedded: Record, refused: Iterable[Area]) -> str:
    """What was refused when all specs ran, and is in no refused area any more, has not been run."""
    if find(refused, name):
        return REFUSED
    state = embedded.states.get(name, REFUSED)
    return "not run" if state == REFUSED else state


def _conditions(embedded: Record, cluster: Record) -> list[str]:
    rows = ["| Platform | Commit | When | Minutes |", "|---|---|---|---|"]
    for name, record in (("embedded", embedded), ("cluster", cluster)):
        rows.append(f"| {name} | `{record.commit}` | {record.date} | {record.minutes:.0f} |")
        rows += [
            f"| {name}, {again.specs} of them later | `{again.commit}` | {again.date} | – |" for again in record.again
        ]
    return rows


def _by_group(judged: dict[str, str], cluster: Record) -> list[str]:
    """A row for each special interest group of Kubernetes, which is the first word of a spec."""
    groups: dict[str, Counter[str]] = {}
    for name, state in judged.items():
        group = groups.setdefault(name.partition("]")[0].removeprefix("[sig-"), Counter())
        group[state] += 1
        group["cluster"] += cluster.states.get(name) == "passed"
    return [
        "| Group | Passes | Fails | Refused | Passes on the cluster |",
        "|---|---|---|---|---|",
        *(
            f"| {name} | {counts['passed']} | {counts['failed'] + counts['not run']} | {counts[REFUSED]} "
            f"| {counts['cluster'] if cluster.states else 'not run'} |"
            for name, counts in groups.items()
        ),
    ]


def _failures(failed: Sequence[str], cluster: Record, failures: Sequence[Area]) -> list[str]:
    if not failed:
        return ["Nothing."]
    rows = ["| Spec | Cluster | Why |", "|---|---|---|"]
    for name in failed:
        area = find(failures, name)
        why = area.why if area else "not explained"
        rows.append(f"| {_escaped(name)} | {cluster.states.get(name, 'not run')} | {why} |")
    return rows


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;")
