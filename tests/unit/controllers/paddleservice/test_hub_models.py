"""Versions of the ModelHub in a PaddleService: which one is meant, how long it stays, what the status says of it."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.api.names import MODEL_VERSION, RETRY_AT, SOURCE
from paddlecloud.controllers.paddleservice.hub_pods import HubAccess
from paddlecloud.controllers.paddleservice.observe import Measure
from paddlecloud.controllers.paddleservice.resolution import Hub, Version, read_mark
from paddlecloud.controllers.paddleservice.template import Site
from paddlecloud.kube.clock import rfc3339
from paddlecloud.modelhub import pod_access, read_grant
from unit.controllers.paddleservice.world import START, ServiceCluster

KEY = b"k" * 32
SITE = Site(hub=HubAccess("http://hub:8090", KEY))
STORE = SITE._replace(model_endpoint="http://models:9000")


def digest(number: int) -> str:
    return f"sha256:{number:064x}"


def hub(versions: dict[str, int], **aliases: str) -> Hub:
    """A namespace with the model `ocr`: versions with the number that their digest has, and aliases."""
    model = {"metadata": {"name": "ocr"}, "spec": {"aliases": aliases}}
    objects = {
        f"ocr.{version}": {"spec": {"model": "ocr", "version": version, "digest": digest(number)}}
        for version, number in versions.items()
    }
    return Hub({"ocr": model}, objects)


BOTH = {"7": 7, "8": 8}


def service(model: str, found: Hub, site: Site = SITE, **spec: Any) -> ServiceCluster:
    world = ServiceCluster(model=model, **spec)
    world.service["spec"].pop("default")
    world.hub, world.site = found, site
    return world


def retry(world: ServiceCluster) -> None:
    world.service["metadata"]["annotations"] = {RETRY_AT: rfc3339(world.now)}


def served(world: ServiceCluster) -> list[tuple[str, str, int]]:
    return [(entry["endpoint"], entry["version"], entry["percent"]) for entry in world.status.get("models", [])]


def container(world: ServiceCluster, name: str) -> dict[str, Any]:
    found: dict[str, Any] = world.revisions[name]["spec"]["containers"][0]
    return found


# Which one is meant


@pytest.mark.parametrize(
    ("model", "found", "site", "meant"),
    [
        ("ocr@production", hub(BOTH, production="7"), SITE, ("ocr", "7", digest(7))),
        ("ocr:8", hub(BOTH, production="7"), SITE, ("ocr", "8", digest(8))),
        ("ocr", hub(BOTH, latest="8"), SITE, ("ocr", "8", digest(8))),
        ("ocr:latest", hub(BOTH, latest="8"), STORE, ("ocr", "8", digest(8))),
        ("ocr:7", hub(BOTH), STORE, ("ocr", "7", digest(7))),  # a Model of the namespace comes before the store
        ("digits:v3", hub(BOTH), STORE, ("digits", "v3", "")),
        ("digits", Hub(), STORE, ("digits", "latest", "")),
        ("PP_OCR:v3", Hub(), STORE, ("PP_OCR", "v3", "")),
    ],
)
def test_which_version_is_meant(model: str, found: Hub, site: Site, meant: tuple[str, str, str]) -> None:
    world = service(model, found, site)
    world.settle()
    (entry,) = world.status["models"]
    assert (entry["name"], entry["version"], entry.get("digest", "")) == meant
    assert entry["reference"] == model
    assert world.status["default"]["model"] == f"{meant[0]}:{meant[1]}"
    assert (world.condition("ModelReady")["status"], world.condition("Ready")["status"]) == ("True", "True")


@pytest.mark.parametrize(
    ("model", "found", "site", "reason", "says"),
    [
        ("ocr@production", Hub(), STORE, "ModelNotFound", "`pdc model ls` lists what there is"),
        ("ocr@production", hub(BOTH, latest="8"), SITE, "AliasNotFound", "it has latest: `pdc model tag ocr:VERSION"),
        ("ocr@production", hub({}, production="9"), SITE, "VersionNotFound", "points to version 9, which does not"),
        ("ocr:9", hub(BOTH), STORE, "VersionNotFound", "`pdc model ls ocr` lists those that do"),
        (
            "ocr@prdoction",
            hub(BOTH, production="8"),
            SITE,
            "AliasNotFound",
            'it has production (did you mean "production"?)',
        ),
        (
            "orc:7",
            Hub(names=("ocr",)),
            SITE,
            "ModelNotFound",
            'no Model orc in namespace ns (did you mean "ocr"?), where',
        ),
        ("orc@latest", Hub(names=("ocr",)), SITE, "ModelNotFound", '(did you mean "ocr"?): `pdc model ls`'),
        ("digits:v3", hub(BOTH), SITE, "ModelNotFound", "PADDLECLOUD_MODEL_ENDPOINT of the controller"),
        (
            "digits:v3",
            hub(BOTH),
            SITE,
            "ModelNotFound",
            "there is no Model digits in namespace ns, where `pdc model ls`",
        ),
        ("ocr:7", hub(BOTH), Site(), "NoModelHub", "models.store"),
    ],
)
def test_what_cannot_be_served_is_refused_with_the_next_command(
    model: str, found: Hub, site: Site, reason: str, says: str
) -> None:
    world = service(model, found, site)
    world.step()
    ready = world.condition("Ready")
    assert (ready["status"], ready["reason"], world.kservice) == ("False", reason, None)
    assert says in ready["message"] == world.status["message"]
    assert len(world.events) == 1
    assert not world.step(), "it is said once"


def test_what_was_refused_begins_by_itself_once_it_exists() -> None:
    world = service("ocr@production", Hub())
    world.step()
    world.hub = hub(BOTH, production="7")
    world.settle()
    assert served(world) == [("default", "7", 100)]
    assert world.condition("Ready")["status"] == "True"


def test_a_name_that_the_pod_may_find_by_its_own_environment_is_left_to_it() -> None:
    world = service("digits:v3", Hub(), envFrom=[{"configMapRef": {"name": "stores"}}])
    world.settle()
    assert served(world) == [("default", "v3", 100)]


# What pods are given


def test_a_pod_is_given_the_exact_version_and_a_grant_for_it() -> None:
    world = service("ocr@production", hub(BOTH, production="7"))
    world.settle()
    (name,) = world.names("default")
    found = container(world, name)
    assert found["args"] == ["--model", "ocr:7", "--name", "m", "--port", "8080", "--cache", "/mnt/models"]
    access = pod_access.from_environment({entry["name"]: entry["value"] for entry in found["env"]})
    assert access is not None
    assert (access.hub, access.model, access.version, access.digest) == ("http://hub:8090", "ocr", "7", digest(7))
    assert read_grant.verify(KEY, access.grant) == ("ns", "ocr", "7", digest(7))
    annotations = world.revisions[name]["metadata"]["annotations"]
    assert read_mark(annotations[MODEL_VERSION]) == Version("ocr", "7", digest(7))
    assert annotations[SOURCE] == '{"model": "ocr:7"}', "going back leads to the version, wherever the alias is"


@pytest.mark.parametrize(
    ("root", "volume"),
    [
        ("", {"emptyDir": {}}),
        ("/var/lib/models/", {"hostPath": {"path": "/var/lib/models/ns", "type": "DirectoryOrCreate"}}),
    ],
)
def test_replicas_of_a_namespace_share_a_folder_of_the_node_where_there_is_a_root(root: str, volume: Any) -> None:
    world = service("ocr:7", hub(BOTH), SITE._replace(hub=SITE.hub._replace(node_root=root)))
    world.settle()
    (found,) = world.revisions.values()
    assert found["spec"]["volumes"] == [{"name": "model", **volume}]
    assert found["spec"]["containers"][0]["volumeMounts"] == [{"name": "model", "mountPath": "/mnt/models"}]


@pytest.mark.parametrize("text", ["", "ocr", "ocr:7@sha256:12", "ocr:7@md5:1", ":7", "a:b:c", "ocr:7@"])
def test_a_mark_that_no_controller_wrote_is_nothing(text: str) -> None:
    assert read_mark(text) is None


# How long it stays


def test_without_follow_a_moved_alias_changes_nothing_and_the_way_to_take_it_up_is_said() -> None:
    world = service("ocr@production", hub(BOTH, production="7"))
    world.settle()
    names = world.names("default")
    world.hub = hub(BOTH, production="8")
    world.settle()
    world.change(containerConcurrency=5)  # not even another change of the service
    world.settle()
    assert served(world) == [("default", "7", 100)]
    model = world.condition("ModelReady")
    assert (model["status"], model["reason"]) == ("True", "AliasMoved")
    assert "ocr@production points to version 8 now; this service keeps 7" in model["message"]
    assert "`pdc retry pds/m` takes up what the alias points to" in model["message"]
    assert world.status["message"] == model["message"]
    assert [event for event in world.events if event.startswith("AliasMoved")] == [f"AliasMoved: {model['message']}"]
    assert world.condition("Ready")["status"] == "True"

    retry(world)
    world.settle()
    assert served(world) == [("default", "8", 100)]
    assert world.condition("ModelReady")["reason"] == "Resolved"
    assert names[0] in world.revisions, "the way back is kept"


def test_with_follow_a_moved_alias_is_rolled_out_and_moving_it_back_rolls_back() -> None:
    world = service("ocr@production", hub(BOTH, production="7"), follow=True)
    world.settle()
    (old,) = world.names("default")
    world.hub = hub(BOTH, production="8")
    world.settle(start=False)
    new = world.names("default")[-1]
    assert served(world) == [("default", "7", 100), ("default", "8", 0)], "nothing before it is ready"
    assert (world.status["default"]["model"], world.status["default"]["latest"]) == ("ocr:7", new)
    world.now += 60
    world.settle()
    assert world.shares == {new: 100}
    assert served(world) == [("default", "8", 100)]
    assert world.status["models"][0]["since"] == rfc3339(START + 60)
    world.hub = hub(BOTH, production="7")
    world.settle()
    assert world.shares == {old: 100}
    assert served(world) == [("default", "7", 100)]
    assert len(world.revisions) == 2, "the revision of before is used again"


def test_a_followed_alias_goes_through_the_gates_of_the_roll_out() -> None:
    rollout = {"steps": [10], "pauseSeconds": 60, "maxErrorPercent": 1}
    world = service("ocr@production", hub(BOTH, production="7"), follow=True, rollout=rollout)
    world.settle()
    world.hub = hub(BOTH, production="8")
    world.settle()
    old, new = world.names("default")
    assert sorted(served(world)) == [("default", "7", 90), ("default", "8", 10)]
    world.measures[new] = Measure(100, 50.0, 1.0)
    world.settle()
    assert world.shares == {old: 100}
    assert world.condition("Ready")["reason"] == "WentBack"
    assert served(world)[0] == ("default", "7", 100)
    world.hub = hub(BOTH, production="7")
    world.settle()
    assert (world.condition("Ready")["reason"], served(world)) == ("Ready", [("default", "7", 100)])


def test_a_version_that_is_named_never_changes_under_follow() -> None:
    world = service("ocr:7", hub(BOTH, latest="7"), follow=True)
    world.settle()
    world.hub = hub(BOTH, latest="8")
    world.settle()
    assert served(world) == [("default", "7", 100)]


def test_a_service_that_was_rolled_back_to_a_version_says_that_it_follows_nothing() -> None:
    world = service("ocr@production", hub(BOTH, production="8", latest="8"), follow=True)
    world.settle()
    assert world.condition("ModelReady")["reason"] == "Resolved"
    world.change(model="ocr:7")
    world.settle()
    model = world.condition("ModelReady")
    assert (model["status"], model["reason"]) == ("True", "NotFollowing")
    assert "`pdc serve ocr@production --name m --follow`" in model["message"]
    assert world.status["message"] == model["message"]
    world.change(model="ocr@production")
    world.settle()
    assert world.condition("ModelReady")["reason"] == "Resolved"


def test_a_version_as_the_canary_of_a_service_that_follows_is_nothing_to_remark() -> None:
    world = service("ocr@production", hub(BOTH, production="7"), follow=True, canary={"model": "ocr:8"})
    world.settle()
    assert world.condition("ModelReady")["reason"] == "Resolved"


def test_a_model_that_gets_the_name_of_one_in_the_store_changes_nothing() -> None:
    world = service("ocr:v1", Hub(), STORE)
    world.settle()
    world.hub = hub(BOTH)
    world.settle()
    world.change(containerConcurrency=5)
    world.settle()
    assert served(world) == [("default", "v1", 100)]
    assert world.condition("ModelReady")["status"] == "True"


def test_a_canary_that_is_promoted_keeps_the_version_it_was_tried_with() -> None:
    found = hub(BOTH, production="7", staging="8")
    world = service("", found, default={"model": "ocr@production"}, canary={"model": "ocr@staging"})
    world.service["spec"] |= {"default": {"model": "ocr@production"}}
    world.service["spec"].pop("model")
    world.settle()
    assert served(world) == [("default", "7", 50), ("canary", "8", 50)]
    assert (world.status["default"]["model"], world.status["canary"]["model"]) == ("ocr:7", "ocr:8")
    world.hub = hub(BOTH, production="7", staging="7")
    world.change(default={"model": "ocr@staging"}, canary=None)
    world.settle()
    assert served(world) == [("default", "8", 100)]


def test_since_counts_from_the_first_revision_of_the_version() -> None:
    world = service("ocr:7", hub(BOTH))
    world.settle()
    world.now += 3600
    world.change(containerConcurrency=5)
    world.settle()
    assert len(world.names("default")) == 2
    assert world.status["models"][0]["since"] == rfc3339(START)


# What goes wrong later


@pytest.mark.parametrize(
    ("model", "follow", "later", "reason", "says"),
    [
        ("ocr:7", False, hub({"8": 8}), "VersionNotFound", "further nodes cannot fetch it: push it again"),
        ("ocr:7", False, hub({"7": 9, "8": 8}), "DigestMismatch", "`pdc retry pds/m` serves the new files"),
        ("ocr@production", True, hub({"7": 9}, production="7"), "DigestMismatch", "removed and pushed again"),
        ("ocr@production", True, hub(BOTH), "AliasNotFound", "`pdc model tag ocr:VERSION production`"),
        ("ocr@production", True, Hub(), "ModelNotFound", "`pdc model ls`"),
        ("ocr@production", True, hub(BOTH, production="9"), "VersionNotFound", "points to version 9"),
        ("ocr@production", False, Hub(), "VersionNotFound", "was removed from namespace ns"),
    ],
)
def test_what_serves_goes_on_when_its_version_is_lost(
    model: str, follow: bool, later: Hub, reason: str, says: str
) -> None:
    world = service(model, hub(BOTH, production="7"), follow=follow)
    world.settle()
    (name,) = world.names("default")
    world.hub = later
    world.settle()
    assert world.shares == {name: 100}
    found = world.condition("ModelReady")
    assert (found["status"], found["reason"]) == ("False", reason)
    assert says in found["message"] == world.status["message"]
    assert world.condition("Ready")["status"] == "True", "it answers"
    assert world.events.count(f"{reason}: {found['message']}") == 1
    world.hub = hub(BOTH, production="7")
    world.settle()
    assert world.condition("ModelReady")["reason"] == "Resolved"
    assert world.names("default") == [name]


def test_a_followed_alias_leaves_a_version_that_was_removed() -> None:
    world = service("ocr@production", hub(BOTH, production="7"), follow=True)
    world.settle()
    world.hub = hub({"8": 8}, production="8")
    world.settle()
    assert served(world) == [("default", "8", 100)]


def test_a_retry_that_finds_no_alias_is_refused_and_taken_up_once_there_is_one() -> None:
    world = service("ocr@production", hub(BOTH, production="7"))
    world.settle()
    (old,) = world.names("default")
    world.hub = hub(BOTH)
    retry(world)
    world.settle()
    assert world.condition("Ready")["reason"] == "AliasNotFound"
    assert world.status["retriedAt"] == world.service["metadata"]["annotations"][RETRY_AT]
    assert world.shares == {old: 100}
    assert served(world) == [("default", "7", 100)]
    world.hub = hub(BOTH, production="8")
    world.settle()
    assert served(world) == [("default", "8", 100)]


def test_a_change_to_what_does_not_exist_leaves_what_serves() -> None:
    world = service("ocr@production", hub(BOTH, production="7"))
    world.settle()
    world.change(model="ocr@staging")
    world.settle()
    assert world.condition("Ready")["reason"] == "AliasNotFound"
    assert served(world) == [("default", "7", 100)]
    world.change(model="ocr@production")
    world.hub = hub(BOTH, production="8")
    world.settle()
    assert served(world) == [("default", "8", 100)], "named anew, it is looked up anew"
