"""From method, path and query to what authorisation judges: the RequestInfo of Kubernetes."""

from __future__ import annotations

import pytest

from paddlecloud.kube import errors
from paddlecloud.local.apiserver.http.request import RequestInfo, parse


@pytest.mark.parametrize(
    ("request_line", "verb", "what"),
    [
        # (namespace, resource, name, subresource)
        ("GET /api/v1/namespaces", "list", ("", "namespaces", "", "")),
        ("GET /api/v1/namespaces/a", "get", ("a", "namespaces", "a", "")),
        ("PUT /api/v1/namespaces/a/status", "update", ("a", "namespaces", "a", "status")),
        ("PUT /api/v1/namespaces/a/finalize", "update", ("a", "namespaces", "a", "finalize")),
        ("GET /api/v1/namespaces/a/pods", "list", ("a", "pods", "", "")),
        ("GET /api/v1/namespaces/a/pods/", "list", ("a", "pods", "", "")),
        ("DELETE /api/v1/namespaces/a/pods", "deletecollection", ("a", "pods", "", "")),
        ("DELETE /api/v1/namespaces/a/pods/p", "delete", ("a", "pods", "p", "")),
        ("POST /api/v1/namespaces/a/pods/p/exec", "create", ("a", "pods", "p", "exec")),
        ("PATCH /apis/apps/v1/namespaces/a/deployments/d/scale", "patch", ("a", "deployments", "d", "scale")),
        ("GET /apis/example.org/v1/namespaces/a/status", "get", ("a", "namespaces", "a", "status")),
        ("GET /api/v1/pods?watch=true", "watch", ("", "pods", "", "")),
        ("GET /api/v1/pods?watch=anything", "watch", ("", "pods", "", "")),
        ("GET /api/v1/pods?watch=False", "list", ("", "pods", "", "")),
        ("GET /api/v1/pods?watch=0", "list", ("", "pods", "", "")),
        ("GET /api/v1/namespaces/a/pods/p?watch=true", "get", ("a", "pods", "p", "")),
        ("GET /api/v1/namespaces/a/pods?fieldSelector=metadata.name=p", "list", ("a", "pods", "p", "")),
        (
            "GET /api/v1/namespaces/a/pods?watch=1&fieldSelector=spec.nodeName=n,metadata.name=p",
            "watch",
            ("a", "pods", "p", ""),
        ),
        ("GET /api/v1/namespaces/a/pods?fieldSelector=metadata.name!=p", "list", ("a", "pods", "", "")),
        ("GET /api/v1/namespaces/a/pods?fieldSelector=metadata.name=..", "list", ("a", "pods", "", "")),
        ("GET /api/v1/namespaces/a/pods?fieldSelector=metadata.name=x/y", "list", ("a", "pods", "", "")),
        ("GET /api/v1/namespaces/a/pods?fieldSelector=metadata.name", "list", ("a", "pods", "", "")),
        ("DELETE /api/v1/namespaces/a/pods?fieldSelector=metadata.name=p", "deletecollection", ("a", "pods", "", "")),
        ("GET /api/v1/watch/namespaces/a/pods/p", "watch", ("a", "pods", "p", "")),
        ("GET /api/v1/watch/namespaces/a", "watch", ("a", "namespaces", "a", "")),
        ("GET /apis/apps/v1/watch/deployments", "watch", ("", "deployments", "", "")),
    ],
)
def test_a_path_says_what_is_asked_for(request_line: str, verb: str, what: tuple[str, str, str, str]) -> None:
    info = parsed(request_line)
    assert info.is_resource
    assert (info.verb, (info.namespace, info.resource, info.name, info.subresource)) == (verb, what)
    assert info.routable


@pytest.mark.parametrize(
    ("request_line", "verb", "what"),
    [
        ("DELETE /api/v1/namespaces/a/namespaces/b", "delete", ("a", "namespaces", "b", "")),
        ("DELETE /api/v1/namespaces/a/namespaces/a", "delete", ("a", "namespaces", "a", "")),
        ("POST /api/v1/namespaces/a/namespaces", "create", ("a", "namespaces", "", "")),
        ("PUT /api/v1/namespaces/a/namespaces/b/status", "update", ("a", "namespaces", "b", "status")),
        ("GET /api/v1/watch/namespaces/a/namespaces", "watch", ("a", "namespaces", "", "")),
        ("GET /api/v1/namespaces/a/pods/p/log/more", "get", ("a", "pods", "p", "log")),
        ("GET /api/v1/namespaces/a/status/more", "get", ("a", "namespaces", "a", "status")),
        ("GET /api/v1/namespaces/a/namespaces/b/c/d", "get", ("a", "namespaces", "b", "c")),
        ("GET /api/v1/proxy/namespaces/a/pods/p", "proxy", ("a", "pods", "p", "")),
    ],
)
def test_a_path_without_a_route_is_judged_and_leads_nowhere(
    request_line: str, verb: str, what: tuple[str, str, str, str]
) -> None:
    info = parsed(request_line)
    assert (info.verb, (info.namespace, info.resource, info.name, info.subresource)) == (verb, what)
    assert not info.routable


@pytest.mark.parametrize(
    ("path", "name", "behind"),
    [
        ("pods/p/proxy", "p", ""),
        ("pods/p/proxy/", "p", "/"),
        ("pods/https:p:443/proxy/a/b/", "https:p:443", "/a/b/"),
        ("pods/https%3Ap%3A443/proxy/a", "https:p:443", "/a"),
        ("services/s/proxy/%2F//%00%25", "s", "/%2F//%00%25"),
        ("pods/p/proxy/.../x", "p", "/.../x"),
    ],
)
def test_what_is_behind_a_proxy_is_passed_on_as_it_was_sent(path: str, name: str, behind: str) -> None:
    info = parsed(f"GET /api/v1/namespaces/a/{path}")
    assert (info.name, info.subresource, info.proxied, info.routable) == (name, "proxy", behind, True)


@pytest.mark.parametrize(
    "path",
    ["pods/p/proxy/..", "pods/p/proxy/a/%2e%2e/b", "pods/p/proxy/./b", "pods/p%2Fproxy/b", "pods/%2e%2e/proxy/b"],
)
def test_a_path_that_leads_out_of_a_proxy_leads_nowhere(path: str) -> None:
    info = parsed(f"GET /api/v1/namespaces/a/{path}")
    assert (info.subresource, info.routable) == ("proxy", False)


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("/api/v1/namespaces/a%2fnamespaces/b", ("a", "namespaces", "b")),
        ("/api/v1/namespaces/a/..%2f..%2fnamespaces/b", ("a", "..", "..")),
        ("/api/v1/namespaces/a/%2e%2e/b/secrets", ("a", "..", "b")),
        ("/api/v1/namespaces/%2e/secrets/s", (".", "secrets", "s")),
        ("/api/v1/namespaces//secrets/s", ("", "secrets", "s")),
        ("/api/v1//namespaces/a/secrets", ("", "", "namespaces")),
        ("/apis//v1/namespaces/a/secrets/s", ("a", "secrets", "s")),
        ("//api/v1/namespaces/a/secrets/s", ("a", "secrets", "s")),
        ("/api/v1/namespaces/a/secrets/%00", ("a", "secrets", "\0")),
        ("/api/v1/namespaces/a/secrets/%252e%252e", ("a", "secrets", "%2e%2e")),
    ],
)
def test_a_path_that_could_be_read_in_two_ways_is_read_as_kubernetes_does_and_leads_nowhere(
    path: str, what: tuple[str, str, str]
) -> None:
    info = parse("GET", path, {})
    assert (info.namespace, info.resource, info.name) == what
    assert not info.routable


def test_a_slash_that_is_escaped_or_at_the_end_changes_nothing() -> None:
    plain = parse("GET", "/api/v1/namespaces/a/secrets/s", {})
    for path in ("/api/v1/namespaces/a%2Fsecrets/s", "/api/v1/namespaces/a/secrets/s/"):
        assert parse("GET", path, {})._replace(path=plain.path) == plain


def test_an_escape_of_nothing_is_refused() -> None:
    with pytest.raises(errors.BadRequest, match="percent sign"):
        parse("GET", "/api/v1/namespaces/a/secrets/%zz", {})


@pytest.mark.parametrize(
    ("method", "path", "verb"),
    [
        ("HEAD", "/api", "head"),
        ("POST", "/healthz", "post"),
        ("OPTIONS", "/version", "options"),
        ("HEAD", "/api/v1/pods", "list"),
        ("OPTIONS", "/api/v1/pods", ""),
    ],
)
def test_the_verb_of_a_url_is_the_method_and_of_an_object_never_an_unknown_one(
    method: str, path: str, verb: str
) -> None:
    assert parse(method, path, {}).verb == verb


@pytest.mark.parametrize("broken", ["labelSelector=x in (1", "limit=many", "timeoutSeconds=1s"])
def test_a_name_is_selected_only_by_options_that_can_all_be_read(broken: str) -> None:
    assert parsed(f"GET /api/v1/pods?fieldSelector=metadata.name=p&{broken}").name == ""


def parsed(request_line: str) -> RequestInfo:
    method, _, target = request_line.partition(" ")
    path, _, query = target.partition("?")
    return parse(method, path, dict(part.split("=", 1) for part in query.split("&") if part))
