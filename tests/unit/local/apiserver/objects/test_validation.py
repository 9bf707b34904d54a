"""Rules of metadata: what is accepted, what is refused, and in which words."""

from __future__ import annotations

import random
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.kube import errors
from paddlecloud.kube.resource import NAMESPACES, PODS, SERVICES, Resource
from paddlecloud.local.apiserver.objects.metadata import (
    NameRule,
    check_types,
    finalizer_warnings,
    generate_name,
    name_rule_of,
    validate_metadata,
    validate_metadata_update,
)

OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "u1"}


def meta(**fields: Any) -> dict[str, Any]:
    return {"name": "x", "namespace": "default", **fields}


def test_a_full_good_metadata_has_no_causes() -> None:
    good = meta(
        generateName="x-",
        labels={"app": "web", "example.com/tier": ""},
        annotations={"Example.com/Note": "any text at all\n", "note": ""},
        finalizers=["foregroundDeletion", "example.com/hold"],
        ownerReferences=[{**OWNER, "controller": True}, OWNER],
    )
    assert validate_metadata(good, namespaced=True, name_rule="subdomain") == []


@pytest.mark.parametrize(
    ("rule", "name", "message"),
    [
        ("subdomain", "a.b-c.1", None),
        ("subdomain", "A", "a lowercase RFC 1123 subdomain must consist of"),
        ("subdomain", "a..b", "a lowercase RFC 1123 subdomain must consist of"),
        ("subdomain", "a\n", "a lowercase RFC 1123 subdomain must consist of"),
        ("subdomain", "a" * 254, "must be no more than 253 characters"),
        ("label", "a.b", "a lowercase RFC 1123 label must consist of"),
        ("label", "1a", None),
        ("label", "a" * 64, "must be no more than 63 characters"),
        ("dns1035", "1a", "a DNS-1035 label must consist of"),
        ("dns1035", "a1", None),
        ("path-segment", "system:node", None),
        ("path-segment", "Any Name", None),
        ("path-segment", "..", "may not be '..'"),
        ("path-segment", "a/b", "may not contain '/'"),
        ("path-segment", "a%b", "may not contain '%'"),
    ],
)
def test_names_follow_the_rule_of_their_kind(rule: NameRule, name: str, message: str | None) -> None:
    causes = validate_metadata({"name": name}, namespaced=False, name_rule=rule)
    if message is None:
        assert causes == []
    else:
        assert [(field, reason) for field, reason, _ in causes] == [("metadata.name", "FieldValueInvalid")]
        assert message in causes[0][2]


def test_the_message_reads_as_kubernetes_writes_it() -> None:
    causes = validate_metadata({"name": "A"}, namespaced=False)
    text = errors.invalid("Pod", "A", causes).message
    assert text.startswith('Pod "A" is invalid: metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must')


@pytest.mark.parametrize(
    ("fields", "namespaced", "expected"),
    [
        (
            {"name": ""},
            True,
            ("metadata.name", "FieldValueRequired", "Required value: name or generateName is required"),
        ),
        ({"namespace": ""}, True, ("metadata.namespace", "FieldValueRequired", "Required value")),
        ({}, False, ("metadata.namespace", "FieldValueForbidden", "Forbidden: not allowed on this type")),
        (
            {"namespace": "a.b"},
            True,
            ("metadata.namespace", "FieldValueInvalid", "a lowercase RFC 1123 label must consist of"),
        ),
        ({"generateName": "A-"}, True, ("metadata.generateName", "FieldValueInvalid", "RFC 1123 subdomain")),
        ({"labels": {"a b": "x"}}, True, ("metadata.labels", "FieldValueInvalid", 'Invalid value: "a b": name part')),
        ({"labels": {"a": "x y"}}, True, ("metadata.labels", "FieldValueInvalid", "a valid label must be")),
        ({"labels": {"a": "x" * 64}}, True, ("metadata.labels", "FieldValueInvalid", "no more than 63 characters")),
        ({"annotations": {"-": "x"}}, True, ("metadata.annotations", "FieldValueInvalid", "name part must consist")),
        (
            {"annotations": {"a": "x" * 262144}},
            True,
            ("metadata.annotations", "FieldValueTooLong", "Too long: may not be more than 262144 bytes"),
        ),
        ({"finalizers": ["a b"]}, True, ("metadata.finalizers", "FieldValueInvalid", "name part must consist")),
        (
            {"finalizers": ["orphan", "foregroundDeletion"]},
            True,
            ("metadata.finalizers", "FieldValueInvalid", "cannot be both set"),
        ),
        (
            {"ownerReferences": [{**OWNER, "uid": ""}]},
            True,
            ("metadata.ownerReferences.uid", "FieldValueInvalid", 'Invalid value: "": must not be empty'),
        ),
        (
            {"ownerReferences": [{**OWNER, "apiVersion": ""}]},
            True,
            ("metadata.ownerReferences.apiVersion", "FieldValueInvalid", "version must not be empty"),
        ),
        (
            {"ownerReferences": [{**OWNER, "controller": True}, {**OWNER, "name": "b", "controller": True}]},
            True,
            ("metadata.ownerReferences", "FieldValueInvalid", "Only one reference can have Controller set to true."),
        ),
        (
            {"ownerReferences": [{**OWNER, "apiVersion": "v1", "kind": "Event"}]},
            True,
            ("metadata.ownerReferences", "FieldValueInvalid", "is disallowed from being an owner"),
        ),
        ({"generation": -1}, True, ("metadata.generation", "FieldValueInvalid", "must be greater than or equal")),
    ],
)
def test_one_fault_gives_one_cause(fields: dict[str, Any], namespaced: bool, expected: tuple[str, str, str]) -> None:
    causes = validate_metadata(meta(**fields), namespaced=namespaced)
    assert len(causes) == 1
    field, reason, message = causes[0]
    assert (field, reason) == expected[:2]
    assert expected[2] in message


def test_every_fault_is_reported_at_once() -> None:
    causes = validate_metadata({"name": "A", "labels": {"!": "?"}}, namespaced=True)
    assert [field for field, _, _ in causes] == [
        "metadata.name",
        "metadata.namespace",
        "metadata.labels",
        "metadata.labels",
    ]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([], "cannot unmarshal array into Go struct field metadata"),
        ({"name": 7}, "cannot unmarshal number into Go struct field ObjectMeta.metadata.name of type string"),
        ({"labels": []}, "cannot unmarshal array into Go struct field ObjectMeta.metadata.labels of type map"),
        ({"labels": {"a": True}}, "cannot unmarshal bool into Go struct field ObjectMeta.metadata.labels of type"),
        ({"annotations": {"a": 1}}, "cannot unmarshal number into Go struct field ObjectMeta.metadata.annotations"),
        ({"finalizers": "x"}, "cannot unmarshal string into Go struct field ObjectMeta.metadata.finalizers"),
        ({"ownerReferences": ["x"]}, "cannot unmarshal string into Go struct field ObjectMeta.metadata.owner"),
        ({"ownerReferences": [None]}, "cannot unmarshal null into Go struct field ObjectMeta.metadata.ownerReferences"),
        ({"finalizers": [None]}, "cannot unmarshal null into Go struct field ObjectMeta.metadata.finalizers"),
        ({"ownerReferences": [{"uid": 1}]}, "OwnerReference.metadata.ownerReferences.uid of type string"),
        ({"generation": True}, "cannot unmarshal bool into Go struct field ObjectMeta.metadata.generation"),
    ],
)
def test_wrong_types_are_bad_requests(bad: Any, message: str) -> None:
    with pytest.raises(errors.BadRequest) as caught:
        check_types(bad)
    assert message in caught.value.message


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
_FIELDS = ["name", "generateName", "namespace", "labels", "annotations", "finalizers", "ownerReferences", "generation"]


@given(st.dictionaries(st.sampled_from(_FIELDS), _json, max_size=6))
def test_no_metadata_breaks_the_validator(fuzz: dict[str, Any]) -> None:
    try:
        causes = validate_metadata(fuzz, namespaced=True)
    except errors.BadRequest:
        return
    assert all(len(cause) == 3 for cause in causes)


@pytest.mark.parametrize(
    ("resource", "rule"),
    [
        (PODS, "subdomain"),
        (SERVICES, "dns1035"),
        (NAMESPACES, "label"),
        (Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False), "path-segment"),
        (Resource("serving.knative.dev", "v1", "services", "Service"), "subdomain"),
    ],
)
def test_each_kind_has_a_name_rule(resource: Resource, rule: NameRule) -> None:
    assert name_rule_of(resource) == rule


@given(st.text(string.ascii_lowercase, min_size=1, max_size=100), st.integers())
def test_generated_names_are_valid_and_begin_with_the_prefix(prefix: str, seed: int) -> None:
    name = generate_name(f"{prefix}-", random.Random(seed))
    assert len(name) <= 63
    assert name.startswith(f"{prefix}-"[:58])
    assert validate_metadata({"name": name}, namespaced=False, name_rule="label") == []
    assert set(name[-5:]) <= set("bcdfghjklmnpqrstvwxz2456789")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": "y"}, "metadata.name"),
        ({"namespace": "other"}, "metadata.namespace"),
        ({"uid": "2"}, "metadata.uid"),
        ({"creationTimestamp": "2020-01-01T00:00:00Z"}, "metadata.creationTimestamp"),
        ({"deletionTimestamp": "2020-01-01T00:00:00Z"}, "metadata.deletionTimestamp"),
        ({"generation": 1}, "metadata.generation"),
    ],
)
def test_immutable_fields_stay(changes: dict[str, Any], field: str) -> None:
    old = meta(uid="1", creationTimestamp="2024-01-01T00:00:00Z", generation=2)
    causes = validate_metadata_update({**old, **changes}, old)
    assert [cause[0] for cause in causes] == [field]


def test_labels_and_annotations_may_change() -> None:
    old = meta(uid="1", labels={"a": "b"})
    assert validate_metadata_update({**old, "labels": {}, "annotations": {"x": "y"}}, old) == []


def test_no_finalizer_enters_while_the_object_is_being_deleted() -> None:
    old = meta(deletionTimestamp="2024-01-01T00:00:00Z", finalizers=["a.b/c"])
    causes = validate_metadata_update({**old, "finalizers": ["a.b/c", "a.b/d"]}, old)
    assert [(cause[0], cause[1]) for cause in causes] == [("metadata.finalizers", "FieldValueForbidden")]
    assert causes[0][2].endswith('found new finalizers []string{"a.b/d"}')
    assert validate_metadata_update({**old, "finalizers": []}, old) == []


def test_bare_finalizers_are_warned_about() -> None:
    warnings = finalizer_warnings({"finalizers": ["orphan", "example.com/a", "hold"]})
    assert len(warnings) == 1
    assert '"hold"' in warnings[0]
