"""One version of a model: what it is, what was measured, where it came from and who serves it."""

from __future__ import annotations

from typing import Any, NamedTuple

from paddlecloud.api.model import aliases
from paddlecloud.api.model.spec import ModelSpec, Move
from paddlecloud.kube.resource import MODELS, MODELVERSIONS
from paddlecloud.sdk import lineage, model_objects
from paddlecloud.ui.asked import Asked, DashboardPage, found
from paddlecloud.ui.lineage_view import Branch, traced
from paddlecloud.ui.model_rows import VersionRow, version_row
from paddlecloud.ui.subject import Subject, subject


class ModelVersionView(NamedTuple):
    subject: Subject
    row: VersionRow
    spec: Any
    aliases: list[str]
    moves: list[Move]
    origin: list[Branch]
    use: list[Branch]
    unread: list[str]
    """Kinds that the viewer may not list: what is of them is shown as the version recorded it."""

    @property
    def phase(self) -> str:
        return self.row.phase


async def load(asked: Asked) -> ModelVersionView:
    namespace, name = asked.params["namespace"], asked.params["name"]
    version = found(await asked.reader.get(MODELVERSIONS, namespace, name))
    row = version_row(version)
    model = await asked.reader.get(MODELS, namespace, row.model)
    spec = model_objects.spec_of(model) if model is not None else ModelSpec()
    world = await traced(asked, namespace)
    tree = world.trace(lineage.VERSION, f"{row.model}:{row.version}")
    reference = f"{row.model}:{row.version}"
    commands = (["model", "show", reference], ["trace", f"model/{reference}"], ["model", "pull", reference])
    return ModelVersionView(
        subject=await subject(asked, "modelversions", version, (), commands),
        row=row,
        spec=version.get("spec") or {},
        aliases=aliases.aliases_of(spec, row.version),
        moves=aliases.moves_about(spec, row.version),
        origin=tree.origin,
        use=tree.use,
        unread=world.unread,
    )


PAGE = DashboardPage("modelversion", "/modelversions/{namespace}/{name}", load)
