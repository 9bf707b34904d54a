"""What the controller of models decides: a table for each rule."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.api.model.aliases import moved
from paddlecloud.api.model.spec import ModelSpec, Retention
from paddlecloud.api.names import MODEL_FINALIZER as MARK
from paddlecloud.api.problems import encode
from paddlecloud.controllers.model.decide import AT_ONCE, LOOK_AGAIN, Observed, decide
from paddlecloud.kube.resource import MODELS, MODELVERSIONS
from paddlecloud.kube.times import rfc3339
from paddlecloud.modelhub.users import VersionUser

NOW = 1_790_000_000.0
DAY = 86400.0
USERS = (VersionUser("alias", "production"), VersionUser("PaddleService", "ocr"))


def meta(name: str, *, marks: tuple[str, ...] = (MARK,), deleted: bool = False, age: float = 0.0) -> dict[str, Any]:
    found = {"name": name, "namespace": "team", "uid": f"uid-{name}", "resourceVersion": "7", "generation": 1}
    found |= {"creationTimestamp": rfc3339(NOW - age), "finalizers": list(marks)}
    return {**found, "deletionTimestamp": rfc3339(NOW)} if deleted else found


def version(name: str = "1", status: dict[str, Any] | None = None, **about: Any) -> dict[str, Any]:
    kind = {"apiVersion": MODELVERSIONS.api_version, "kind": MODELVERSIONS.kind}
    found = {**kind, "metadata": meta(f"ocr.{name}", **about), "spec": {"model": "ocr", "version": name}}
    return {**found, "status": status} if status else found


def model(spec: ModelSpec | None = None, status: dict[str, Any] | None = None, **about: Any) -> dict[str, Any]:
    kind = {"apiVersion": MODELS.api_version, "kind": MODELS.kind}
    found = {**kind, "metadata": meta("ocr", **about), "spec": encode(spec or ModelSpec())}
    return {**found, "status": status} if status else found


def finalizers(plan: Any) -> list[str] | None:
    return plan.patch[0].patch["metadata"]["finalizers"] if plan.patch else None


def events(plan: Any) -> list[tuple[str, str]]:
    return [(event.reason, event.message) for event in plan.events]


@pytest.mark.parametrize(
    ("given", "observed", "marks", "forget"),
    [
        (version(marks=()), Observed(stored=True), [MARK], False),
        (version(marks=("other",)), Observed(stored=True), ["other", MARK], False),
        (version(), Observed(stored=True), None, False),
        (version(), Observed(stored=None), None, False),
        (version(marks=()), Observed(keeps=False), None, False),  # of another store
        (version(), Observed(keeps=False), [], False),  # the controller has no store any more
        (version(deleted=True), Observed(), [], True),
        (version(deleted=True, marks=("other", MARK)), Observed(), ["other"], True),
        (version(deleted=True, marks=("other",)), Observed(), None, False),
        (version(deleted=True), Observed(users=USERS), None, False),
        (version(deleted=True), Observed(keeps=False, users=USERS), [], False),
    ],
)
def test_a_version_is_kept_until_it_is_deleted_and_nothing_uses_it(
    given: Any, observed: Observed, marks: list[str] | None, forget: bool
) -> None:
    plan = decide(given, observed, NOW)
    assert (finalizers(plan), plan.forget) == (marks, forget)


def test_a_deletion_that_waits_names_who_uses_the_version_once() -> None:
    plan = decide(version(deleted=True), Observed(users=USERS), NOW)
    text = "in use by alias production, PaddleService ocr; it is removed when nothing uses it any more"
    assert events(plan) == [("InUse", text)]
    assert plan.status is not None
    assert (plan.status["phase"], plan.status["message"]) == ("Terminating", text)
    assert [(c["type"], c["status"], c["reason"]) for c in plan.status["conditions"]] == [("InUse", "True", "InUse")]
    assert plan.after == LOOK_AGAIN
    again = decide(version(deleted=True, status=plan.status), Observed(users=USERS), NOW + 60)
    assert (events(again), again.status) == ([], None)
    fewer = decide(version(deleted=True, status=plan.status), Observed(users=USERS[1:]), NOW + 60)
    assert events(fewer) == [("InUse", text.replace("alias production, ", ""))]


def test_the_model_says_which_version_was_removed() -> None:
    plan = decide(version(deleted=True), Observed(model=model()), NOW)
    assert [(event.reason, event.about) for event in plan.events] == [("VersionRemoved", model())]
    assert not decide(version(deleted=True), Observed(model=model(deleted=True)), NOW).events


def test_a_version_without_a_manifest_is_reported_until_it_is_stored_again() -> None:
    plan = decide(version(), Observed(stored=False), NOW)
    assert plan.status is not None
    assert (plan.status["phase"], events(plan)[0][0]) == ("Lost", "Lost")
    assert "push the same files as ocr:1 again" in plan.status["message"]
    lost = version(status=plan.status)
    assert not decide(lost, Observed(stored=False), NOW + 5).events
    assert decide(lost, Observed(stored=None), NOW + 5).status is None  # not known: nothing new is said
    restored = decide(lost, Observed(stored=True), NOW + 5)
    assert restored.status is not None
    assert (restored.status.get("phase"), events(restored)[0][0]) == (None, "Restored")
    assert decide(version(status=restored.status), Observed(stored=True), NOW + 9).status is None


@pytest.mark.parametrize(
    ("given", "observed", "marks", "deleted"),
    [
        (model(marks=()), Observed(), [MARK], ()),
        (model(marks=()), Observed(keeps=False), None, ()),
        (model(), Observed(keeps=False), [], ()),
        (model(deleted=True), Observed(versions=[version("1")], users=USERS), None, ()),
        (model(deleted=True), Observed(versions=[version("1"), version("2", deleted=True)]), None, ("ocr.1",)),
        (model(deleted=True), Observed(), [], ()),
        (model(deleted=True), Observed(keeps=False, users=USERS), [], ()),
        (model(deleted=True, marks=()), Observed(versions=[version("1")]), None, ()),
    ],
)
def test_a_model_goes_after_its_versions_and_not_while_they_are_in_use(
    given: Any, observed: Observed, marks: list[str] | None, deleted: tuple[str, ...]
) -> None:
    plan = decide(given, observed, NOW)
    assert (finalizers(plan), tuple(each.name for each in plan.delete)) == (marks, deleted)
    assert all(each.uid for each in plan.delete)


def test_a_model_that_is_in_use_says_by_whom() -> None:
    plan = decide(model(deleted=True), Observed(versions=[version()], users=USERS), NOW)
    assert events(plan)[0][0] == "InUse"
    assert plan.status is not None
    assert "alias production, PaddleService ocr" in plan.status["message"]


def test_retention_removes_versions_and_says_which_and_why() -> None:
    versions = [version(str(n), age=(6 - n) * DAY) for n in range(1, 6)]
    spec = ModelSpec(retention=Retention(count=2))
    plan = decide(model(spec), Observed(versions=versions, kept_versions=versions), NOW)
    assert [each.name for each in plan.delete] == ["ocr.1", "ocr.2", "ocr.3"]
    assert events(plan) == [("Retention", "removed ocr:1, ocr:2, ocr:3: not one of the newest 2")]
    assert all(event.if_done for event in plan.events)
    elsewhere = Observed(versions=versions, kept_versions=versions[3:])
    assert not decide(model(spec), elsewhere, NOW).delete, "versions of other stores are not counted"
    assert not decide(model(spec), Observed(keeps=False, versions=versions, kept_versions=versions), NOW).delete


def test_retention_looks_again_when_the_next_version_is_due() -> None:
    versions = [version("1", age=9 * DAY), version("2")]
    plan = decide(
        model(ModelSpec(retention=Retention(age="10d"))), Observed(versions=versions, kept_versions=versions), NOW
    )
    assert (plan.delete, plan.after) == ([], DAY)
    assert plan.status is not None
    assert plan.status["nextRemoval"] == {"version": "1", "at": rfc3339(NOW + DAY), "reason": "older than 10d"}


def test_many_versions_are_removed_in_several_passes() -> None:
    versions = [version(str(n), age=n * DAY) for n in range(AT_ONCE * 2)]
    plan = decide(
        model(ModelSpec(retention=Retention(count=1))), Observed(versions=versions, kept_versions=versions), NOW
    )
    assert (len(plan.delete), plan.after) == (AT_ONCE, 1.0)
    assert f"and {AT_ONCE - 20} more" in events(plan)[0][1]


def test_the_status_counts_versions_that_stay() -> None:
    plan = decide(model(), Observed(versions=[version("1"), version("2", deleted=True)]), NOW)
    assert plan.status == {"observedGeneration": 1, "versions": 1}
    assert decide(model(status=plan.status), Observed(versions=[version("1")]), NOW).status is None


def test_an_alias_that_names_no_version_is_reported_until_it_does() -> None:
    spec = moved(ModelSpec(), "production", "9", by="ada", at=rfc3339(NOW)) or ModelSpec()
    plan = decide(model(spec), Observed(broken=["production"]), NOW)
    text = "alias production names version 9, which does not exist"
    assert events(plan) == [("AliasBroken", text)]
    assert plan.status is not None
    assert plan.status["message"] == text
    shown = model(spec, status=plan.status)
    assert not decide(shown, Observed(broken=["production"]), NOW + 5).events
    mended = decide(shown, Observed(), NOW + 5).status
    assert mended is not None
    assert (mended.get("message"), mended["conditions"][0]["status"]) == (None, "False")


def test_aliases_with_very_long_names_do_not_make_a_status_that_cannot_be_stored() -> None:
    names = [f"{number}{'x' * 15_000}" for number in range(60)]
    spec = ModelSpec(aliases=dict.fromkeys(names, "9"))
    for obj, observed in [
        (model(spec), Observed(broken=names)),
        (model(spec, deleted=True), Observed(users=[VersionUser("alias", name) for name in names])),
    ]:
        status = decide(obj, observed, NOW).status
        assert status is not None
        assert len(str(status)) < 20_000


def test_an_alias_that_was_moved_past_its_history_is_reported() -> None:
    spec = moved(ModelSpec(), "staging", "1", by="ada", at=rfc3339(NOW)) or ModelSpec()
    assert spec.aliases is not None
    spec.aliases["staging"] = "2"
    assert events(decide(model(spec), Observed(), NOW)) == [
        ("AliasBroken", "alias staging was moved to 2 without an entry in spec.moves")
    ]


def test_a_model_in_another_shape_is_left_alone() -> None:
    strange = {**model(), "spec": {"aliases": 7}}
    plan = decide(strange, Observed(), NOW)
    assert plan.status is not None
    assert "aliases" in plan.status["message"]
