"""Custom resource definitions: what is refused and why, what is served, what the status says."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from paddlecloud.api import crd as own_crds
from paddlecloud.local.apiserver.builtin.kinds import builtin_kinds, default_builtin
from paddlecloud.local.apiserver.crd.install import accepted_status, kinds_of, validate_crd, warnings_of
from paddlecloud.local.apiserver.schema import structural as sch

Json = dict[str, Any]
INT, STR = {"type": "integer"}, {"type": "string"}
V = "spec.versions[0]"
S = f"{V}.schema.openAPIV3Schema"
KEEP = "x-kubernetes-preserve-unknown-fields"


def obj(**properties: Json) -> Json:
    return {"type": "object", "properties": properties}


def crd(schema: Json | None = None, *, version: Json | None = None, **spec: Any) -> Json:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"], "categories": ["all"]},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": obj(spec=obj(size=INT)) if schema is None else schema},
                    **(version or {}),
                }
            ],
            **spec,
        },
    }


# --- schemas that are not structural ---

LIST_MAP = {"type": "array", "items": obj(k=STR), "x-kubernetes-list-type": "map"}
REFUSED_SCHEMAS: list[tuple[Json, str, str]] = [
    ({}, f"{S}.type", "Required value: must not be empty at the root"),
    ({"type": "array", "items": STR}, f"{S}.type", 'Invalid value: "array": must be object at the root'),
    (obj(a={}), f"{S}.properties[a].type", "Required value: must not be empty for specified object fields"),
    (
        obj(a={"type": "array", "items": {}}),
        f"{S}.properties[a].items.type",
        "Required value: must not be empty for specified array items",
    ),
    (obj(a={"type": "array"}), f"{S}.properties[a].items", "Required value: must be specified"),
    (
        obj(a={"type": "null"}),
        f"{S}.properties[a].type",
        "Forbidden: type cannot be set to null, use nullable as an alternative",
    ),
    ({**obj(), "additionalProperties": STR}, f"{S}.additionalProperties", "Forbidden: must not be used at the root"),
    ({**obj(), "nullable": True}, f"{S}.nullable", "Forbidden: nullable cannot be true at the root"),
    (obj(a={"$ref": "#/x", **STR}), f"{S}.properties[a].$ref", "Forbidden: $ref is not supported"),
    (
        obj(a={"type": "array", "items": STR, "uniqueItems": True}),
        f"{S}.properties[a].uniqueItems",
        "Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
    ),
    (
        obj(a={**obj(b=INT), "additionalProperties": STR}),
        f"{S}.properties[a].additionalProperties",
        "Forbidden: additionalProperties and properties are mutual exclusive",
    ),
    (
        obj(a={"type": "string", "pattern": "("}),
        f"{S}.properties[a].pattern",
        'Invalid value: "(": must be a valid regular expression, but isn\'t: missing closing ): `(`',
    ),
    (
        obj(metadata=obj(name=STR, labels={"type": "object"})),
        f"{S}.properties[metadata]",
        "Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified",
    ),
    (
        obj(a={**obj(b=INT), "anyOf": [{"properties": {"b": {"type": "integer"}}}]}),
        f"{S}.properties[a].anyOf[0].properties[b].type",
        "Forbidden: must be empty to be structural",
    ),
    (
        obj(a={**obj(b=INT), "oneOf": [{"properties": {"c": {"minimum": 1}}}]}),
        f"{S}.properties[a].properties[c]",
        f"Required value: because it is defined in {S}.properties[a].oneOf[0].properties[c]",
    ),
    (
        obj(a={"type": "object", "x-kubernetes-embedded-resource": True}),
        f"{S}.properties[a].properties",
        "Required value: must not be empty if x-kubernetes-embedded-resource is true without "
        "x-kubernetes-preserve-unknown-fields",
    ),
    (
        obj(a={"type": "object", KEEP: False}),
        f"{S}.properties[a].{KEEP}",
        "Invalid value: false: must be true or undefined",
    ),
    (
        obj(a=LIST_MAP),
        f"{S}.properties[a].x-kubernetes-list-map-keys",
        "Required value: must not be empty if x-kubernetes-list-type is map",
    ),
    (
        obj(a={**LIST_MAP, "x-kubernetes-list-map-keys": ["k"]}),
        f"{S}.properties[a].items.properties[k].default",
        "Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required "
        "property",
    ),
    (
        obj(a={"type": "array", "items": STR, "x-kubernetes-list-type": "bag"}),
        f"{S}.properties[a].x-kubernetes-list-type",
        'Unsupported value: "bag": supported values: "atomic", "set", "map"',
    ),
    (
        obj(a={"type": "integer", "default": "x"}),
        f"{S}.properties[a].default",
        'Invalid value: "string": ' + f'{S}.properties[a].default in body must be of type integer: "string"',
    ),
    (
        obj(a={**obj(b=INT), "default": {"c": 1}}),
        f"{S}.properties[a].default",
        'Invalid value: {"c": 1}: must not have unknown fields',
    ),
    (
        obj(a={"type": "object", "additionalProperties": {"type": 5}}),
        f"{S}.properties[a].additionalProperties.type",
        f'Invalid value: "integer": {S}.properties[a].additionalProperties.type in body must be of type string: '
        '"integer"',
    ),
]


@pytest.mark.parametrize(("schema", "field", "message"), REFUSED_SCHEMAS)
def test_a_schema_that_is_not_structural_is_refused_in_the_words_of_kubernetes(
    schema: Json, field: str, message: str
) -> None:
    assert [(cause[0], cause[2]) for cause in validate_crd(crd(schema))] == [(field, message)]


def test_a_schema_without_end_is_refused() -> None:
    deep: Json = {"type": "string"}
    for _ in range(300):
        deep = {"type": "object", "additionalProperties": deep}
    assert [cause[2] for cause in validate_crd(crd(obj(a=deep)))] == ["Forbidden: the schema nests too deeply"]


ACCEPTED_SCHEMAS: list[Json] = [
    obj(),
    obj(spec={KEEP: True}),
    obj(spec={"type": "object", KEEP: True}),
    obj(n={"x-kubernetes-int-or-string": True}),
    obj(n={"x-kubernetes-int-or-string": True, "anyOf": [INT, STR]}),
    obj(n={"x-kubernetes-int-or-string": True, "allOf": [{"anyOf": [INT, STR]}, {"pattern": "^a"}]}),
    obj(metadata=obj(name={"type": "string", "maxLength": 5})),
    obj(a={**obj(b=INT), "anyOf": [{"properties": {"b": {"minimum": 1}}}, {"required": ["b"]}]}),
    obj(m={"type": "object", "additionalProperties": True}),
    obj(t={"type": "object", "x-kubernetes-embedded-resource": True, KEEP: True}),
    obj(a={"type": "string", "x-kubernetes-validations": [{"rule": "self != ''"}]}),
    obj(
        l={
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port", "proto"],
            "items": {**obj(port=INT, proto={"type": "string", "default": "TCP"}), "required": ["port"]},
        }
    ),
    obj(a={**obj(b={"type": "integer", "default": 1}), "default": {}}),
]


@pytest.mark.parametrize("schema", ACCEPTED_SCHEMAS)
def test_structural_schemas_are_accepted(schema: Json) -> None:
    assert validate_crd(crd(schema)) == []


# --- the rest of a definition ---


def changed(change: Any) -> Json:
    definition = crd()
    change(definition)
    return definition


def version(**changes: Any) -> Any:
    return lambda d: d["spec"]["versions"][0].update(changes)


def spec(**changes: Any) -> Any:
    return lambda d: d["spec"].update(changes)


SCALE = {"specReplicasPath": ".status.n", "statusReplicasPath": ".status.n"}
TWICE = [crd()["spec"]["versions"][0], {**crd()["spec"]["versions"][0], "storage": False}]
REFUSED: list[tuple[Any, str, str]] = [
    (lambda d: d.pop("spec"), "spec.names.plural", "Required value"),
    (lambda d: d.pop("spec"), "spec.scope", "Required value"),
    (lambda d: d["metadata"].update(name="x.example.org"), "metadata.name", 'must be spec.names.plural+"."+spec.group'),
    (
        lambda d: d["spec"]["names"].update(kind="Wid get"),
        "spec.names.kind",
        "may have mixed case, but should otherwise",
    ),
    (lambda d: d["spec"]["names"].update(listKind="Widget"), "spec.names.listKind", "may not be the same"),
    (lambda d: d.update(status={"storedVersions": ["v0"]}), "status.storedVersions[0]", "missing from spec.versions"),
    (spec(group="example"), "spec.group", "should be a domain with at least one dot"),
    (spec(scope="Galaxy"), "spec.scope", 'supported values: "Cluster", "Namespaced"'),
    (spec(versions=[]), "spec.versions", "Required value"),
    (spec(versions=TWICE), "spec.versions", "must contain unique version names"),
    (spec(preserveUnknownFields=True), "spec.preserveUnknownFields", "cannot set to true"),
    (spec(conversion={"strategy": "Webhook"}), "spec.conversion.strategy", "webhook conversion is not supported"),
    (version(storage=False), "spec.versions", "must have exactly one version marked as storage version"),
    (version(name="V1"), f"{V}.name", "a DNS-1035 label must consist of lower case"),
    (version(schema=None), S, "Required value: schemas are required"),
    (
        version(subresources={"scale": SCALE}),
        f"{V}.subresources.scale.specReplicasPath",
        "should be a json path under .spec",
    ),
    (
        version(additionalPrinterColumns=[{"name": "X", "type": "text", "jsonPath": ".x"}]),
        f"{V}.additionalPrinterColumns[0].type",
        "must be one of boolean,date,integer,number,string",
    ),
    (version(deprecationWarning="old"), f"{V}.deprecationWarning", "can only be set for deprecated versions"),
]


@pytest.mark.parametrize(("change", "field", "message"), REFUSED)
def test_a_definition_that_makes_no_sense_is_refused(change: Any, field: str, message: str) -> None:
    causes = validate_crd(changed(change))
    assert [cause for cause in causes if cause[0] == field and message in cause[2]], causes


def test_what_objects_are_stored_by_cannot_change() -> None:
    other = crd(scope="Cluster", names={"plural": "widgets", "kind": "Gadget"})
    fields = [cause[0] for cause in validate_crd(other, crd())]
    assert fields == ["spec.scope", "spec.names.kind"]


def test_cel_rules_that_are_not_evaluated_are_accepted_with_a_warning_that_says_where() -> None:
    rules = [{"rule": "self.replace('a', 'b') != ''"}]
    definition = crd(obj(spec=obj(a={"type": "string", "x-kubernetes-validations": rules})))
    place = f"{S}.properties[spec].properties[a].x-kubernetes-validations"
    assert warnings_of(definition) == [f"{place}: CEL rules that this server does not evaluate are only stored"]
    evaluated = [{"rule": "self != ''"}]
    assert warnings_of(crd(obj(spec=obj(a={"type": "string", "x-kubernetes-validations": evaluated})))) == []


# --- what a definition adds ---


def test_each_served_version_becomes_a_kind() -> None:
    versions = [
        {**crd()["spec"]["versions"][0], "name": "v2", "storage": False},
        crd()["spec"]["versions"][0],
        {**crd()["spec"]["versions"][0], "name": "v0", "served": False, "storage": False},
    ]
    kinds = kinds_of(crd(versions=versions))
    assert [kind.resource.api_version for kind in kinds] == ["example.org/v2", "example.org/v1"]
    kind = kinds[1]
    assert (kind.kind, kind.singular, kind.list_kind) == ("Widget", "widget", "WidgetList")
    assert (kind.short_names, kind.categories, kind.custom) == (("wd",), ("all",), True)
    assert [column.name for column in kind.columns] == ["Age"]
    assert kind.columns[0].json_path == ".metadata.creationTimestamp"


def test_columns_and_subresources_are_taken_over() -> None:
    given: Json = {
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.n",
                "statusReplicasPath": ".status.n",
                "labelSelectorPath": ".status.s",
            },
        },
        "additionalPrinterColumns": [
            {"name": "Phase", "type": "string", "jsonPath": ".status.phase", "priority": 1, "description": "d"}
        ],
    }
    (kind,) = kinds_of(crd(version=given))
    assert kind.subresources == {"status", "scale"}
    assert kind.scale is not None
    assert (kind.scale.spec_replicas, kind.scale.status_replicas, kind.scale.selector) == (
        "spec.n",
        "status.n",
        "status.s",
    )
    (column,) = kind.columns
    assert (column.name, column.json_path, column.priority, column.description) == ("Phase", ".status.phase", 1, "d")


def test_objects_of_the_kind_are_pruned_defaulted_and_validated_metadata_included() -> None:
    schema = obj(
        spec=obj(size={"type": "integer", "minimum": 1, "default": 3}),
        metadata=obj(name={"type": "string", "maxLength": 4}),
    )
    (kind,) = kinds_of(crd(schema))
    assert kind.schema is not None
    widget: Json = {
        "apiVersion": "example.org/v1",
        "kind": "Widget",
        "metadata": {"name": "long-name", "bogus": 1, "labels": {"a": "b"}, "creationTimestamp": None},
        "spec": {"colour": "red"},
    }
    assert sch.prune(widget, kind.schema, kind.definitions) == ["metadata.bogus", "spec.colour"]
    sch.apply_defaults(widget, kind.schema, kind.definitions)
    assert widget["spec"] == {"size": 3}
    assert "creationTimestamp" not in widget["metadata"]
    causes = sch.validate(widget, kind.schema, kind.definitions)
    assert [cause[0] for cause in causes] == ["metadata.name"]


def test_the_status_of_an_accepted_definition() -> None:
    status = accepted_status(crd(), 1_700_000_000.0)
    assert [(c["type"], c["status"], c["reason"]) for c in status["conditions"]] == [
        ("NamesAccepted", "True", "NoConflicts"),
        ("Established", "True", "InitialNamesAccepted"),
    ]
    assert status["acceptedNames"] == {
        "plural": "widgets",
        "singular": "widget",
        "kind": "Widget",
        "listKind": "WidgetList",
        "shortNames": ["wd"],
        "categories": ["all"],
    }
    assert status["storedVersions"] == ["v1"]


def test_accepting_again_keeps_times_and_remembers_versions_once_stored() -> None:
    first = accepted_status(crd(), 1_700_000_000.0)
    versions = [
        {**crd()["spec"]["versions"][0], "storage": False},
        {**crd()["spec"]["versions"][0], "name": "v2"},
    ]
    other = {"type": "Terminating", "status": "False"}
    first["conditions"].append(other)
    second = accepted_status({**crd(versions=versions), "status": first}, 1_800_000_000.0)
    assert second["storedVersions"] == ["v1", "v2"]
    assert second["conditions"] == first["conditions"]


# --- definitions that exist ---

CRD_KIND = next(kind for kind in builtin_kinds() if kind.kind == "CustomResourceDefinition")


@pytest.mark.parametrize("definition", own_crds.generate(), ids=lambda d: d["metadata"]["name"])
def test_the_definitions_of_this_project_are_accepted_without_a_word(definition: Json) -> None:
    definition = copy.deepcopy(definition)
    assert CRD_KIND.schema is not None
    assert sch.unknown_fields(definition, CRD_KIND.schema, CRD_KIND.definitions) == []
    default_builtin(definition, CRD_KIND)
    assert sch.validate(definition, CRD_KIND.schema, CRD_KIND.definitions) == []
    assert validate_crd(definition) == []
    assert warnings_of(definition) == []
    assert kinds_of(definition)
