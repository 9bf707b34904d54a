"""The kinds Model and ModelVersion as API servers know them: names and columns."""

from __future__ import annotations

from paddlecloud.api import names
from paddlecloud.api.kind import AGE, Column, KindDeclaration
from paddlecloud.api.model.spec import Model, ModelVersion

MODEL = KindDeclaration(
    group=names.MODEL.group,
    versions=(names.MODEL.version,),
    kind=names.MODEL.kind,
    plural=names.MODEL.plural,
    singular="model",
    categories=("all", "paddle"),
    type=Model,
    doc="Versions under one name, and the aliases that point to them, with their history.",
    conditions=("InUse", "AliasBroken"),
    columns=(
        Column("Versions", "integer", ".status.versions"),
        Column("Latest", "string", ".spec.aliases.latest"),
        Column("Production", "string", ".spec.aliases.production"),
        Column("Staging", "string", ".spec.aliases.staging"),
        AGE,
        Column("Message", "string", ".status.message", priority=1),
        Column("Description", "string", ".spec.description", priority=1),
    ),
)
MODEL_VERSION = KindDeclaration(
    group=names.MODELVERSION.group,
    versions=(names.MODELVERSION.version,),
    kind=names.MODELVERSION.kind,
    plural=names.MODELVERSION.plural,
    singular="modelversion",
    categories=("all", "paddle"),
    type=ModelVersion,
    doc="A model as it was at one time: its content by digest, and where it came from. It never changes.",
    conditions=("InUse", "Lost"),
    phases=("Terminating", "Lost"),
    columns=(
        Column("Model", "string", ".spec.model"),
        Column("Version", "string", ".spec.version"),
        Column("Framework", "string", ".spec.framework"),
        Column("Files", "integer", ".spec.files"),
        Column("Bytes", "integer", ".spec.size"),
        Column("By", "string", ".spec.createdBy"),
        Column("Status", "string", ".status.phase"),
        AGE,
        Column("Message", "string", ".status.message", priority=1),
        Column("Digest", "string", ".spec.digest", priority=1),
    ),
)
