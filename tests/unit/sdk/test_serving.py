"""A PaddleService as the SDK shows it."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from paddlecloud.sdk.serving import NotServed, ServiceManifest, is_service

BODY = {"apiVersion": "serving.paddlepaddle.org/v1", "kind": "PaddleService", "metadata": {"name": "m"}}


def service(**status: Any) -> ServiceManifest:
    return ServiceManifest({**BODY, "status": status})


@pytest.mark.parametrize(
    ("url", "address"),
    [("http://127.0.0.1:41001", "127.0.0.1:41001"), ("http://m.default.example.com", "m.default.example.com:80")],
)
def test_a_service_says_where_it_answers_as_a_url_and_as_host_and_port(url: str, address: str) -> None:
    assert (service(url=url).url, service(url=url).address) == (url, address)


def test_a_service_without_a_url_says_why() -> None:
    with pytest.raises(NotServed, match=r"m has no URL yet: no such image; wait_for\('Ready'\)"):
        _ = service(message="no such image").url


def test_without_tritonclient_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tritonclient.http", None)
    with pytest.raises(ImportError, match=r"pip install 'tritonclient\[grpc,http\]'"):
        service(url="http://127.0.0.1:41001").triton()


def test_both_groups_are_services_and_knatives_are_not() -> None:
    assert is_service(BODY)
    assert is_service({**BODY, "apiVersion": "elasticserving.paddlepaddle.org/v1"})
    assert not is_service({"apiVersion": "serving.knative.dev/v1", "kind": "Service"})
