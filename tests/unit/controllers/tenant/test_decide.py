"""What the controller of tenants decides, on a cluster in a dictionary, and a table for each rule."""

from __future__ import annotations

import copy
import uuid
from typing import Any

import pytest

from paddlecloud.api.names import KEPT_ANNOTATION, OWNER_ANNOTATION, PROFILE_LABEL, PROFILE_UID, QUEUE_NAME
from paddlecloud.api.names import PROFILE_FINALIZER as MARK
from paddlecloud.controllers.tenant import TenantSettings
from paddlecloud.controllers.tenant.decide import KUBEFLOWS_FINALIZER, LOOK_AGAIN, Observed, ParsedProfile, decide
from paddlecloud.controllers.tenant.objects import ACCOUNTS
from paddlecloud.kube.conditions import conditions_of
from paddlecloud.kube.plan import Delete, Patch, Plan
from paddlecloud.kube.resource import PROFILES, Object, controller_of
from unit.plan_runner import Crash, PlanRunner, merge

NOW = 1_790_000_000.0
SETTINGS = TenantSettings(pod_security="baseline", reached_from=("paddle-system",), hub=("jhub", "hub"))
ADA = {"kind": "User", "name": "ada"}
RIGHTS = {
    "default-editor": ("edit", ["default-editor"]),
    "default-viewer": ("view", ["default-viewer"]),
    "tenant-notebooks": ("paddlecloud-notebooks", ["hub"]),
    "tenant-owner": ("edit", ["ada"]),
}


class World(PlanRunner):
    """One Profile, the namespace of its name and what is in it, a Queue; garbage is collected when the Profile goes."""

    def __init__(self, *, queues: bool = True, policies: bool = True, **spec: Any) -> None:
        super().__init__()
        kind = {"apiVersion": PROFILES.api_version, "kind": PROFILES.kind}
        meta = {"name": "vision", "uid": "uid-profile", "resourceVersion": "1", "generation": 1}
        self.profile: Object | None = {**kind, "metadata": meta, "spec": {"owner": ADA, **spec}}
        self.objects: dict[tuple[str, str], Object] = {}
        self.served = {"queues": queues, "policies": policies}
        self.owner_missing = False
        self.refusal = ""

    @property
    def namespace(self) -> Object | None:
        return self.objects.get(("Namespace", "vision"))

    @property
    def ready(self) -> tuple[str, str]:
        assert self.profile is not None
        (found,) = [each for each in conditions_of(self.profile) if each["type"] == "Ready"]
        return found["status"], found["reason"]

    def change(self, **spec: Any) -> None:
        assert self.profile is not None
        self.profile["spec"] |= spec
        self.profile["metadata"]["generation"] += 1

    def delete(self) -> None:
        assert self.profile is not None
        self.profile["metadata"]["deletionTimestamp"] = "now"

    def settle(self, *, crash_after: int | None = None) -> int:
        """Passes until nothing changes; how many writes that took."""
        before = len(self.writes)
        for _ in range(12):
            if self.profile is None:
                return len(self.writes) - before
            shown = copy.deepcopy((self.profile, self.objects))
            inside = {key: each for key, each in self.objects.items() if key[0] not in ("Namespace", "Queue")}
            labelled = {
                key: each for key, each in inside.items() if PROFILE_LABEL in each["metadata"].get("labels", {})
            }
            accounts = [each for (kind, name), each in inside.items() if kind == "ServiceAccount" and name in ACCOUNTS]
            parsed, queue = ParsedProfile.of(self.profile), self.objects.get(("Queue", "vision"))
            observed = Observed(
                parsed, self.namespace, labelled, accounts, queue, **self.served,
                owner_missing=self.owner_missing, settings=SETTINGS, refusal=self.refusal,
            )  # fmt: skip
            self.run_plan(decide(copy.deepcopy(self.profile), observed, NOW), crash_after=crash_after)
            if (self.profile, self.objects) == shown:
                return len(self.writes) - before
        raise AssertionError("it does not come to rest")

    def write_status(self, plan: Plan) -> None:
        if plan.status is not None and self.profile is not None and plan.status != self.profile.get("status"):
            self.count("status")
            self.profile["status"] = copy.deepcopy(plan.status)

    def delete_planned(self, delete: Delete) -> None:
        found = self.objects.get((delete.resource.kind, delete.name))
        if found is None:
            return
        assert delete.uid in (None, found["metadata"]["uid"])
        if found["metadata"].get("finalizers"):
            found["metadata"]["deletionTimestamp"] = "now"
            return
        del self.objects[delete.resource.kind, delete.name]
        if delete.resource.kind == "Namespace":
            self.objects = {key: each for key, each in self.objects.items() if key[0] == "Queue"}

    def patch_planned(self, patch: Patch) -> None:
        key = patch.resource.kind, patch.name
        if patch.kind == "apply":
            uid = self.objects.get(key, {}).get("metadata", {}).get("uid") or uuid.uuid4().hex
            made = copy.deepcopy(patch.patch)
            made["metadata"]["uid"] = uid
            self.objects[key] = made
            return
        assert self.profile is not None
        target = self.profile if key[0] == PROFILES.kind else self.objects.get(key)
        if target is None:
            return
        merge(target, copy.deepcopy(patch.patch))
        if (
            key in self.objects
            and target["metadata"].get("deletionTimestamp")
            and not target["metadata"].get("finalizers")
        ):
            del self.objects[key]
        if self.profile["metadata"].get("deletionTimestamp") and not self.profile["metadata"].get("finalizers"):
            self.profile = None
            kept = {key: each for key, each in self.objects.items() if controller_of(each) is None}
            self.objects = kept

    def create_planned(self, obj: Object) -> bool:
        self.count(f"create {obj['kind']}")
        made = copy.deepcopy(obj)
        made["metadata"] |= {"uid": uuid.uuid4().hex, "resourceVersion": "1"}
        return self.objects.setdefault((obj["kind"], obj["metadata"]["name"]), made) is made

    def rights(self) -> dict[str, tuple[str, list[str]]]:
        return {
            name: (each["roleRef"]["name"], [subject["name"] for subject in each["subjects"]])
            for (kind, name), each in self.objects.items()
            if kind == "RoleBinding"
        }


def existing(**annotations: str) -> Object:
    meta = {"name": "vision", "uid": "uid-before", "resourceVersion": "5", "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}


def test_a_tenant_gets_a_namespace_with_rights_quota_defaults_and_queue() -> None:
    world = World(resourceQuotaSpec={"hard": {"requests.cpu": "2000m", "requests.nvidia.com/gpu": 4, "pods": 20}})
    world.settle()
    assert world.ready == ("True", "Done")
    assert world.rights() == RIGHTS
    assert world.namespace is not None
    meta = world.namespace["metadata"]
    assert meta["annotations"] == {OWNER_ANNOTATION: "ada", QUEUE_NAME: "vision", PROFILE_UID: "uid-profile"}
    assert meta["labels"]["pod-security.kubernetes.io/enforce"] == "baseline"
    assert controller_of(world.namespace) is None, "garbage collection would take the data along"
    specs = {kind: each["spec"] for (kind, _), each in world.objects.items() if "spec" in each}
    hard = {"requests.cpu": "2", "requests.nvidia.com/gpu": "4", "pods": "20"}
    assert specs["ResourceQuota"] == {"hard": hard}
    assert specs["LimitRange"] == {"limits": [{"type": "Container", "defaultRequest": {"cpu": "100m"}}]}
    assert specs["Queue"] == {"weight": 1, "capability": {"cpu": "2", "nvidia.com/gpu": "4"}}
    (sources,) = [rule["from"] for rule in specs["NetworkPolicy"]["ingress"]]
    assert sources[0] == {"podSelector": {}}
    assert sources[1]["namespaceSelector"]["matchExpressions"][0]["values"] == ["paddle-system"]
    assert world.settle() == 0
    assert world.events == ["Normal Creating: namespace vision is being made",
                            "Normal TenantReady: namespace vision is ready for ada"]  # fmt: skip


def test_where_nothing_is_served_or_asked_for_nothing_is_made() -> None:
    world = World(queues=False, policies=False)
    world.settle()
    assert {kind for kind, _ in world.objects} == {"Namespace", "ServiceAccount", "RoleBinding"}


def test_people_come_and_go_and_what_others_changed_is_put_back() -> None:
    eve = {"kind": "ServiceAccount", "name": "robot", "namespace": "ci", "role": "view"}
    world = World(contributors=[{"kind": "Group", "name": "reviewers"}, eve])
    world.settle()
    assert world.rights() == {**RIGHTS, "tenant-edit": ("edit", ["reviewers"]), "tenant-view": ("view", ["robot"])}
    world.change(contributors=[], owner={"kind": "User", "name": "grace"}, resourceQuotaSpec={"hard": {"pods": "5"}})
    world.settle()
    assert world.rights() == {**RIGHTS, "tenant-owner": ("edit", ["grace"])}
    assert world.namespace is not None
    assert world.namespace["metadata"]["annotations"][OWNER_ANNOTATION] == "grace"
    world.objects["RoleBinding", "tenant-owner"]["subjects"].append({"kind": "User", "name": "mallory"})
    world.objects.pop(("ResourceQuota", "kf-resource-quota"))
    world.namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = "privileged"
    assert world.settle() == 2
    assert world.rights()["tenant-owner"] == ("edit", ["grace"])
    assert world.namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "privileged"


@pytest.mark.parametrize("annotations", [{}, {OWNER_ANNOTATION: "bob"}, {PROFILE_UID: "uid-of-another"}])
def test_a_namespace_of_somebody_else_is_left_as_it_is(annotations: dict[str, str]) -> None:
    world = World()
    world.objects["Namespace", "vision"] = existing(**annotations)
    world.settle()
    assert world.objects == {("Namespace", "vision"): existing(**annotations)}
    assert world.ready == ("False", "NamespaceTaken")
    assert world.events[-1].startswith("Warning NamespaceTaken: namespace vision exists")
    world.delete()
    world.settle()
    assert (world.profile, world.objects) == (None, {("Namespace", "vision"): existing(**annotations)})


def test_a_namespace_whose_annotation_names_the_owner_is_taken_over() -> None:
    world = World()
    world.objects["Namespace", "vision"] = existing(**{OWNER_ANNOTATION: "ada", KEPT_ANNOTATION: "yesterday"})
    world.settle()
    assert world.ready == ("True", "Done")
    assert world.namespace is not None
    assert (world.namespace["metadata"]["uid"], world.rights()) == ("uid-before", RIGHTS)
    assert KEPT_ANNOTATION not in world.namespace["metadata"]["annotations"]


def test_a_deleted_profile_leaves_the_data_and_no_rights_and_the_same_owner_gets_them_back() -> None:
    world = World()
    world.settle()
    world.objects["PersistentVolumeClaim", "data"] = {"metadata": {"uid": "uid-claim"}, "kind": "PersistentVolumeClaim"}
    world.delete()
    world.settle()
    assert world.profile is None
    assert sorted(world.objects) == [
        ("Namespace", "vision"), ("PersistentVolumeClaim", "data"), ("ResourceQuota", "tenant-closed"),
    ]  # fmt: skip
    assert world.objects["ResourceQuota", "tenant-closed"]["spec"] == {"hard": {"pods": "0"}}
    assert world.events[-1].startswith("Normal NamespaceKept")
    again = World()
    again.objects = world.objects
    again.settle()
    assert (again.ready, again.rights()) == (("True", "Done"), RIGHTS)
    assert ("ResourceQuota", "tenant-closed") not in again.objects
    assert ("PersistentVolumeClaim", "data") in again.objects


@pytest.mark.parametrize("finalizers", [[], ["tenant.example/stays"]])
def test_an_account_that_people_of_the_namespace_hide_does_not_outlive_the_profile(finalizers: list[str]) -> None:
    world = World()
    world.settle()
    account = world.objects["ServiceAccount", "default-editor"]["metadata"]
    del account["labels"], account["ownerReferences"]
    account |= {"finalizers": finalizers} if finalizers else {}
    policy = world.objects["NetworkPolicy", "tenant"]["metadata"]
    policy |= {"finalizers": finalizers} if finalizers else {}
    world.delete()
    world.settle()
    assert world.profile is None
    assert not [name for kind, name in world.objects if kind == "ServiceAccount"], "its tokens would outlive the tenant"


def test_accounts_that_were_there_before_a_takeover_are_made_anew() -> None:
    world = World()
    world.objects["Namespace", "vision"] = existing(**{OWNER_ANNOTATION: "ada"})
    meta = {"name": "default-editor", "namespace": "vision", "uid": "of-somebody", "finalizers": ["a/b"]}
    world.objects["ServiceAccount", "default-editor"] = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}
    world.settle()
    assert world.ready == ("True", "Done")
    assert world.objects["ServiceAccount", "default-editor"]["metadata"]["uid"] != "of-somebody"


def test_data_goes_only_with_the_word_for_it() -> None:
    world = World(deletionPolicy="Delete")
    world.settle()
    world.delete()
    world.settle()
    assert (world.profile, world.objects) == (None, {})


@pytest.mark.parametrize("policy", ["Keep", "Delete"])
def test_killed_anywhere_the_next_pass_completes_it_and_data_is_never_lost_on_the_way(policy: str) -> None:
    for writes in range(8):
        world = World(deletionPolicy=policy)
        for step in (lambda: None, world.delete):
            step()
            try:
                world.settle(crash_after=writes)
            except Crash:
                world.settle()
        assert world.profile is None
        assert (world.namespace is None) == (policy == "Delete")
        assert world.rights() == {}


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"owner": {"kind": "User", "name": "system:anonymous"}}, "requests without credentials get no rights"),
        ({"owner": {"kind": "ServiceAccount", "name": "robot"}}, "an account is of a namespace"),
        ({"owner": None}, "say who gets the namespace"),
        ({"owner": {"kind": "Robot", "name": "r2"}}, "supported values"),
        ({"contributors": [{"kind": "Group", "name": "system:unauthenticated"}]}, "spec.contributors[0].name"),
        ({"contributors": [{"kind": "User", "name": "bob", "role": "cluster-admin"}]}, "spec.contributors[0].role"),
        ({"resourceQuotaSpec": {"hard": {"cpu": "a lot"}}}, "a lot"),
        ({"resourceQuotaSpec": {"hard": {"cpu": "1e999"}}}, "1e999"),
        ({"resourceQuotaSpec": {"hard": {"cpus": "8"}}}, 'did you mean "cpu"?'),
        ({"queue": {"weight": 0}}, "spec.queue.weight"),
        ({"plugins": "none"}, "plugins"),
    ],
)
def test_what_cannot_be_carried_out_is_said_and_makes_nothing(spec: dict[str, Any], text: str) -> None:
    world = World(**spec)
    world.settle()
    assert world.objects == {}
    assert world.profile is not None
    assert (world.ready, text in world.profile["status"]["message"]) == (("False", "InvalidSpec"), True), world.profile


def test_what_users_should_know_of_a_tenant_that_works_is_in_its_conditions() -> None:
    world = World(
        owner={"kind": "ServiceAccount", "name": "robot", "namespace": "ci"},
        plugins=[{"kind": "WorkloadIdentity"}],
        resourceQuotaSpec={"hard": {"pods": "2", "memory": "1Gi"}},
    )
    world.owner_missing = True
    world.objects["Queue", "vision"] = {"kind": "Queue", "metadata": {"name": "vision", "uid": "of-somebody"}}
    world.settle()
    quota = world.objects["ResourceQuota", "kf-resource-quota"]
    quota["status"] = {"used": {"pods": "3", "memory": "512Mi"}}
    world.settle()
    assert world.profile is not None
    texts = {each["type"]: each.get("message") for each in conditions_of(world.profile) if each["status"] == "True"}
    assert texts == {
        "Ready": None,
        "OwnerMissing": "system:serviceaccount:ci:robot does not exist (yet)",
        "QuotaExceeded": "more is in use than the quota allows (pods 3 of 2): nothing is stopped, nothing new starts",
        "QueueTaken": "Queue vision is not made for this Profile; gangs wait in the queue that they name",
        "PluginsIgnored": "plugins are not carried out here: WorkloadIdentity",
    }
    assert world.objects["Queue", "vision"]["metadata"]["uid"] == "of-somebody"
    quota["status"] = {"used": {"pods": "2"}}
    world.owner_missing = False
    world.settle()
    holding = {each["type"] for each in conditions_of(world.profile) if each["status"] == "True"}
    assert holding == {"Ready", "QueueTaken", "PluginsIgnored"}


def test_a_refusal_is_in_the_status_until_a_pass_succeeds() -> None:
    world = World()
    world.settle()
    world.refusal = "create ResourceQuota: bad name"
    world.settle()
    assert world.ready == ("False", "Refused")
    world.refusal = ""
    world.settle()
    assert world.ready == ("True", "Done")


def test_a_profile_that_kubeflow_carries_out_is_kubeflows() -> None:
    world = World()
    assert world.profile is not None
    world.profile["metadata"]["finalizers"] = [KUBEFLOWS_FINALIZER]
    assert world.settle() == 0
    world.profile["metadata"]["finalizers"] = [KUBEFLOWS_FINALIZER, MARK]
    assert world.settle() > 0


@pytest.mark.parametrize("missing", [True, False])
def test_an_owner_that_does_not_exist_is_looked_for_again(missing: bool) -> None:
    profile = World().profile
    assert profile is not None
    plan = decide(profile, Observed(ParsedProfile.of(profile), owner_missing=missing), NOW)
    assert plan.after == (LOOK_AGAIN if missing else None)


def test_the_namespace_of_jupyterhub_is_nobodys_tenant() -> None:
    """Who could create pods there could use the hub's account, which starts pods for all tenants."""
    profile = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "Profile",
        "metadata": {"name": "jhub", "uid": "u", "resourceVersion": "1"},
        "spec": {"owner": ADA},
    }
    taken = {"metadata": {"name": "jhub", "annotations": {"owner": "ada"}, "resourceVersion": "1"}}
    parsed = ParsedProfile.of(profile)
    plan = decide(profile, Observed(parsed, taken, settings=SETTINGS), NOW)
    assert not plan.patch
    assert not plan.create
    assert "is that of JupyterHub" in plan.status["message"]
    assert decide(profile, Observed(parsed, taken, settings=SETTINGS._replace(hub=None)), NOW).patch


@pytest.mark.parametrize("text", ["", "jhub", "jhub/", "/hub"])
def test_a_hub_that_is_not_wholly_named_is_none(text: str) -> None:
    assert TenantSettings.of({"PADDLECLOUD_TENANT_HUB": text}).hub is None
    assert TenantSettings.of({"PADDLECLOUD_TENANT_HUB": "jhub/hub"}).hub == ("jhub", "hub")
