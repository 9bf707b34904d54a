"""All SampleSets: where their data comes from, how much of it is cached, and why one is not ready."""

from __future__ import annotations

from typing import NamedTuple

from paddlecloud.kube.resource import SAMPLESETS
from paddlecloud.ui.asked import Asked, DashboardPage
from paddlecloud.ui.listing import Order
from paddlecloud.ui.object_lists import ObjectList, object_list
from paddlecloud.ui.sampleset_rows import SampleSetRow, row_of

ORDERS: dict[str, Order[SampleSetRow]] = {
    "name": lambda row: (row.name, row.namespace),
    "namespace": lambda row: (row.namespace, row.name),
    "status": lambda row: (row.phase, row.name),
    "source": lambda row: (row.source, row.name),
    "age": lambda row: (row.created, row.name),
}


class SampleSetsView(NamedTuple):
    objects: ObjectList[SampleSetRow]


async def load(asked: Asked) -> SampleSetsView:
    rows = [row for _, row in await asked.reader.rows(SAMPLESETS, row_of)]
    return SampleSetsView(object_list("samplesets", rows, asked.query, ORDERS, default="name"))


PAGE = DashboardPage("samplesets", "/samplesets", load, key="d")
