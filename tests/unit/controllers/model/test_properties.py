"""Whatever users, services, time and crashes do, in any order: nothing goes that is named, served or the newest.

The API server and the store are mappings here; the controller's passes are its own `decide` on what they hold, and each
may end before any of its writes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddlecloud.api import model as kinds
from paddlecloud.api.model import aliases
from paddlecloud.api.model.reference import LATEST
from paddlecloud.api.model.spec import ModelSpec, Retention
from paddlecloud.api.problems import encode
from paddlecloud.controllers.model.decide import ModelPlan, Observed, decide
from paddlecloud.kube.plan import merge_diff
from paddlecloud.kube.resource import MODELS, MODELVERSIONS
from paddlecloud.kube.times import rfc3339
from paddlecloud.modelhub.retention import newest_first
from paddlecloud.modelhub.users import VersionUser, users_of, users_of_model

HOUR = 3600.0


@dataclass
class Hub:
    now: float = 1_790_000_000.0
    model: dict[str, Any] | None = None
    versions: dict[str, dict[str, Any]] = field(default_factory=dict)
    stored: set[str] = field(default_factory=set)
    services: dict[str, dict[str, Any]] = field(default_factory=dict)
    pushed: int = 0
    removed: list[str] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)
    """Versions that a user deleted, or that went with the model."""

    # What users do

    def push(self) -> None:
        self.now += 1
        self.pushed += 1
        name = str(self.pushed)
        self.model = self.model or self._object(MODELS, "ocr", spec={})
        spec = {"model": "ocr", "version": name, "createdAt": rfc3339(self.now)}
        self.stored.add(name)
        self.versions[name] = self._object(MODELVERSIONS, f"ocr.{name}", spec=spec)
        self.tag(LATEST, name)

    def tag(self, alias: str, version: str) -> None:
        """As the SDK does: not to what does not exist or is being deleted."""
        found = self.versions.get(version)
        if self.model is None or found is None or "deletionTimestamp" in found["metadata"]:
            return
        self._write(aliases.moved(self.spec, alias, version, by="ada", at=rfc3339(self.now)))

    def untag(self, alias: str) -> None:
        if self.model is not None:
            self._write(aliases.removed(self.spec, alias, by="ada", at=rfc3339(self.now)))

    def retain(self, rule: Retention | None) -> None:
        if self.model is not None:
            spec = self.spec
            spec.retention = rule
            self._write(spec)

    def serve(self, name: str, reference: str | None) -> None:
        """The service goes on serving the version it had until the next one is ready: `settle`."""
        if reference is None:
            self.services.pop(name, None)
            return
        status = self.services.get(name, {}).get("status") or {}
        kind = {"apiVersion": "serving.paddlepaddle.org/v1", "kind": "PaddleService", "metadata": {"name": name}}
        self.services[name] = {**kind, "spec": {"model": reference}, "status": status}

    def settle(self) -> None:
        for service in self.services.values():
            text = service["spec"]["model"]
            version = text.partition(":")[2] or (self.spec.aliases or {}).get(text.partition("@")[2])
            if version in self.stored:
                service["status"] = {"models": [{"name": "ocr", "version": version}]}

    def delete(self, version: str) -> None:
        if version in self.versions:
            self.asked.add(version)
            self.versions[version]["metadata"].setdefault("deletionTimestamp", rfc3339(self.now))
            self._collect()

    def delete_model(self) -> None:
        if self.model is not None:
            self.model["metadata"].setdefault("deletionTimestamp", rfc3339(self.now))
            self._collect()

    # What the controller does

    def reconcile(self, which: str, *, until: int = 99) -> None:
        """A pass over the model (empty) or a version that is killed after so many writes."""
        obj = self.versions.get(which) if which else self.model
        if obj is not None:
            observed = self._observe_version(obj) if which else self._observe_model()
            self._carry_out(obj, decide(obj, observed, self.now), until)

    def _observe_version(self, version: dict[str, Any]) -> Observed:
        name = version["spec"]["version"]
        found = users_of("ocr", name, self.spec if self.model else None, self.services.values())
        if self.model is not None and "deletionTimestamp" in self.model["metadata"]:
            found = [user for user in found if user != VersionUser("alias", LATEST)]
        return Observed(users=found, stored=name in self.stored, model=self.model)

    def _observe_model(self) -> Observed:
        versions, services = list(self.versions.values()), list(self.services.values())
        found = users_of_model("ocr", self.spec, services)
        return Observed(users=found, versions=versions, kept_versions=versions, services=services)

    def _carry_out(self, obj: dict[str, Any], plan: ModelPlan, until: int) -> None:
        steps: list[Any] = []
        if plan.forget:
            steps.append(lambda: self._forget(obj["spec"]["version"]))
        whole = "deletionTimestamp" in obj["metadata"]
        steps += [partial(self._mark, each.name.partition(".")[2], whole) for each in plan.delete]
        marks = [patch.patch["metadata"]["finalizers"] for patch in plan.patch]
        steps += [partial(obj["metadata"].update, finalizers=each) for each in marks]
        if plan.status is not None and merge_diff(obj.get("status") or {}, plan.status):
            steps.append(lambda: obj.update(status=plan.status))
        for step in steps[:until]:
            step()
            self._collect()

    def _mark(self, version: str, whole: bool) -> None:
        if whole:
            self.asked.add(version)
        self.versions[version]["metadata"].setdefault("deletionTimestamp", rfc3339(self.now))

    def _forget(self, version: str) -> None:
        named = {to for name, to in (self.spec.aliases or {}).items() if name != LATEST or version not in self.asked}
        if self.model is not None:
            assert version not in named, "an alias names it"
        for service in self.services.values():
            assert {"name": "ocr", "version": version} not in service["status"].get("models", ()), "it is served"
            assert service["spec"]["model"] != f"ocr:{version}", "a service names it"
        if version not in self.asked:
            newest = newest_first(self.versions.values())[0]["spec"]["version"]
            assert version != newest, "retention removes the newest"
        self.stored.discard(version)
        self.removed.append(version)

    # What an API server does

    @property
    def spec(self) -> ModelSpec:
        return kinds.decode(self.model).spec or ModelSpec() if self.model is not None else ModelSpec()

    def _write(self, spec: ModelSpec | None) -> None:
        if spec is not None and self.model is not None:
            self.model["spec"] = encode(spec)

    def _object(self, kind: Any, name: str, spec: dict[str, Any]) -> dict[str, Any]:
        meta = {"name": name, "namespace": "team", "uid": f"{name}-{self.pushed}", "resourceVersion": "1"}
        meta |= {"creationTimestamp": rfc3339(self.now), "generation": 1}
        return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, "spec": spec}

    def _collect(self) -> None:
        """Objects that are deleted and that no finalizer keeps are gone."""

        def is_gone(obj: dict[str, Any]) -> bool:
            return "deletionTimestamp" in obj["metadata"] and not obj["metadata"].get("finalizers")

        if self.model is not None and is_gone(self.model):
            self.model = None
            for version in self.versions:  # as garbage collection does with what it owned
                self._mark(version, True)
        self.versions = {name: obj for name, obj in self.versions.items() if not is_gone(obj)}

    def rest(self) -> None:
        """Passes until nothing changes any more."""
        for _ in range(30):
            before = repr((self.model, self.versions, self.stored))
            for which in ["", *self.versions]:
                self.reconcile(which)
            if repr((self.model, self.versions, self.stored)) == before:
                return
        raise AssertionError("the controller does not come to rest")


NUMBER = st.integers(1, 4).map(str)
ALIAS = st.sampled_from(["production", "staging"])
MOVES = st.one_of(
    st.tuples(st.just("push")),
    st.tuples(st.just("push")),
    st.tuples(st.just("tag"), ALIAS, NUMBER),
    st.tuples(st.just("untag"), ALIAS),
    st.tuples(
        st.just("retain"),
        st.one_of(
            st.none(),
            st.builds(Retention, count=st.integers(1, 3)),
            st.builds(Retention, age=st.sampled_from(["2h", "1d"])),
            st.builds(Retention, count=st.integers(1, 3), age=st.sampled_from(["2h", "1d"])),
        ),
    ),
    st.tuples(
        st.just("serve"),
        st.sampled_from(["a", "b"]),
        st.one_of(st.none(), NUMBER.map("ocr:{}".format), ALIAS.map("ocr@{}".format)),
    ),
    st.tuples(st.just("settle")),
    st.tuples(st.just("delete"), NUMBER),
    st.tuples(st.just("delete_model")),
    st.tuples(st.just("time"), st.sampled_from([HOUR, 3 * HOUR, 30 * HOUR])),
    st.tuples(st.just("reconcile"), st.one_of(st.just(""), NUMBER), st.integers(0, 3)),
    st.tuples(st.just("rest")),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(MOVES, min_size=20, max_size=60))
def test_in_any_order_nothing_goes_that_is_named_served_or_the_newest(moves: list[tuple[Any, ...]]) -> None:
    hub = Hub()
    for kind, *given_ in moves:
        if kind == "time":
            hub.now += given_[0]
        elif kind == "reconcile":
            hub.reconcile(given_[0], until=given_[1])
        else:
            getattr(hub, kind)(*given_)
        kept = {name for name, obj in hub.versions.items() if obj["metadata"].get("finalizers")}
        assert kept <= hub.stored | {name for name in kept if "deletionTimestamp" in hub.versions[name]["metadata"]}
    hub.rest()
    deleted = [obj for obj in hub.versions.values() if "deletionTimestamp" in obj["metadata"]]
    assert all((obj.get("status") or {}).get("phase") == "Terminating" for obj in deleted), "it says who uses it"
    hub.services.clear()
    for alias in list(hub.spec.aliases or {}):
        hub.untag(alias)
    hub.rest()
    assert not [obj for obj in hub.versions.values() if "deletionTimestamp" in obj["metadata"]], "nothing uses it"
    assert hub.model is None or "deletionTimestamp" not in hub.model["metadata"]
    if hub.pushed and hub.model is not None and not hub.asked:
        assert str(hub.pushed) in hub.stored


@pytest.mark.parametrize("killed_after", range(4))
def test_a_removal_that_is_killed_at_any_write_is_finished_by_the_next_pass(killed_after: int) -> None:
    hub = Hub()
    for _ in range(3):
        hub.push()
    hub.rest()
    hub.delete("1")
    hub.reconcile("1", until=killed_after)
    hub.rest()
    assert (sorted(hub.versions), hub.stored) == (["2", "3"], {"2", "3"})
