"""What a refusal says to programs: its reason, and in `details` what it is about.

Clients look into `details` without checking that they are there (`kubectl debug` does), so the reasons that have them
always do, be they empty.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from paddlecloud.kube.resource import CONFIGMAPS, LEASES, PODS, Object

from .world import DEPLOYMENTS, Api, ScratchNamespace, a, sleeping_pod


class Refused(NamedTuple):
    reason: str
    details: Object | None


def refused(api: Api, method: str, path: str, body: Any = None, **options: Any) -> Refused:
    """Reason and details, the latter without their causes: their wording is checked where it matters."""
    status = api.refuse(method, path, body, **options)
    details = status.get("details")
    if details is not None:
        details = {key: value for key, value in details.items() if key != "causes"}
    return Refused(status["reason"], details)


def test_an_object_that_is_not_there(here: ScratchNamespace) -> None:
    assert refused(here.api, "GET", here.path(CONFIGMAPS, "none")) == (
        "NotFound",
        {"name": "none", "kind": "configmaps"},
    )
    assert refused(here.api, "DELETE", here.path(DEPLOYMENTS, "none")) == (
        "NotFound",
        {"name": "none", "group": "apps", "kind": "deployments"},
    )


@pytest.mark.parametrize("path", ["unicorns", "pods/p/unknown-subresource", "unicorns/u/status"])
def test_a_resource_that_is_not_there(here: ScratchNamespace, path: str) -> None:
    assert refused(here.api, "GET", f"/api/v1/namespaces/{here.namespace}/{path}") == ("NotFound", {})


def test_an_object_that_is_there_already(here: ScratchNamespace) -> None:
    here.make(CONFIGMAPS, "c")
    answer = refused(here.api, "POST", here.path(CONFIGMAPS), a(CONFIGMAPS, "c"))
    assert answer == ("AlreadyExists", {"name": "c", "kind": "configmaps"})


def test_an_object_that_has_changed(here: ScratchNamespace) -> None:
    old = here.make(LEASES, "l")
    here.patch(LEASES, "l", {"spec": {"holderIdentity": "me"}})
    about = {"name": "l", "group": "coordination.k8s.io", "kind": "leases"}
    assert refused(here.api, "PUT", here.path(LEASES, "l"), old) == ("Conflict", about)
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "another"}}
    assert refused(here.api, "DELETE", here.path(LEASES, "l"), options) == ("Conflict", {**about, "kind": "Lease"})


def test_a_field_that_is_owned_by_another(here: ScratchNamespace) -> None:
    here.apply(CONFIGMAPS, "c", by="one", data={"a": "1"})
    answer = refused(
        here.api, "PATCH", here.path(CONFIGMAPS, "c"), a(CONFIGMAPS, "c", data={"a": "2"}),
        content_type="application/apply-patch+yaml", query={"fieldManager": "two"},
    )  # fmt: skip
    assert answer == ("Conflict", {})


def test_an_object_that_makes_no_sense(here: ScratchNamespace) -> None:
    answer = refused(here.api, "POST", here.path(PODS), sleeping_pod("p", spec={"containers": []}))
    assert answer == ("Invalid", {"name": "p", "kind": "Pod"})
    body = a(DEPLOYMENTS, "d", spec={"replicas": -1})
    assert refused(here.api, "POST", here.path(DEPLOYMENTS), body) == (
        "Invalid",
        {"name": "d", "group": "apps", "kind": "Deployment"},
    )


def test_a_right_that_one_does_not_have(here: ScratchNamespace) -> None:
    nobody = here.api.sending(("Impersonate-User", "nobody"))
    try:
        assert refused(nobody, "GET", here.path(CONFIGMAPS, "c")) == ("Forbidden", {"name": "c", "kind": "configmaps"})
        assert refused(nobody, "GET", here.path(DEPLOYMENTS)) == ("Forbidden", {"group": "apps", "kind": "deployments"})
        assert refused(nobody, "GET", "/metrics") == ("Forbidden", {})
    finally:
        nobody.close()


def test_a_verb_that_does_not_fit(here: ScratchNamespace) -> None:
    assert refused(here.api, "PUT", here.path(CONFIGMAPS), a(CONFIGMAPS, "c")) == ("MethodNotAllowed", {})


@pytest.mark.parametrize(
    ("method", "path", "body", "options"),
    [
        ("POST", "configmaps", b"{", {}),
        ("GET", "configmaps", None, {"query": {"labelSelector": "a b c"}}),
        ("POST", "configmaps", b"{}", {"content_type": "text/html"}),
    ],
    ids=["no JSON", "no selector", "no known media type"],
)
def test_a_request_that_was_not_understood_is_about_nothing(
    here: ScratchNamespace, method: str, path: str, body: bytes | None, options: dict[str, Any]
) -> None:
    answer = refused(here.api, method, f"/api/v1/namespaces/{here.namespace}/{path}", body, **options)
    assert answer.details is None
