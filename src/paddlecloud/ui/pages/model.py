"""One model: where its aliases point and who moved them, its versions, and which services serve which of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from paddlecloud.api.model import aliases
from paddlecloud.api.model.reference import LATEST
from paddlecloud.api.model.spec import ModelSpec, Move
from paddlecloud.kube.resource import MODELS, MODELVERSIONS
from paddlecloud.sdk import model_objects
from paddlecloud.ui.asked import Asked, DashboardPage, found
from paddlecloud.ui.feed import MODEL_OF
from paddlecloud.ui.lineage_view import traced
from paddlecloud.ui.listing import Listed, Order, listed
from paddlecloud.ui.model_rows import VersionRow, newest_first, version_row
from paddlecloud.ui.subject import Subject, subject
from paddlecloud.ui.verdicts import phase_of

MOST_MOVES = 50
ORDERS: dict[str, Order[VersionRow]] = {
    "version": lambda row: row.version,
    "size": lambda row: (row.size, row.version),
    "age": newest_first,
}


class Alias(NamedTuple):
    name: str
    version: str
    moved: Move | None
    """The last move; None where none is recorded."""
    earlier: str
    """Where a rollback goes; empty where it has nowhere to go, and of the one that moves by itself."""


class ModelView(NamedTuple):
    subject: Subject
    aliases: list[Alias]
    moves: list[Move]
    """Newest first."""
    listed: Listed[VersionRow]
    pointing: Mapping[str, list[str]]
    """Version → its aliases."""
    serving: Mapping[str, list[tuple[str, object]]]
    """Version → services with what they give it of their traffic."""
    metrics: list[str]
    """Columns: what was measured of the versions that are shown."""

    @property
    def phase(self) -> str:
        return phase_of(self.subject.explanation.verdict)


async def load(asked: Asked) -> ModelView:
    namespace, name = asked.params["namespace"], asked.params["name"]
    model = found(await asked.reader.get(MODELS, namespace, name))
    versions = await asked.reader.by_index(MODELVERSIONS, MODEL_OF, f"{namespace}/{name}")
    spec = model_objects.spec_of(model)
    rows = listed(map(version_row, versions), asked.query, ORDERS, default="-age", section=("models", namespace, name))
    serving = (await traced(asked, namespace)).serving()
    commands = (["model", "ls", name], ["model", "show", name], ["get", f"model/{name}", "-o", "yaml"])
    shown = [*dict.fromkeys(metric for row in rows.rows for metric in row.metrics)]
    return ModelView(
        subject=await subject(asked, "models", model, (), commands),
        aliases=_aliases(spec),
        moves=sorted((*(spec.moves or ()), *(spec.latest_moves or ())), key=lambda move: move.at)[-MOST_MOVES:][::-1],
        listed=rows,
        pointing={row.version: aliases.aliases_of(spec, row.version) for row in rows.rows},
        serving={row.version: serving.get(f"{name}:{row.version}", []) for row in rows.rows},
        metrics=shown[:MOST_METRICS],
    )


MOST_METRICS = 6


def _aliases(spec: ModelSpec) -> list[Alias]:
    made = []
    for name, version in sorted((spec.aliases or {}).items(), key=lambda each: (each[0] == LATEST, each[0])):
        history = aliases.history(spec, name)
        back = aliases.earlier(spec, name) if name != LATEST else []
        made.append(Alias(name, version, history[0] if history else None, back[0] if back else ""))
    return made


PAGE = DashboardPage("model", "/models/{namespace}/{name}", load)
