"""Aliases and their history, and the rules by which an API server keeps them."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.api import crd, model
from paddlecloud.api.model.aliases import aliases_of, earlier, history, moved, moves_about, removed, unrecorded
from paddlecloud.api.model.reference import BadReference
from paddlecloud.api.model.spec import MOST_MOVES, ModelSpec, Move, Retention
from paddlecloud.api.problems import encode
from paddlecloud.local.apiserver.schema.rules import broken, compiled

AT = "2026-11-18T12:00:00Z"


def with_moves(*moves: tuple[str, str]) -> ModelSpec:
    spec = ModelSpec()
    for alias, to in moves:
        spec = moved(spec, alias, to, by="ada", at=AT) or spec
    return spec


def refusals(kind: Any, new: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    schema = crd.definition(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return [cause[2] for cause in broken(list(compiled(schema)), new, old)]


def model_of(spec: ModelSpec, name: str = "ocr") -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": encode(spec)}


def test_an_alias_that_was_moved_along_with_another_is_found() -> None:
    """The rules accept it, so that readers can only be warned."""
    old = with_moves(("production", "1"), ("staging", "1"))
    new = with_moves(("production", "1"), ("staging", "1"), ("staging", "2"))
    new.aliases = {**(new.aliases or {}), "production": "evil"}
    assert refusals(model.MODEL, model_of(new), model_of(old)) == []
    assert unrecorded(new) == ["production"]
    assert unrecorded(old) == unrecorded(ModelSpec(aliases={"older": "1"})) == []
    assert [problem.field for problem in model.validate(model.Model(metadata={"name": "ocr"}, spec=new))] == [
        "spec.aliases[production]"
    ]


def test_a_move_says_who_moved_what_from_where_to_where_and_why() -> None:
    spec = with_moves(("production", "6"), ("staging", "7"))
    spec = moved(spec, "production", "7", by="grace", at=AT, reason="better on receipts") or spec
    assert spec.aliases == {"production": "7", "staging": "7"}
    assert history(spec, "production") == [
        Move(alias="production", to="7", previous="6", by="grace", at=AT, reason="better on receipts"),
        Move(alias="production", to="6", by="ada", at=AT),
    ]
    assert aliases_of(with_moves(("latest", "7"), ("production", "7"), ("old", "6")), "7") == ["production", "latest"]


def test_a_move_to_where_it_is_changes_nothing() -> None:
    assert moved(with_moves(("production", "6")), "production", "6", by="ada", at=AT) is None


@pytest.mark.parametrize(("alias", "to"), [("7", "1"), ("Production", "1"), ("production", "latest"), ("a", "x/y")])
def test_what_is_no_alias_or_no_version_is_refused(alias: str, to: str) -> None:
    with pytest.raises(BadReference):
        moved(ModelSpec(), alias, to, by="ada", at=AT)


def test_the_removal_of_an_alias_is_part_of_its_history() -> None:
    old = with_moves(("staging", "1"), ("production", "2"))
    new = removed(old, "staging", by="grace", at=AT, reason="not needed")
    assert new is not None
    assert new.aliases == {"production": "2"}
    assert history(new, "staging")[0] == Move(alias="staging", previous="1", by="grace", at=AT, reason="not needed")
    assert not refusals(model.MODEL, model_of(new), model_of(old))
    assert not model.validate(model.decode(model_of(new)))
    assert removed(new, "staging", by="grace", at=AT) is None
    last = removed(new, "production", by="grace", at=AT) or ModelSpec()
    assert not refusals(model.MODEL, model_of(last), model_of(new))
    again = moved(last, "staging", "2", by="ada", at=AT) or ModelSpec()
    assert not refusals(model.MODEL, model_of(again), model_of(last))
    for claimed in ({"production": "2", "staging": "1"}, {}):  # not removed, or one more than is recorded
        assert refusals(model.MODEL, {**model_of(new), "spec": {**encode(new), "aliases": claimed}}, model_of(old))


def test_with_one_entry_one_alias_moves() -> None:
    old = with_moves(("staging", "1"), ("production", "2"))
    new = model_of(moved(old, "production", "3", by="ada", at=AT) or old)
    assert not refusals(model.MODEL, new, model_of(old))
    for other in ({"production": "3"}, {"staging": "1", "a": "1", "production": "3"}):
        assert any("one alias at a time" in text for text in refusals(
            model.MODEL, {**new, "spec": {**new["spec"], "aliases": other}}, model_of(old)
        ))  # fmt: skip


@pytest.mark.parametrize(
    ("moves", "expected"),
    [
        ("1", ""),
        ("1 2", "1"),
        ("1 2 3", "2 1"),
        ("1 2 3 <2", "1"),
        ("1 2 3 <2 <1", ""),
        ("1 2 3 <2 4", "2 1"),  # what a rollback left is not gone back to
        ("1 2 1", "2"),  # somebody moved it there: that is no rollback
        ("1 2 1 <2", "1"),
        ("1 2 3 2 1", "2 3"),
        ("1 2 -", ""),
        ("1 2 - 3 4", "3"),
    ],
)
def test_a_rollback_goes_back_along_the_history(moves: str, expected: str) -> None:
    spec = ModelSpec()
    for step in moves.split():
        if step == "-":
            spec = removed(spec, "production", by="ada", at=AT) or spec
        else:
            spec = moved(spec, "production", step.lstrip("<"), by="ada", at=AT, rollback="<" in step) or spec
        pushed = f"{step.strip('<-') or 0}-{len(spec.latest_moves or ())}"
        spec = moved(spec, "latest", pushed, by="ada", at=AT) or spec
    assert earlier(spec, "production") == expected.split()


def test_what_the_history_no_longer_has_is_gone_back_to_as_far_as_its_oldest_entry_says() -> None:
    spec = with_moves(("production", "1"), ("production", "2"))
    cut = ModelSpec(aliases=spec.aliases, moves=(spec.moves or [])[1:])
    assert earlier(cut, "production") == ["1"]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({}, "say how many versions are kept"),
        ({"count": 0}, "spec.retention.count"),
        ({"age": "30"}, "spec.retention.age"),
        ({"age": "0d"}, "spec.retention.age"),
        ({"age": "1.5d"}, "spec.retention.age"),
        ({"count": 5}, ""),
        ({"age": "30d"}, ""),
        ({"count": 5, "age": "90m"}, ""),
    ],
)
def test_what_cannot_be_a_retention_is_refused(given: dict[str, Any], text: str) -> None:
    obj = {"metadata": {"name": "ocr"}, "spec": {"retention": given}}
    found = "; ".join(map(str, model.validate(model.decode(obj))))
    assert (text in found) if text else not found
    if not given:
        assert refusals(model.MODEL, obj)


def test_a_move_keeps_the_rest_of_the_spec() -> None:
    spec = ModelSpec(description="reads receipts", retention=Retention(count=3))
    after = moved(spec, "production", "1", by="ada", at=AT)
    assert after is not None
    assert (after.description, after.retention) == ("reads receipts", Retention(count=3))


def test_the_oldest_move_goes_when_the_history_is_full() -> None:
    full = with_moves(*(("production", str(number)) for number in range(MOST_MOVES)))
    after = with_moves(*(("production", str(number)) for number in range(MOST_MOVES + 1)))
    assert len(after.moves or ()) == MOST_MOVES
    assert not refusals(model.MODEL, model_of(after), model_of(full))
    shorter = model_of(after)
    del shorter["spec"]["moves"][:2]
    assert refusals(model.MODEL, shorter, model_of(full))


def test_pushes_do_not_displace_what_people_decided() -> None:
    spec = with_moves(("production", "1"), ("production", "2"))
    for number in range(3, 3 + 2 * MOST_MOVES):
        spec = moved(spec, "latest", str(number), by="ada", at=AT, reason="pushed") or spec
    assert [move.to for move in history(spec, "production")] == ["2", "1"]
    assert earlier(spec, "production") == ["1"]
    assert len(history(spec, "latest")) == MOST_MOVES
    assert [move.alias for move in moves_about(spec, "2")] == ["production"]


def test_moves_of_latest_are_in_their_own_history() -> None:
    old = model_of(with_moves(("production", "1"), ("latest", "1")))
    assert not refusals(model.MODEL, old)
    entry = {"by": "ada", "at": AT, "to": "2"}
    for alias, history_of in (("latest", "moves"), ("production", "latestMoves")):
        new = copy.deepcopy(old)
        new["spec"]["aliases"][alias] = "2"
        new["spec"][history_of].append({**entry, "alias": alias})
        assert any("are in spec.latestMoves" in text for text in refusals(model.MODEL, new, old))


@given(
    st.lists(
        st.tuples(st.sampled_from(["production", "staging", "latest"]), st.sampled_from(["1", "2", "3", ""])),
        max_size=8,
    )
)
def test_every_move_of_ours_is_accepted_by_the_rules(moves: list[tuple[str, str]]) -> None:
    spec, old = ModelSpec(), None
    for alias, to in moves:
        by_ada = {"by": "ada", "at": AT}
        spec = (moved(spec, alias, to, **by_ada) if to else removed(spec, alias, **by_ada)) or spec
        new = model_of(spec)
        assert not refusals(model.MODEL, new, old)
        assert not model.validate(model.decode(new))
        old = new


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda spec: spec["aliases"].update(production="9"), "the last entry of spec.moves"),
        (lambda spec: spec["aliases"].update(staging="9"), "moved or removed together with an entry in spec.moves"),
        (lambda spec: spec["aliases"].pop("staging"), "moved or removed together with an entry in spec.moves"),
        (lambda spec: spec["moves"][0].update(by="mallory"), "spec.moves is a history"),
        (lambda spec: spec["moves"].pop(0), "spec.moves is a history"),
        (lambda spec: spec.pop("moves"), "spec.moves is a history"),
        (lambda spec: spec["moves"].insert(0, dict(spec["moves"][0])), "spec.moves is a history"),
        (lambda spec: spec["latestMoves"].clear(), "spec.latestMoves is a history"),
        (lambda spec: spec["aliases"].update(latest="9"), "of spec.latestMoves must say"),
    ],
)
def test_a_history_cannot_be_changed_and_nothing_moves_without_an_entry(change: Any, text: str) -> None:
    old = model_of(with_moves(("latest", "2"), ("staging", "1"), ("production", "2")))
    new = copy.deepcopy(old)
    change(new["spec"])
    assert any(text in message for message in refusals(model.MODEL, new, old))


def test_a_description_can_be_changed() -> None:
    old = model_of(with_moves(("production", "2")))
    assert not refusals(model.MODEL, {**old, "spec": {**old["spec"], "description": "reads receipts"}}, old)


VERSION: dict[str, Any] = {
    "metadata": {"name": "ocr.1.2"},
    "spec": {"model": "ocr", "version": "1.2", "digest": "sha256:" + "0" * 64, "size": 1, "files": 1},
}


def test_a_version_never_changes() -> None:
    assert not refusals(model.MODEL_VERSION, VERSION)
    assert not refusals(model.MODEL_VERSION, VERSION, VERSION)
    changed = {**VERSION, "spec": {**VERSION["spec"], "digest": "sha256:" + "1" * 64}}
    assert "a version never changes: push another one" in refusals(model.MODEL_VERSION, changed, VERSION)[0]
    labelled = {**VERSION, "metadata": {**VERSION["metadata"], "labels": {"a": "b"}}}
    assert not refusals(model.MODEL_VERSION, labelled, VERSION)


@pytest.mark.parametrize(("name", "version"), [("ocr", "1.2"), ("ocr.latest", "latest"), ("other.1.2", "1.2")])
def test_a_version_is_named_after_its_model(name: str, version: str) -> None:
    obj = {"metadata": {"name": name}, "spec": {**VERSION["spec"], "version": version}}
    assert refusals(model.MODEL_VERSION, obj)
    assert model.validate(model.decode_version(obj))


@pytest.mark.parametrize("name", ["o.cr", "o" * 64])
def test_a_model_has_the_name_of_a_label(name: str) -> None:
    assert refusals(model.MODEL, model_of(ModelSpec(), name))
    assert model.validate(model.decode(model_of(ModelSpec(), name)))


def test_the_example_is_valid() -> None:
    path = Path(__file__).parents[4] / "examples" / "model" / "ocr.yaml"
    first, second = yaml.safe_load_all(path.read_text(encoding="utf-8"))
    assert not model.validate(model.decode(first)) + model.validate(model.decode_version(second))
    assert not refusals(model.MODEL, first) + refusals(model.MODEL_VERSION, second)
