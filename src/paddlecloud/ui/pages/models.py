"""All models: which version each alias names, how many there are, and when the last one was pushed."""

from __future__ import annotations

from typing import NamedTuple

from paddlecloud.kube.resource import MODELS, MODELVERSIONS
from paddlecloud.ui.asked import Asked, DashboardPage
from paddlecloud.ui.listing import Order
from paddlecloud.ui.model_rows import ListedModel, row_of, version_row, with_versions
from paddlecloud.ui.object_lists import ObjectList, object_list

ORDERS: dict[str, Order[ListedModel]] = {
    "name": lambda one: (one.name, one.namespace),
    "namespace": lambda one: (one.namespace, one.name),
    "status": lambda one: (one.phase, one.name),
    "versions": lambda one: (one.versions, one.name),
    "size": lambda one: (one.size, one.name),
    "age": lambda one: (one.pushed, one.name),
}


class ModelsView(NamedTuple):
    objects: ObjectList[ListedModel]


async def load(asked: Asked) -> ModelsView:
    models = [row for _, row in await asked.reader.rows(MODELS, row_of)]
    versions = (row for _, row in await asked.reader.rows(MODELVERSIONS, version_row))
    return ModelsView(object_list("models", with_versions(models, versions), asked.query, ORDERS, default="name"))


PAGE = DashboardPage("models", "/models", load, key="m")
