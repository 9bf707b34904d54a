"""Namespaces: created with their default objects, deleted with all that is in them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from paddlecloud.kube import errors
from paddlecloud.kube.resource import CONFIGMAPS, NAMESPACES, PODS, SECRETS, SERVICEACCOUNTS, Resource

from .world import Api, ScratchNamespace, eventually, sleeping_pod


@pytest.fixture
def doomed(api: Api, namespace: str) -> Iterator[ScratchNamespace]:
    name = f"doomed-{namespace}"
    ScratchNamespace(api, "").make(NAMESPACES, name)
    yield ScratchNamespace(api, name)
    api.send("DELETE", NAMESPACES.path(None, name))


def test_a_new_namespace_is_active_and_knows_its_name(here: ScratchNamespace) -> None:
    found = here.get(NAMESPACES, here.namespace)
    assert found["status"]["phase"] == "Active"
    assert found["spec"]["finalizers"] == ["kubernetes"]
    assert found["metadata"]["labels"] == {"kubernetes.io/metadata.name": here.namespace}


def test_a_new_namespace_gets_its_default_objects(here: ScratchNamespace) -> None:
    eventually(lambda: here.exists(SERVICEACCOUNTS, "default"), True)
    eventually(lambda: here.exists(CONFIGMAPS, "kube-root-ca.crt"), True)
    assert "BEGIN CERTIFICATE" in here.get(CONFIGMAPS, "kube-root-ca.crt")["data"]["ca.crt"]


def test_the_root_certificate_comes_back_when_it_is_deleted_or_changed(here: ScratchNamespace) -> None:
    def certificate() -> str:
        if not here.exists(CONFIGMAPS, "kube-root-ca.crt"):
            return ""
        return str(here.get(CONFIGMAPS, "kube-root-ca.crt")["data"].get("ca.crt", ""))

    right = eventually(certificate, lambda found: "BEGIN CERTIFICATE" in found)
    here.delete(CONFIGMAPS, "kube-root-ca.crt")
    eventually(certificate, right)
    here.patch(CONFIGMAPS, "kube-root-ca.crt", {"data": {"ca.crt": "", "more": "x"}})
    eventually(lambda: here.get(CONFIGMAPS, "kube-root-ca.crt")["data"], {"ca.crt": right})


def test_finalizers_of_a_namespace_are_written_through_finalize_only(doomed: ScratchNamespace) -> None:
    name = doomed.namespace
    found = doomed.patch(NAMESPACES, name, {"metadata": {"labels": {"a": "b"}}, "spec": {"finalizers": []}})
    assert (found["spec"]["finalizers"], found["metadata"]["labels"]["a"]) == (["kubernetes"], "b")
    found["spec"]["finalizers"].append("example.org/hold")
    held = doomed.update(NAMESPACES, {**found, "status": {"phase": "Odd"}}, subresource="finalize")
    assert held["spec"]["finalizers"] == ["kubernetes", "example.org/hold"]
    assert held["status"]["phase"] == "Active"
    doomed.delete(NAMESPACES, name)
    eventually(lambda: doomed.get(NAMESPACES, name)["spec"]["finalizers"], ["example.org/hold"])
    dying = doomed.get(NAMESPACES, name)
    doomed.update(NAMESPACES, {**dying, "spec": {"finalizers": []}}, subresource="finalize")
    eventually(lambda: doomed.exists(NAMESPACES, name), False)


@pytest.mark.parametrize("finalizer", ["short", "bad name/x"])
def test_a_finalizer_of_a_namespace_has_a_qualified_name(doomed: ScratchNamespace, finalizer: str) -> None:
    found = doomed.get(NAMESPACES, doomed.namespace)
    found["spec"]["finalizers"].append(finalizer)
    with pytest.raises(errors.Invalid, match="spec.finalizers"):
        doomed.update(NAMESPACES, found, subresource="finalize")


@pytest.mark.parametrize("method", ["GET", "PATCH"])
def test_finalize_can_only_be_updated(doomed: ScratchNamespace, method: str) -> None:
    path = NAMESPACES.path(None, doomed.namespace, "finalize")
    patch = {} if method == "GET" else {"body": {}, "content_type": "application/merge-patch+json"}
    assert doomed.api.refuse(method, path, **patch)["code"] == 405


def test_pods_of_a_dying_namespace_go_before_all_else(doomed: ScratchNamespace) -> None:
    eventually(lambda: doomed.exists(SERVICEACCOUNTS, "default"), True)
    doomed.create(PODS, sleeping_pod("p", finalizers=["example.org/hold"]))
    doomed.make(CONFIGMAPS, "settings")
    doomed.delete(NAMESPACES, doomed.namespace)
    eventually(lambda: "deletionTimestamp" in doomed.get(PODS, "p")["metadata"], True)
    eventually(lambda: bool(doomed.get(NAMESPACES, doomed.namespace)["status"].get("conditions")), True)
    assert doomed.names(CONFIGMAPS) == ["settings"]
    doomed.patch(PODS, "p", {"metadata": {"finalizers": None}})
    eventually(lambda: doomed.exists(NAMESPACES, doomed.namespace), False)


def test_a_deleted_namespace_takes_everything_along(doomed: ScratchNamespace, widgets: Resource) -> None:
    doomed.make(SECRETS, "s")
    doomed.make(widgets, "w")
    answer = doomed.delete(NAMESPACES, doomed.namespace)
    assert answer["kind"] == "Namespace"
    assert answer["status"]["phase"] == "Terminating"
    eventually(lambda: doomed.exists(NAMESPACES, doomed.namespace), False)
    assert doomed.names(SECRETS) == []
    assert doomed.names(widgets) == []


def test_a_dying_namespace_lets_nothing_in_and_waits_for_finalizers(doomed: ScratchNamespace) -> None:
    doomed.make(CONFIGMAPS, "hold", finalizers=["example.org/hold"])
    doomed.delete(NAMESPACES, doomed.namespace)
    with pytest.raises(errors.Forbidden, match="because it is being terminated") as refused:
        doomed.make(CONFIGMAPS, "late")
    assert refused.value.details is not None
    assert refused.value.details["causes"][0]["reason"] == "NamespaceTerminating"
    assert doomed.get(NAMESPACES, doomed.namespace)["status"]["phase"] == "Terminating"
    eventually(lambda: "deletionTimestamp" in doomed.get(CONFIGMAPS, "hold")["metadata"], True)
    doomed.patch(CONFIGMAPS, "hold", {"metadata": {"finalizers": None}})
    eventually(lambda: doomed.exists(NAMESPACES, doomed.namespace), False)


def test_a_dying_namespace_shows_what_holds_it(doomed: ScratchNamespace) -> None:
    doomed.make(CONFIGMAPS, "hold", finalizers=["example.org/hold"])
    doomed.delete(NAMESPACES, doomed.namespace)

    def conditions() -> dict[str, str]:
        status = doomed.get(NAMESPACES, doomed.namespace)["status"]
        return {c["type"]: c["status"] for c in status.get("conditions", [])}

    seen = eventually(conditions, lambda now: now.get("NamespaceFinalizersRemaining") == "True")
    assert seen["NamespaceContentRemaining"] == "True"
    doomed.patch(CONFIGMAPS, "hold", {"metadata": {"finalizers": None}})


def test_a_name_can_be_used_again(doomed: ScratchNamespace) -> None:
    doomed.make(SECRETS, "s")
    doomed.delete(NAMESPACES, doomed.namespace)
    eventually(lambda: doomed.exists(NAMESPACES, doomed.namespace), False)
    doomed.make(NAMESPACES, doomed.namespace)
    assert doomed.names(SECRETS) == []


@pytest.mark.parametrize("name", ["kube-system", "default"])
def test_some_namespaces_cannot_be_deleted(api: Api, name: str) -> None:
    status = api.refuse("DELETE", NAMESPACES.path(None, name))
    assert (status["code"], status["reason"]) == (403, "Forbidden")
    assert "may not be deleted" in status["message"]


def test_namespaces_are_not_deleted_in_bulk(api: Api) -> None:
    assert api.refuse("DELETE", NAMESPACES.path())["code"] == 405
