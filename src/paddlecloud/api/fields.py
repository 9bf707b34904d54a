"""The vocabulary fields are declared with: documentation, constraints, and types that several kinds share.

A field carries its text and its limits in `Annotated[...]`. The limits go to the schema and are checked by
`problems.check_declared`; they never make decoding fail, because a controller must be able to read an object that was
stored under somebody else's, looser CRD and say on it what is wrong.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, NamedTuple

import msgspec

_QUANTITY = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)


class Rule(NamedTuple):
    """A rule of an object or of a field, which the API server enforces on every write, also through `scale`."""

    expression: str
    """In CEL, with the object or the field as `self`. Defaults are filled in already; other fields may be missing."""
    message: str


def written(rules: tuple[Rule, ...]) -> dict[str, Any]:
    """Rules as a schema has them."""
    return {"x-kubernetes-validations": [{"rule": rule.expression, "message": rule.message} for rule in rules]}


def doc(text: str, *, required: bool = False, rules: tuple[Rule, ...] = (), **constraints: Any) -> msgspec.Meta:
    """The annotation of a field: what it means, and JSON-schema keywords such as `minimum` or `enum`.

    `required` puts the field into the schema's `required` list although the struct can be built without it. `rules`
    are for the API server alone: what says the same for stored objects lives with the kind.
    """
    extra = {"required": True} if required else None
    constraints |= written(rules) if rules else {}
    return msgspec.Meta(description=text, extra_json_schema=constraints or None, extra=extra)


def _schema(**keywords: Any) -> msgspec.Meta:
    return msgspec.Meta(extra_json_schema=keywords)


Int32 = Annotated[int, _schema(format="int32")]
Int64 = Annotated[int, _schema(format="int64")]
Time = Annotated[str, _schema(format="date-time")]
IntOrString = int | str
"""A string in which people write numbers without quotes; `text` turns it into the string that was meant."""

Quantity = Annotated[int | str, _schema(pattern=_QUANTITY)]
Resources = dict[str, Quantity]
Embedded = Annotated[dict[str, Any], _schema(**{"x-kubernetes-preserve-unknown-fields": True})]
"""An object of Kubernetes kept whole: a pod template, a volume, a probe. Its own kind's rules apply when it is used."""


FOLDER_ADDRESS = Rule(
    "!self.startsWith('file://') || self.startsWith('file:///')",
    "the address of a folder must have three slashes, as in file:///data/x: after two stands the name of a host",
)
"""`folder_address_problem` judges the same for objects that are stored already."""


def folder_address_problem(address: str) -> str | None:
    scheme, _, rest = address.partition("://")
    if scheme != "file" or rest.startswith("/"):
        return None
    return f"{FOLDER_ADDRESS.message}; did you mean file:///{rest}?"


class Wire(msgspec.Struct, rename="camel", omit_defaults=True, kw_only=True):
    """Base of everything that is read from YAML.

    Every optional field defaults to None, so what was written is exactly what is written back. Unknown fields are
    ignored on decoding: the API server has already pruned or refused them.
    """

    RULES: ClassVar[tuple[Rule, ...]] = ()


class Root(Wire):
    """Base of a whole object. `metadata` stays a plain dict: it belongs to Kubernetes."""

    api_version: str | None = None
    kind: str | None = None
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)

    @property
    def name(self) -> str:
        return str(self.metadata.get("name") or "")

    @property
    def namespace(self) -> str:
        return str(self.metadata.get("namespace") or "default")


class Condition(Wire):
    """One aspect of the object's state, in the form of metav1.Condition."""

    type: Annotated[str, doc("Name of the aspect, in CamelCase.", required=True)]
    status: Annotated[str, doc("Whether it holds.", required=True, enum=["True", "False", "Unknown"])]
    reason: Annotated[str | None, doc("One word for programs.")] = None
    message: Annotated[str | None, doc("A sentence for people.")] = None
    last_transition_time: Annotated[Time | None, doc("When `status` last changed.")] = None
    observed_generation: Annotated[Int64 | None, doc("The generation this was true for.", minimum=0)] = None


CONDITION_LIST = _schema(**{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]})
Conditions = Annotated[list[Condition], CONDITION_LIST]


class ObjectReference(Wire):
    """Which object is meant."""

    api_version: str | None = None
    kind: str | None = None
    namespace: str | None = None
    name: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    field_path: str | None = None


class SecretReference(Wire):
    """Which Secret is meant."""

    name: Annotated[str | None, doc("Name of the Secret.")] = None
    namespace: Annotated[
        str | None,
        doc(
            "Its namespace; empty means the namespace of this object. Another one must be granted by an annotation of "
            "the Secret, `batch.paddlepaddle.org/granted-namespaces`."
        ),
    ] = None


def text(value: IntOrString | None) -> str | None:
    """The string that was meant when `70` was written for "70"."""
    return None if value is None else str(value)
