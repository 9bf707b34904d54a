"""The kind PaddleService as API servers know it, under both of its groups: names, columns, scale."""

from __future__ import annotations

from paddlecloud.api import names
from paddlecloud.api.kind import AGE, Column, KindDeclaration, Scale
from paddlecloud.api.paddleservice.spec import CONDITIONS, PaddleService


def _declaration(name: names.KindName, doc: str, *, short_names: tuple[str, ...] = ()) -> KindDeclaration:
    return KindDeclaration(
        group=name.group,
        versions=(name.version,),
        kind=name.kind,
        plural=name.plural,
        singular="paddleservice",
        short_names=short_names,
        categories=("all", "paddle"),
        type=PaddleService,
        doc=doc,
        conditions=CONDITIONS,
        columns=(
            Column("URL", "string", ".status.url"),
            Column("Default", "string", ".status.default.name"),
            Column("Canary", "string", ".status.canary.name"),
            Column("Traffic", "string", ".status.traffic"),
            Column("Ready", "string", '.status.conditions[?(@.type=="Ready")].status'),
            Column("Replicas", "integer", ".status.replicas"),
            Column("Model", "string", ".status.default.model", priority=1),
            Column("Rollout", "string", ".status.rollout.phase", priority=1),
            AGE,
        ),
        scale=Scale(".spec.replicas", ".status.replicas", ".status.selector"),
    )


DECLARATION = _declaration(
    names.PADDLESERVICE,
    "A model behind a URL: autoscaled, down to zero, with a canary that gets a share of the traffic.",
    short_names=("pds",),  # `paddleservice` alone means, to kubectl, the group that comes first in the alphabet
)
ELASTICSERVING = _declaration(
    names.EARLIER_PADDLESERVICE,
    "The same kind under the group of the earlier ElasticServing project. New YAML uses serving.paddlepaddle.org.",
)
