"""Links of a pod's answer lead through the proxy again, and those of others stay as they are."""

from __future__ import annotations

import pytest

from paddlecloud.local.apiserver.proxy.links import rewrite_html, rewriter

PREFIX = "/api/v1/namespaces/a/pods/p:80/proxy"
rewrite = rewriter(PREFIX, pod="127.64.0.5:80", host="localhost:8001")


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("/x/?a=b#c", f"{PREFIX}/x/?a=b#c"),
        ("http://127.64.0.5:80/x?a=b", f"{PREFIX}/x?a=b"),
        ("http://localhost:8001/x", f"http://localhost:8001{PREFIX}/x"),
        (f"{PREFIX}/x", f"{PREFIX}/x"),
        ("x/y", "x/y"),
        ("?a=b", "?a=b"),
        ("https://example.org/x", "https://example.org/x"),
        ("//example.org/x", "//example.org/x"),
        ("http://127.64.0.5:81/x", "http://127.64.0.5:81/x"),
        ("mailto:a@b", "mailto:a@b"),
        ("http://[bad/", "http://[bad/"),
        ("", ""),
    ],
)
def test_only_paths_of_the_pod_itself_are_rewritten(link: str, expected: str) -> None:
    assert rewrite(link) == expected


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ('<a href="/x">', f'<a href="{PREFIX}/x">'),
        ("<A title='/t' HREF = '/x' >/y</A>", f"<A title='/t' HREF = '{PREFIX}/x' >/y</A>"),
        ("<img alt=x src=/i.png>", f"<img alt=x src={PREFIX}/i.png>"),
        ('<form action="/f"><input formaction="/g"/>', f'<form action="{PREFIX}/f"><input formaction="{PREFIX}/g"/>'),
        ('<a data-href="/x" href>', '<a data-href="/x" href>'),
        ('<p href="/x">', '<p href="/x">'),
        ('<!-- <a href="/x"> --><a href="/y">', f'<!-- <a href="/x"> --><a href="{PREFIX}/y">'),
        (
            '<script src="/s.js">p(\'<a href="/x">\')</script><a href="/y">',
            f'<script src="{PREFIX}/s.js">p(\'<a href="/x">\')</script><a href="{PREFIX}/y">',
        ),
        ('1 < 2 <a href="/é?x=1&amp;y=2">', f'1 < 2 <a href="{PREFIX}/é?x=1&amp;y=2">'),
        ('<a href="/x', '<a href="/x'),
        ("<!-- never ended", "<!-- never ended"),
        ("", ""),
    ],
)
def test_attributes_that_hold_links_are_rewritten_and_all_else_is_kept(page: str, expected: str) -> None:
    assert rewrite_html(page.encode(), rewrite).decode() == expected
