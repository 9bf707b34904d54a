"""The generated CRDs: what Kubernetes demands of them, and what users see of them."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema
import pytest

from paddlecloud.api import EMBEDDED_KINDS, FOREIGN_KINDS, KINDS, crd
from paddlecloud.api.kind import KindDeclaration
from paddlecloud.api.schema import root_schema
from paddlecloud.local.apiserver.schema.rules import unevaluated

from . import structural

ANNOTATION_LIMIT = 256 * 1024

each_kind = pytest.mark.parametrize("kind", EMBEDDED_KINDS, ids=lambda kind: kind.name)


def version_of(kind: KindDeclaration) -> dict[str, Any]:
    return dict(crd.definition(kind)["spec"]["versions"][0])


@each_kind
def test_schema_uses_only_what_structural_schemas_may_say(kind: KindDeclaration) -> None:
    jsonschema.Draft202012Validator.check_schema(structural.METASCHEMA)
    jsonschema.Draft202012Validator(structural.METASCHEMA).validate(root_schema(kind))


@each_kind
def test_schema_is_structural(kind: KindDeclaration) -> None:
    assert list(structural.faults(root_schema(kind))) == []


@each_kind
def test_defaults_satisfy_their_own_schema(kind: KindDeclaration) -> None:
    def walk(schema: dict[str, Any]) -> None:
        if "default" in schema:
            jsonschema.validate(schema["default"], structural.as_json_schema(schema))
        for child in (*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])):
            walk(child)

    walk(root_schema(kind))


@each_kind
def test_every_field_is_explained_and_the_embedded_server_evaluates_every_rule(kind: KindDeclaration) -> None:
    assert list(unevaluated("", root_schema(kind))) == []
    spec = root_schema(kind)["properties"]["spec"]
    assert [name for name, field in spec.get("properties", {}).items() if not field.get("description")] == []


@each_kind
def test_crd_fits_the_annotation_of_kubectl_apply(kind: KindDeclaration) -> None:
    assert len(json.dumps(crd.definition(kind), ensure_ascii=True)) < ANNOTATION_LIMIT / 4


@each_kind
def test_crd_is_named_and_stored_as_kubernetes_wants(kind: KindDeclaration) -> None:
    definition = crd.definition(kind)
    spec = definition["spec"]
    assert definition["metadata"]["name"] == f"{spec['names']['plural']}.{spec['group']}"
    assert [version["storage"] for version in spec["versions"]].count(True) == 1
    label = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
    for name in (spec["names"]["plural"], spec["names"]["singular"], *spec["names"].get("shortNames", ())):
        assert label.fullmatch(name)


@each_kind
def test_scale_paths_lead_to_integers_and_a_string(kind: KindDeclaration) -> None:
    if kind.scale is None:
        return

    def at(path: str) -> dict[str, Any]:
        node = root_schema(kind)
        for name in path.lstrip(".").split("."):
            node = node["properties"][name] if "properties" in node else node["additionalProperties"]
            if "properties" not in node and "additionalProperties" not in node:
                break
        return node

    assert at(kind.scale.spec_replicas)["type"] == "integer"
    assert kind.scale.spec_replicas.startswith(".spec.")
    assert at(kind.scale.status_replicas)["type"] == "integer"
    assert at(kind.scale.selector)["type"] == "string"
    assert kind.scale.selector.startswith(".status.")


@each_kind
def test_columns_point_at_declared_fields(kind: KindDeclaration) -> None:
    schema = root_schema(kind)
    for column in kind.columns:
        first, *rest = re.sub(r"\[.*?\]", "", column.json_path).strip(".").split(".")
        node = schema["properties"][first]
        for name in rest if first != "metadata" else ():
            node = node["items"] if node["type"] == "array" else node
            if node.get("x-kubernetes-preserve-unknown-fields"):
                break  # what is inside another project declares
            if "additionalProperties" in node:
                break  # a key that users choose
            assert name in node["properties"], column
            node = node["properties"][name]


def test_the_columns_of_the_manual_are_printed_in_its_order() -> None:
    def shown(plural: str) -> list[str]:
        kind = next(k for k in EMBEDDED_KINDS if k.plural == plural)
        return ["NAME", *(c.name.upper() for c in kind.columns if not c.priority)]

    assert shown("paddlejobs") == ["NAME", "STATUS", "MODE", "PS", "WORKER", "AGE"]
    assert shown("samplesets") == ["NAME", "TOTAL SIZE", "CACHED SIZE", "AVAIL SPACE", "RUNTIME", "PHASE", "AGE"]
    assert shown("samplejobs") == ["NAME", "PHASE"]
    assert shown("paddleservices") == [
        *("NAME", "URL", "DEFAULT", "CANARY", "TRAFFIC", "READY", "REPLICAS", "AGE"),
    ]
    assert shown("models") == ["NAME", "VERSIONS", "LATEST", "PRODUCTION", "STAGING", "AGE"]
    assert shown("podgroups") == ["NAME", "STATUS", "MINMEMBER", "RUNNINGS", "AGE"]


def test_wide_columns_of_a_paddlejob() -> None:
    wide = [column.name.upper() for column in KINDS[0].columns if column.priority]
    assert wide == ["VALID", "HETER", "RESTARTS", "START", "COMPLETION", "PROGRESS", "ETA"]


def test_a_cluster_gets_no_kind_that_belongs_to_another_project() -> None:
    assert {kind.group for kind in KINDS} == {
        "batch.paddlepaddle.org",
        "serving.paddlepaddle.org",
        "elasticserving.paddlepaddle.org",
        "modelhub.paddlepaddle.org",
    }
    assert all(kind.foreign for kind in FOREIGN_KINDS)
    assert [c["metadata"]["name"] for c in crd.generate()] == [kind.name for kind in EMBEDDED_KINDS]


def test_both_groups_of_paddleservice_share_one_schema() -> None:
    serving, elastic = (kind for kind in KINDS if kind.kind == "PaddleService")
    left, right = version_of(serving), version_of(elastic)
    for version in (left, right):
        del version["schema"]["openAPIV3Schema"]["description"]
    assert left == right


def test_pod_templates_are_kept_whole() -> None:
    spec = root_schema(KINDS[0])["properties"]["spec"]["properties"]
    for role in ("ps", "worker", "heter"):
        assert spec[role]["properties"]["template"]["x-kubernetes-preserve-unknown-fields"] is True


@pytest.mark.parametrize("field", ["cleanPodPolicy", "cleanPolicy", "intranet"])
def test_words_that_occur_misspelt_in_published_yaml_are_free_text(field: str) -> None:
    declared = root_schema(KINDS[0])["properties"]["spec"]["properties"][field]
    assert not {"enum", "pattern"} & set(declared)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_get_all_lists_the_kinds_of_this_project(kind: KindDeclaration) -> None:
    assert {"all", "paddle"} <= set(crd.definition(kind)["spec"]["names"]["categories"])
