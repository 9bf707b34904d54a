"""The YAML reader: what kubectl's users mean, and nothing that could hurt."""

from __future__ import annotations

import json
import time
import tracemalloc

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.kube.yamlio import MAX_DOCUMENTS, YamlError, dump, dump_all, load_all, load_one, read_all, resolve


def values(text: str) -> list[object]:
    return [value for _, value in load_all(text)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", True),
        ("off", False),
        ("~", None),
        ("", None),
        ("0755", 493),
        ("0o17", 15),
        ("0x1F", 31),
        ("0x_1F", 31),
        ("0x_", "0x_"),
        ("0o_", "0o_"),
        ("-0b_", "-0b_"),
        ("0_", 0),
        ("-5", -5),
        ("1_000", 1000),
        ("1.5", 1.5),
        ("1e3", 1000),
        ("089", 89),
        ("22:22", "22:22"),
        ("2026-01-01", "2026-01-01"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("1.2.3", "1.2.3"),
        ("500m", "500m"),
        ("y", "y"),
        ("-", "-"),
        (".", "."),
        ("=", "="),
        ("<<", "<<"),
    ],
)
def test_plain_scalars_mean_what_kubectl_takes_them_for(text: str, value: object) -> None:
    result = resolve(text)
    assert result == value
    assert type(result) is type(value)


def test_documents_come_with_their_lines_and_empty_ones_are_left_out() -> None:
    assert list(load_all("a: 1\n---\n# nothing\n---\nb: 2\n...\n")) == [(1, {"a": 1}), (4, {"b": 2})]


def test_reading_ends_at_the_last_document_that_a_text_may_have() -> None:
    text = "a: 1\n---\n---\n" * 2 + "a: 1"  # five documents
    assert [value for _, value in load_all(text, 5)] == [{"a": 1}] * 3
    with pytest.raises(YamlError, match="line 6: there are more than 4 documents"):
        list(load_all(text, 4))
    found, mistakes = read_all("a: 1\n---\n" * (MAX_DOCUMENTS + 2))
    assert len(found) == MAX_DOCUMENTS
    assert [one.problem for one in mistakes] == ["there are more than 20,000 documents"]


def test_quoted_text_stays_text() -> None:
    assert values("a: '1'\nb: \"yes\"\nc: !!str 5\nd: |\n  0755\n") == [{"a": "1", "b": "yes", "c": "5", "d": "0755\n"}]


def test_anchors_merges_and_overrides() -> None:
    text = "base: &b {x: 1, y: 2}\none: {<<: *b, y: 3}\ntwo: {<<: [{y: 9}, *b]}\n"
    assert values(text) == [{"base": {"x": 1, "y": 2}, "one": {"x": 1, "y": 3}, "two": {"x": 1, "y": 9}}]


def test_keys_that_are_not_text_become_it() -> None:
    assert values("8080: a\ntrue: b\n") == [{"8080": "a", "true": "b"}]


BOMB = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [{','.join(['*' + old] * 10)}]\n"
    for old, new in zip("abcdefghijklmnop", "bcdefghijklmnopq", strict=True)
)
MERGE_BOMB = "a: &a {k: v}\n" + "".join(
    f"{new}: &{new} {{<<: [{','.join(['*' + old] * 10)}]}}\n"
    for old, new in zip("abcdefghijklmnop", "bcdefghijklmnopq", strict=True)
)


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("a: 1\na: 2\n", 2, "already set in map"),
        ("a: [", 2, "did not find"),
        ("a: b: c", 1, "mapping values"),
        ("a: *nope", 1, "alias"),
        ("a: &a [*a]", 1, "no anchor"),
        ("? [a]\n: b", 1, "cannot be a key"),
        ("a: .inf", 1, "infinity"),
        ("a: !!python/name:os.system x", 1, "no meaning"),
        ("a: \x01", 1, "not allowed"),
        ("{<<: 3, a: 1}\n---\n{<<: [1]}", 3, "<< takes"),
        (BOMB, 6, "values"),
        (MERGE_BOMB, 7, "values"),
        ("[" * 100_000, 1, "nested deeper"),
        ("a: " + "{b: " * 1000 + "}" * 1000, 1, "nested deeper"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_is_wrong_is_said_with_its_line(text: str, line: int, says: str) -> None:
    with pytest.raises(YamlError) as refused:
        values(text)
    assert says in str(refused.value)
    assert refused.value.line == line


def test_a_bomb_is_refused_before_it_takes_memory() -> None:
    tracemalloc.start()
    try:
        with pytest.raises(YamlError):
            values(BOMB)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5_000_000


def test_long_text_behind_aliases_is_a_bomb_too() -> None:
    with pytest.raises(YamlError, match="once aliases are expanded"):
        values("a: &a " + "x" * 400_000 + "\nb:\n" + "- *a\n" * 1000)
    assert values("a: " + "x" * 8_000_000)


@pytest.mark.parametrize("sign", ["", "-"])
@pytest.mark.parametrize("start", ["0", "0x", "0o", "0b", "1", "1.", "1e"])
def test_a_number_of_thousands_of_digits_is_text(sign: str, start: str) -> None:
    assert values(f"a: {sign}{start}{'1' * 5000}") == [{"a": f"{sign}{start}{'1' * 5000}"}]


@pytest.mark.parametrize("text", ["a: 1\n", "# c\n---\na: 1\n...\n", "---\n---\na: 1\n---\n"])
def test_one_document_may_stand_between_empty_ones(text: str) -> None:
    assert load_one(text) == {"a": 1}


@pytest.mark.parametrize(
    ("text", "line"), [("", 1), ("# nothing", 1), ("a: 1\n---\nb: 2\n", 2), ("---\n" * 700_000, 18)],
    ids=["nothing", "a comment", "two", "empty ones without end"],
)  # fmt: skip
def test_anything_but_one_document_is_refused_without_reading_on(text: str, line: int) -> None:
    began = time.thread_time()
    with pytest.raises(YamlError) as refused:
        load_one(text)
    assert refused.value.line == line
    assert time.thread_time() - began < 0.5


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def integral(value: object) -> object:
    """1.0 and 1 are the same number to an API server; the reader gives the latter."""
    return json.loads(
        json.dumps(value), parse_float=lambda text: int(float(text)) if float(text).is_integer() else float(text)
    )


@pytest.mark.parametrize("value", [{"<<": []}, {"<<": {"a": 1}}, {"=": 1}, {"a": {"<<": [None]}}])
def test_keys_that_mean_something_in_yaml_are_read_back_as_keys(value: dict[str, object]) -> None:
    assert values(dump(value)) == [value]


@given(st.dictionaries(st.text(min_size=1), json_values, min_size=1, max_size=4))
def test_what_is_written_is_read_back(value: dict[str, object]) -> None:
    assert integral(values(dump(value))[0]) == integral(value)


def test_written_yaml_is_read_alike_by_others() -> None:
    value = {"a": "1e3", "b": "x\ny\n", "c": "yes", "d": "22:22", "e": [{"f": "0755"}], "g": "", "h": "训练", "i": None}
    assert yaml.safe_load(dump(value)) == value
    assert "训练" in dump(value)
    assert list(yaml.safe_load_all(dump_all([value, value]))) == [value, value]
