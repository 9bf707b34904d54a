"""All PaddleServices: what each serves, how its traffic is split, and why it is not ready."""

from __future__ import annotations

from typing import NamedTuple

from paddlecloud.kube.resource import PADDLESERVICES
from paddlecloud.ui.asked import Asked, DashboardPage
from paddlecloud.ui.listing import Order
from paddlecloud.ui.object_lists import ObjectList, object_list
from paddlecloud.ui.service_rows import ServiceRow, row_of

ORDERS: dict[str, Order[ServiceRow]] = {
    "name": lambda row: (row.name, row.namespace),
    "namespace": lambda row: (row.namespace, row.name),
    "status": lambda row: (row.phase, row.name),
    "serves": lambda row: (row.serves, row.name),
    "pods": lambda row: (row.replicas, row.name),
    "age": lambda row: (row.created, row.name),
}


class ServicesView(NamedTuple):
    objects: ObjectList[ServiceRow]


async def load(asked: Asked) -> ServicesView:
    rows = [row for _, row in await asked.reader.rows(PADDLESERVICES, row_of)]
    return ServicesView(object_list("services", rows, asked.query, ORDERS, default="name"))


PAGE = DashboardPage("services", "/services", load, key="s")
