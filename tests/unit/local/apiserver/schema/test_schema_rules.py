"""Rules between fields in the schema of a CRD."""

from __future__ import annotations

from typing import Any

from paddlecloud.local.apiserver.schema.rules import KEYWORD, unevaluated
from paddlecloud.local.apiserver.schema.structural import validate, validate_field

NUMBER = {"type": "integer"}


def ruled(schema: dict[str, Any], *rules: str) -> dict[str, Any]:
    return {**schema, KEYWORD: [{"rule": rule, "message": f"broken: {rule}"} for rule in rules]}


def obj(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


BOUNDS = ruled(obj(low=NUMBER, high=NUMBER), "self.low <= self.high")
SCHEMA = obj(spec=BOUNDS, status=ruled(obj(count=NUMBER), "self.count < 10"))


def test_a_broken_rule_is_reported_on_the_object_that_declares_it() -> None:
    (cause,) = validate({"spec": {"low": 3, "high": 2}}, SCHEMA, {})
    assert cause == ("spec", "FieldValueInvalid", 'Invalid value: "object": broken: self.low <= self.high')
    assert validate({"spec": {"low": 2, "high": 2}}, SCHEMA, {}) == []
    assert validate({}, SCHEMA, {}) == [], "a rule says nothing about an object that is not there"


def test_a_rule_without_a_message_shows_itself() -> None:
    schema = obj(spec={**obj(low=NUMBER), KEYWORD: [{"rule": "self.low > 0"}]})
    assert "failed rule: self.low > 0" in validate({"spec": {"low": 0}}, schema, {})[0][2]


def test_rules_are_not_evaluated_on_what_does_not_fit_the_schema() -> None:
    assert [cause[0] for cause in validate({"spec": {"low": "x", "high": 2}}, SCHEMA, {})] == ["spec.low"]


def test_a_rule_that_has_no_value_is_broken() -> None:
    assert [cause[0] for cause in validate({"spec": {"low": 3}}, SCHEMA, {})] == ["spec"]


def test_a_write_of_the_status_is_judged_by_the_rules_of_the_status_alone() -> None:
    stored = {"spec": {"low": 3, "high": 2}, "status": {"count": 10}}
    assert [cause[0] for cause in validate_field(stored, "status", SCHEMA, {})] == ["status"]


def test_a_rule_of_the_whole_object_is_judged_on_every_write() -> None:
    schema = ruled(SCHEMA, "self.status.count <= self.spec.high")
    wrong = {"spec": {"low": 1, "high": 2}, "status": {"count": 3}}
    assert [cause[0] for cause in validate_field(wrong, "status", schema, {})] == [""]


def test_a_division_of_fields_that_may_be_fractions_is_not_evaluated_on_whole_numbers() -> None:
    fraction = {"type": "number"}
    rule = "self.used / self.total <= 0.5"
    schema = obj(spec=ruled(obj(used=fraction, total=fraction), rule))
    assert list(unevaluated("schema", schema)) == [f"schema.properties[spec].{KEYWORD}"]
    whole = obj(spec=ruled(obj(used=NUMBER, total=NUMBER), "self.used / self.total < 1"))
    assert list(unevaluated("schema", whole)) == []


def test_a_rule_that_is_nested_too_deeply_to_be_evaluated_is_broken() -> None:
    text = "1"
    for _ in range(35):
        text = f"({text}{'+1' * 35})"
    assert [cause[0] for cause in validate({"spec": {}}, obj(spec=ruled(obj(), f"{text} > 0")), {})] == ["spec"]


def test_what_is_not_evaluated_is_named() -> None:
    schema = obj(
        known=BOUNDS,
        unknown=ruled(obj(), "self.all(x, x > 0)"),
        list={"type": "array", "items": BOUNDS},
        map={"type": "object", "additionalProperties": BOUNDS},
    )
    assert list(unevaluated("", schema)) == [
        f".properties[unknown].{KEYWORD}",
        f".properties[list].items.{KEYWORD}",
        f".properties[map].additionalProperties.{KEYWORD}",
    ]
    assert validate({"list": [{"low": 2, "high": 1}], "unknown": {}}, schema, {}) == []


def test_a_rule_about_a_change_is_judged_only_where_a_value_replaces_another() -> None:
    schema = obj(spec=ruled(obj(low=NUMBER), "self.low >= oldSelf.low"))
    new, old = {"spec": {"low": 1}}, {"spec": {"low": 2}}
    assert validate(new, schema, {}) == [], "it is being created"
    assert validate(new, schema, {}, old={}) == [], "there was no spec before"
    assert [cause[0] for cause in validate(new, schema, {}, old=old)] == ["spec"]
    assert validate(old, schema, {}, old=new) == []


def test_a_rule_of_the_whole_object_compares_it_with_the_one_that_a_status_replaces() -> None:
    schema = ruled(SCHEMA, "!has(oldSelf.status) || self.status.count >= oldSelf.status.count")
    old, new = ({"spec": {"low": 3, "high": 2}, "status": {"count": count}} for count in (2, 1))
    assert [cause[0] for cause in validate_field(new, "status", schema, {}, old=old)] == [""], "the spec is not judged"
    assert validate_field(old, "status", schema, {}, old=new) == []
