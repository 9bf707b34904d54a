"""Everything that matches a search: by name, label and text of the reason, of all kinds that have pages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

from paddlecloud.kube.argo import CRON_WORKFLOWS, WORKFLOWS
from paddlecloud.kube.resource import (
    MODELS,
    MODELVERSIONS,
    NODES,
    PADDLEJOBS,
    PADDLESERVICES,
    QUEUES,
    SAMPLESETS,
    Object,
    Resource,
)
from paddlecloud.ui import job_rows, model_rows, run_rows, sampleset_rows, service_rows
from paddlecloud.ui.asked import Asked, DashboardPage
from paddlecloud.ui.listing import words_of
from paddlecloud.ui.object_lists import ObjectRow, searched

MOST = 10
"""Of each kind: the list of the kind has all."""


class PlainRow(NamedTuple):
    """Of a kind without more than a name and labels to search by."""

    namespace: str
    name: str
    phase: str
    text: str


def plain_row(obj: Object) -> PlainRow:
    meta = obj["metadata"]
    return PlainRow(str(meta.get("namespace", "")), str(meta["name"]), "", searched(obj))


SEARCHED: tuple[tuple[str, Resource, Callable[[Object], Any]], ...] = (
    ("jobs", PADDLEJOBS, job_rows.row_of),
    ("pipelines", WORKFLOWS, run_rows.row_of),
    ("schedules", CRON_WORKFLOWS, run_rows.schedule_row),
    ("services", PADDLESERVICES, service_rows.row_of),
    ("models", MODELS, model_rows.row_of),
    ("modelversions", MODELVERSIONS, model_rows.version_row),
    ("samplesets", SAMPLESETS, sampleset_rows.row_of),
    ("queues", QUEUES, plain_row),
    ("nodes", NODES, plain_row),
)
"""Section, kind, and what makes the row that the search looks through: the same as in its list."""


class Hit(NamedTuple):
    place: tuple[str, ...]
    """The path of its page."""
    name: str
    namespace: str
    phase: str
    why: str


class Group(NamedTuple):
    section: str
    hits: list[Hit]
    more: int


class SearchView(NamedTuple):
    text: str
    groups: list[Group]


async def load(asked: Asked) -> SearchView:
    words = words_of(asked.query)
    found = await asyncio.gather(*(_group(asked, words, *each) for each in SEARCHED)) if words else []
    return SearchView(asked.query.get("q", ""), [group for group in found if group.hits])


async def _group(
    asked: Asked, words: list[str], section: str, resource: Resource, derive: Callable[[Object], Any]
) -> Group:
    rows: list[Any] = [row for _, row in await asked.reader.rows(resource, derive)]
    if asked.namespace:
        rows = [row for row in rows if row.namespace == asked.namespace]
    matching = [row for row in rows if all(word in row.text for word in words)]
    matching.sort(key=lambda row: (_rank(row, words), row.name, row.namespace))
    return Group(section, [_hit(section, row) for row in matching[:MOST]], max(0, len(matching) - MOST))


def _rank(row: ObjectRow, words: list[str]) -> tuple[bool, bool]:
    """The name itself first, then names that contain the words, then what labels and reasons contain."""
    return row.name.lower() != " ".join(words), not all(word in row.name.lower() for word in words)


def _hit(section: str, row: Any) -> Hit:
    place = (section,) if section == "queues" else (section, *([row.namespace] if row.namespace else []), row.name)
    why = str(getattr(row, "why", "") or getattr(row, "message", ""))
    return Hit(place, row.name, row.namespace, row.phase, why)


PAGE = DashboardPage("search", "/search", load)
