"""Hostile input: too large, too deep, too many, too clever."""

from __future__ import annotations

import http.client
from collections.abc import Iterator

import msgspec
import pytest

from paddlecloud.kube import errors
from paddlecloud.kube.resource import CONFIGMAPS, SECRETS, Object, Resource

from .world import Api, ScratchNamespace

MEGABYTE = 1 << 20


def test_a_body_of_more_than_three_megabytes_is_too_large(here: ScratchNamespace) -> None:
    body = msgspec.json.encode({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "x" * (3 * MEGABYTE + 1)}})
    response = here.api.send("POST", here.path(CONFIGMAPS), body)
    assert response.status == 413
    assert here.names(CONFIGMAPS) == []


def endless(megabytes: int) -> Iterator[bytes]:
    yield b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"a":"'
    for _ in range(megabytes):
        yield b"x" * MEGABYTE


def test_a_hundred_megabytes_in_chunks_are_not_swallowed(here: ScratchNamespace) -> None:
    """The server answers or hangs up long before the end, and serves others meanwhile and afterwards."""
    with here.api.connect() as connection:
        try:
            connection.request(
                "POST", here.path(CONFIGMAPS), body=endless(100), encode_chunked=True,
                headers=here.api.headers(**{"Content-Type": "application/json", "Transfer-Encoding": "chunked"}),
            )  # fmt: skip
            assert connection.getresponse().status == 413
        except (ConnectionError, http.client.HTTPException, OSError):
            pass  # hung up on while still sending: the other way to refuse
    assert here.names(CONFIGMAPS) == []


def test_a_body_announced_as_huge_is_refused_unread(here: ScratchNamespace) -> None:
    with here.api.connect() as connection:
        connection.putrequest("POST", here.path(CONFIGMAPS))
        for name, value in here.api.headers(**{"Content-Type": "application/json"}).items():
            connection.putheader(name, value)
        connection.putheader("Content-Length", str(100 * MEGABYTE))
        connection.endheaders(b"{" + b" " * (4 * MEGABYTE))
        assert connection.getresponse().status == 413


def nested(depth: int) -> bytes:
    return b'{"a":' * depth + b"1" + b"}" * depth


@pytest.mark.parametrize("depth", [200, 20_000, 400_000])
def test_deep_nesting_is_refused_or_kept_but_never_fatal(here: ScratchNamespace, widgets: Resource, depth: int) -> None:
    head = f'{{"apiVersion":"{widgets.api_version}","kind":"Widget","metadata":{{"name":"w"}},"spec":{{"free":'
    response = here.api.send("POST", here.path(widgets), head.encode() + nested(depth) + b"}}")
    assert response.status in (201, 400, 413, 422)
    assert here.api.send("GET", here.path(widgets)).status == 200
    if response.status == 201:
        assert here.get(widgets, "w")["spec"]["free"]


def test_ten_thousand_labels_are_kept(here: ScratchNamespace) -> None:
    labels = {f"label-{number}": str(number) for number in range(10_000)}
    here.make(CONFIGMAPS, "c", labels=labels)
    assert here.names(CONFIGMAPS, labels="label-9999=9999,label-0=0") == ["c"]
    patched = here.patch(CONFIGMAPS, "c", {"metadata": {"labels": {"label-5": None}}})
    assert len(patched["metadata"]["labels"]) == 9_999


def test_a_selector_of_a_thousand_terms_is_answered(here: ScratchNamespace) -> None:
    here.make(SECRETS, "s", labels={"k": "v"})
    selector = ",".join(f"k!=x{number}" for number in range(500))
    assert here.names(SECRETS, labels=selector) == ["s"]


def test_a_json_patch_of_too_many_operations_is_refused(here: ScratchNamespace) -> None:
    here.make(CONFIGMAPS, "c", data={})
    operations = [{"op": "add", "path": "/data/k", "value": "v"}] * 10_001
    with pytest.raises(errors.RequestEntityTooLarge):
        here.patch(CONFIGMAPS, "c", operations, kind="json")


def test_a_yaml_bomb_does_not_go_off(here: ScratchNamespace) -> None:
    lines = ["a: &a [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"{b}: &{b} [{','.join([f'*{a}'] * 10)}]" for a, b in zip("abcdefgh", "bcdefghi", strict=True)]
    status = here.api.refuse(
        "PATCH", here.path(CONFIGMAPS, "c"), "\n".join(lines).encode(), query={"fieldManager": "x"},
        content_type="application/apply-patch+yaml",
    )  # fmt: skip
    assert status["code"] in (400, 413, 422)


def test_numbers_beyond_any_integer_are_refused_or_kept(here: ScratchNamespace, widgets: Resource) -> None:
    for number in (b"1e999", b"123456789012345678901234567890", b"-0.0", b"1e-400"):
        body = b'{"apiVersion":"%s","kind":"Widget","metadata":{"name":"w"},"spec":{"size":%s}}' % (
            widgets.api_version.encode(),
            number,
        )
        assert here.api.send("POST", here.path(widgets), body).status in (400, 422)
    assert here.names(widgets) == []


# Paths ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "trick",
    [
        "/api/v1/namespaces/{ns}/secrets/../configmaps",
        "/api/v1/namespaces/{ns}/secrets/%2e%2e/configmaps",
        "/api/v1/namespaces/{ns}%2Fsecrets",
        "/api/v1/namespaces/../../api/v1/secrets",
        "/api/v1/namespaces/{ns}/secrets/s%00",
        "/api/v1/namespaces/{ns}/secrets/s%2F..%2Fs",
        "/api/v1//namespaces/{ns}/secrets",
        "//etc/passwd",
        "/../../etc/passwd",
    ],
)
def test_no_path_leads_round_authorisation(here: ScratchNamespace, trick: str) -> None:
    """For one who may do nothing, no spelling of a path may show anything."""
    here.make(SECRETS, "s", stringData={"k": "v"})
    with here.api.connect() as connection:
        headers = here.api.headers(**{"Impersonate-User": "nobody", "Accept": "application/json"})
        connection.request("GET", trick.format(ns=here.namespace), headers=headers)
        answer = connection.getresponse()
        body = answer.read()
    assert answer.status in (301, 302, 307, 308, 400, 403, 404)
    assert b"dg==" not in body


def test_methods_nobody_knows_are_refused(api: Api) -> None:
    with api.connect() as connection:
        connection.request("BREW", "/api/v1/pods", headers=api.headers())
        assert connection.getresponse().status in (400, 405)


def test_a_head_request_has_no_body(here: ScratchNamespace) -> None:
    here.make(SECRETS, "s")
    with here.api.connect() as connection:
        connection.request("HEAD", here.path(SECRETS, "s"), headers=here.api.headers())
        answer = connection.getresponse()
        assert answer.read() == b""
        assert answer.status in (200, 405)


def test_prototype_like_keys_are_just_keys(here: ScratchNamespace) -> None:
    data = {"__proto__": "x", "constructor": "y", "$patch": "z"}
    made: Object = here.make(CONFIGMAPS, "c", data={key: value for key, value in data.items() if "$" not in key})
    assert made["data"] == {"__proto__": "x", "constructor": "y"}
