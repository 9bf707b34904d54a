"""Knative Services with real kubectl: reached by host and by path, split, asleep and awake again."""

from __future__ import annotations

import json

from embedded.serving_world import apply, ask, kservice, read, url_of
from harness import Kubectl


def test_a_service_answers_under_every_name_it_has(kubectl: Kubectl, namespace: str) -> None:
    apply(kubectl, kservice("hello", "one"))
    url = url_of(kubectl, "ksvc", "hello")
    assert url.startswith(f"http://hello.{namespace}.localhost:")
    expected = (200, "one hello-00001")
    assert ask(url) == expected
    for host in (f"hello.{namespace}.example.com", f"hello.{namespace}", f"hello.{namespace}.svc.cluster.local"):
        assert ask(url, host=host) == expected
    assert ask(url, f"/{namespace}/hello/some/path", host="127.0.0.1") == expected
    status, text = ask(url, host="nobody.example.com")
    assert (status, "nobody.example.com" in json.loads(text)["error"]) == (404, True)


def test_the_four_kinds_are_told_as_knative_tells_them(kubectl: Kubectl, namespace: str) -> None:
    apply(kubectl, kservice("hello", "one"))
    url = url_of(kubectl, "ksvc", "hello")
    table = kubectl("get", "ksvc").stdout.splitlines()
    assert table[0].split() == ["NAME", "URL", "LATESTCREATED", "LATESTREADY", "READY", "REASON"]
    assert table[1].split() == ["hello", url, "hello-00001", "hello-00001", "True"]
    revision = kubectl("get", "rev").stdout.splitlines()
    assert revision[1].split() == ["hello-00001", "hello", "1", "True", "1", "1"]
    assert kubectl("get", "rt").stdout.splitlines()[1].split() == ["hello", url, "True"]
    assert kubectl("get", "cfg").stdout.splitlines()[1].split() == ["hello", "hello-00001", "hello-00001", "True"]
    kubectl("delete", "ksvc", "hello", "--wait", "--cascade=foreground")
    assert read(kubectl, "rev,rt,cfg,deploy")["items"] == []
    assert ask(url)[0] == 404
