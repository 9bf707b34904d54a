"""Selectors: what they match, how they print, and the words with which bad ones are refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.kube.errors import BadRequest
from paddlecloud.kube.field_selectors import FieldRequirement, FieldSelector
from paddlecloud.kube.name_rules import label_value_problems, qualified_name_problems
from paddlecloud.kube.selectors import LabelSelector, Requirement, selects, workload_selects

LABELS = {"app": "web", "tier": "front", "size": "7", "example.com/zone": "a"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("app=web", True),
        ("app==web", True),
        ("app = web", True),
        ("app=db", False),
        ("app!=db", True),
        ("app!=web", False),
        ("missing!=x", True),
        ("app", True),
        ("missing", False),
        ("!missing", True),
        ("!app", False),
        ("app in (web,db)", True),
        ("app in ( web , db )", True),
        ("app in (db)", False),
        ("missing in (db)", False),
        ("app notin (db)", True),
        ("app notin (web)", False),
        ("missing notin (web)", True),
        ("size>6", True),
        ("size<7", False),
        ("app>6", False),
        ("example.com/zone=a,app=web", True),
        ("example.com/zone=a,app=db", False),
        ("missing=", False),
        ("app in (web),tier notin (back),size,!gone,app!=db", True),
        ("in in (in)", False),
    ],
)
def test_text_selects(text: str, expected: bool) -> None:
    assert LabelSelector.parse(text).matches(LABELS) is expected


def test_an_empty_value_is_matched_by_an_empty_requirement() -> None:
    assert LabelSelector.parse("a=").matches({"a": ""})
    assert LabelSelector.parse("a in (,x)").matches({"a": ""})
    assert not LabelSelector.parse("a=").matches({})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("=x", "found '=', expected: !, identifier, or 'end of string'"),
        ("a=b,", "found '', expected: identifier after ','"),
        ("a=b c=d", "found 'c', expected: ',' or 'end of string'"),
        ("a=(", "unable to parse requirement: found '(', expected: identifier"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in ()", "for 'in', 'notin' operators, values set can't be empty"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("-a=b", 'unable to parse requirement: <nil>: Invalid value: "-a": name part must consist of'),
        ("a=@", 'unable to parse requirement: values[0][a]: Invalid value: "@": a valid label must be'),
        ("a>x", "values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer"),
        ("a=" + "v" * 64, "must be no more than 63 characters"),
    ],
)
def test_bad_text_is_refused_in_the_words_of_kubernetes(text: str, message: str) -> None:
    with pytest.raises(BadRequest) as caught:
        LabelSelector.parse(text)
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "db"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "db"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}, False),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, False),
        ({"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "x", "operator": "Exists"}]}, False),
    ],
)
def test_objects_select(selector: dict[str, Any] | None, expected: bool) -> None:
    assert LabelSelector.from_dict(selector).matches(LABELS) is expected
    assert selects(selector, LABELS) is expected


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ({"key": "a", "operator": "Near"}, '"Near" is not a valid label selector operator'),
        ({"key": "a", "operator": "In"}, "values set can't be empty"),
        ({"key": "a", "operator": "Exists", "values": ["x"]}, "values set must be empty for exists"),
        ({"key": "", "operator": "Exists"}, "name part must be non-empty"),
    ],
)
def test_bad_expressions_are_refused(expression: dict[str, Any], message: str) -> None:
    with pytest.raises(BadRequest) as caught:
        LabelSelector.from_dict({"matchExpressions": [expression]})
    assert message in caught.value.message


def test_empty_distinguishes_everything_from_nothing() -> None:
    assert LabelSelector.parse("").empty
    assert LabelSelector.from_dict({}).empty
    assert not LabelSelector.from_dict(None).empty
    assert not LabelSelector.parse("a").empty


_word = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,5}[A-Za-z0-9])?", fullmatch=True)
_key = st.one_of(_word, st.builds("{}/{}".format, st.sampled_from(["a.b", "example.com"]), _word))
_values = st.frozensets(st.one_of(_word, st.just("")), min_size=1, max_size=3)
_number = st.builds(lambda n: frozenset((str(n),)), st.integers(0, 10**6))
_requirements = st.one_of(
    st.builds(Requirement, _key, st.sampled_from(["in", "notin"]), _values),
    st.builds(lambda k, o, v: Requirement(k, o, frozenset((v,))), _key, st.sampled_from(["=", "!="]), _word),
    st.builds(Requirement, _key, st.sampled_from(["exists", "!"])),
    st.builds(Requirement, _key, st.sampled_from(["gt", "lt"]), _number),
)


@given(st.lists(_requirements, max_size=5))
def test_printing_and_parsing_a_label_selector_round_trips(requirements: list[Requirement]) -> None:
    selector = LabelSelector(requirements)
    assert LabelSelector.parse(str(selector)) == selector


_expressions = st.one_of(
    st.builds(lambda k, o, v: {"key": k, "operator": o, "values": v}, _key, st.sampled_from(["In", "NotIn"]),
              _values.map(sorted)),
    st.builds(lambda k, o: {"key": k, "operator": o}, _key, st.sampled_from(["Exists", "DoesNotExist"])),
)  # fmt: skip
_few = st.sampled_from(["a", "b", "c"])
_selectors = st.fixed_dictionaries(
    {}, optional={"matchLabels": st.dictionaries(_few, _few), "matchExpressions": st.lists(_expressions, max_size=3)}
)


@given(_selectors, st.dictionaries(_few, _few), st.sampled_from(["ReplicaSet", "ReplicationController"]))
def test_one_question_is_answered_alike_with_and_without_preparation(
    selector: dict[str, Any], labels: dict[str, str], kind: str
) -> None:
    assert selects(selector, labels) is LabelSelector.from_dict(selector).matches(labels)
    wanted = selector.get("matchLabels") if kind == "ReplicationController" else selector
    owner = {"kind": kind, "spec": {"selector": wanted}}
    assert workload_selects(owner, labels) is LabelSelector.of_workload(owner).matches(labels)


@given(st.lists(_requirements, max_size=4), st.dictionaries(_key, _word, max_size=4))
def test_a_selector_matches_when_each_requirement_does(requirements: list[Requirement], labels: dict[str, str]) -> None:
    assert LabelSelector(requirements).matches(labels) is all(r.matches(labels) for r in requirements)


@given(st.text(max_size=30))
def test_any_text_parses_or_is_a_bad_request(text: str) -> None:
    for parse in (LabelSelector.parse, FieldSelector.parse):
        try:
            selector = parse(text)
        except BadRequest:
            continue
        assert parse(str(selector)) == selector


# --- fields ---

POD = {"metadata.name": "x", "status.phase": "Running", "spec.nodeName": ""}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("metadata.name=x", True),
        ("metadata.name==x", True),
        ("metadata.name=y", False),
        ("status.phase!=Running", False),
        ("status.phase!=Failed,metadata.name=x", True),
        ("spec.nodeName=", True),
        ("metadata.name=x,", True),
    ],
)
def test_field_text_selects(text: str, expected: bool) -> None:
    assert FieldSelector.parse(text).matches(lambda field: POD.get(field, "")) is expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
        ("a=b=c", "invalid field selector: unescaped character in value: ="),
        ("a=b\\c", "invalid field selector: invalid escape sequence: \\c"),
    ],
)
def test_bad_field_text_is_refused(text: str, message: str) -> None:
    with pytest.raises(BadRequest) as caught:
        FieldSelector.parse(text)
    assert caught.value.message == message


def test_unsupported_fields_are_refused_by_name() -> None:
    selector = FieldSelector.parse("metadata.name=x,spec.color=red")
    with pytest.raises(BadRequest, match=r"field label not supported: spec\.color"):
        selector.check(("metadata.name", "metadata.namespace"))


def test_an_exact_field_can_be_read_off() -> None:
    selector = FieldSelector.parse("metadata.name=x,metadata.namespace!=y")
    assert selector.exact("metadata.name") == "x"
    assert selector.exact("metadata.namespace") is None
    assert selector.fields == {"metadata.name", "metadata.namespace"}


@given(st.lists(st.builds(FieldRequirement, st.just("metadata.name"), st.booleans(), st.text(max_size=8)), max_size=3))
def test_printing_and_parsing_a_field_selector_round_trips(requirements: list[FieldRequirement]) -> None:
    selector = FieldSelector(requirements)
    assert FieldSelector.parse(str(selector)) == selector


# --- label syntax ---


@pytest.mark.parametrize("key", ["a", "A.b_c-9", "example.com/name", "a" * 63])
def test_good_label_keys(key: str) -> None:
    assert qualified_name_problems(key) == []


@pytest.mark.parametrize(
    ("key", "part"),
    [
        ("", "name part must be non-empty"),
        ("/a", "prefix part must be non-empty"),
        ("A.com/a", "prefix part a lowercase RFC 1123 subdomain"),
        ("a/b/c", "a qualified name must consist of"),
        ("a" * 64, "name part must be no more than 63 characters"),
        ("a\n", "name part must consist of"),
    ],
)
def test_bad_label_keys(key: str, part: str) -> None:
    assert any(part in problem for problem in qualified_name_problems(key))


def test_label_values_end_where_the_text_ends() -> None:
    assert label_value_problems("ok") == []
    assert label_value_problems("trailing\n")
