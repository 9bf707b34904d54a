"""What strangers send to the API server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

from paddlecloud.api.pattern import Pattern
from paddlecloud.kube import field_selectors, name_rules, quantity, selectors
from paddlecloud.kube.templates import jsonpath
from paddlecloud.kube.timetable import timetable, zone_of
from paddlecloud.local.apiserver.auth.rbac import Rule
from paddlecloud.local.apiserver.auth.rule_cover import uncovered
from paddlecloud.local.apiserver.builtin.validation.pod import validate_pod
from paddlecloud.local.apiserver.http import negotiation
from paddlecloud.local.apiserver.http.duplicates import duplicate_fields
from paddlecloud.local.apiserver.http.request import parse as parse_path
from paddlecloud.local.apiserver.objects import apply as serverside
from paddlecloud.local.apiserver.objects import fieldset, patch, strategic_merge
from paddlecloud.local.apiserver.objects.managed_fields import record_update
from paddlecloud.local.apiserver.proxy.links import rewrite_html, rewriter
from paddlecloud.local.apiserver.schema.formats import _CHECKS as FORMATS
from paddlecloud.local.apiserver.streaming import spdy
from paddlecloud.local.apiserver.streaming.remote_command import terminal_size
from unit.budgets.inputs import JSON, Row, field, nested, of, times
from unit.local.apiserver.objects.schemas_for_merging import WIDGET, widget
from unit.local.apiserver.objects.test_strategic import POD

YAML: dict[str, Callable[[int], bytes]] = {
    "lists in lists": times(b"[", b"a: "),
    "maps in maps": times(b"{a: ", b"a: "),
    "many keys": lambda size: b"".join(b"k%d: 0\n" % n for n in range(size // 9)),
    "one key many times": times(b"a: 0\n"),
    "aliases": times(b"- *a\n", b"x: &a 1\ny:\n"),
    "aliases of lists": times(b"- *a\n", b"x: &a [1,1,1,1,1,1,1,1]\ny:\n"),
    "merges": times(b"*a,", b"x: &a {a: 1}\ny:\n  <<: [", b"*a]\n"),
    "anchors": lambda size: b"".join(b"k%d: &k%d 0\n" % (n, n) for n in range(size // 14)),
    "escapes": times(b"\\x41", b'a: "', b'"'),
    "an unterminated text": times(b"a ", b'a: "'),
    "comments": times(b"# a\n", b"", b"a: 1\n"),
    "documents": times(b"---\na: 1\n"),
    "empty documents": times(b"---\n"),
    "a block of text": times(b"  a\n", b"a: |\n"),
    "tags": times(b"- !!str a\n", b"a:\n"),
    "digits": times(b"1", b"a: "),
    "underscores": times(b"_", b"a: 1"),
    "spaces": times(b" ", b"a: b", b"c"),
    "dashes": times(b"- "),
    "question marks": times(b"? "),
}

PAGES: dict[str, Callable[[int], bytes]] = {
    "links": times(b'<a href="/x">'),
    "one long link": times(b"/x", b'<a href="', b'">'),
    "tags that never end": times(b"<a "),
    "values that never end": times(b'<a href="'),
    "both quotes": times(b"<a x='<a x=\""),
    "empty values": times(b"<a href="),
    "spaces": times(b" ", b"<a href"),
    "comments": times(b"<!--"),
    "scripts": times(b"<script>"),
    "ended scripts": times(b"<script></script>"),
    "angles": times(b"<"),
}


def kube_message(kind: str, raw: bytes) -> bytes:
    return b"k8s\0" + field(1, field(1, b"v1") + field(2, kind.encode())) + field(2, raw)


def envelope(kind: str, make: Callable[[int], bytes]) -> Callable[[int], bytes]:
    return lambda size: kube_message(kind, make(size))


def custom_kind(schema: Callable[[int], bytes]) -> Callable[[int], bytes]:
    """A CustomResourceDefinition of one version with a schema of a size."""
    kind = field(1, field(1, b"apiextensions.k8s.io/v1") + field(2, b"CustomResourceDefinition"))
    return lambda size: b"k8s\0" + kind + field(2, field(2, field(7, field(4, field(1, schema(size))))))


PROTOBUF: dict[str, Callable[[int], bytes]] = {
    "entries of a map": envelope("ConfigMap", times(field(2, field(1, b"k") + field(2, b"v")))),
    "empty entries of a map": envelope("ConfigMap", times(b"\x12\x00")),
    "containers": envelope("Pod", times(field(2, field(2, field(1, b"c"))))),
    "messages in messages": envelope("Pod", partial(nested, 2)),
    "unknown fields": envelope("Pod", times(b"\xf8\x7f\x00")),
    "a number that never ends": envelope("Pod", times(b"\xff")),
    "one long text": envelope("ConfigMap", lambda size: field(1, field(1, b"a" * size))),
    "envelopes": times(field(1, field(1, b"v1")), b"k8s\0"),
    "properties of a schema": custom_kind(times(field(29, field(1, b"a") + field(2, field(5, b"string"))))),
    "schemas in schemas": custom_kind(partial(nested, 28)),
    "values of JSON": custom_kind(times(field(20, field(1, b'{"a":[1]}')))),
}
LABELS: dict[str, Callable[[int], str]] = {
    "terms": times("a=b,", "", "c"),
    "a set": times("b,", "a in (", "c)"),
    "commas": times(","),
    "exclamation marks": times("!"),
    "spaces": times(" ", "a", "b"),
    "parentheses": times("("),
    "a long key": times("a"),
    "a long subdomain": times("a.", "", "a/b"),
    "dashes": times("-", "a", "="),
}
FIELDS: dict[str, Callable[[int], str]] = {
    "terms": times("metadata.name=b,"),
    "escapes": times("\\,", "metadata.name="),
    "commas": times(","),
    "equals signs": times("=", "a"),
    "backslashes": times("\\", "a="),
}
PATHS: dict[str, Callable[[int], str]] = {
    "fields": times(".a"),
    "indices": times("[0]"),
    "recursion": times("..a"),
    "filters": times("[?(@.a==1)]"),
    "unions": times("0,", ".a[", "0]"),
    "quotes": times("\\'", ".a['", "']"),
    "brackets": times("["),
}
TEMPLATES: dict[str, Callable[[int], str]] = {
    "actions": times("{.a}"),
    "ranges in ranges": times("{range .a[*]}"),
    "braces": times("{"),
    "text": times("a"),
}


def operations(op: dict[str, Any]) -> Callable[[int], Any]:
    return lambda size: [dict(op) for _ in range(max(1, min(size // 40, 9000)))]


def parts(size: int) -> Any:
    return [{"name": f"n{number}", "image": "i"} for number in range(size // 32)]


def containers(size: int) -> Any:
    live = {"spec": {"containers": parts(size)}}
    return live, {"spec": {"containers": [*reversed(parts(size)), {"name": "z", "$patch": "delete"}]}}


def applied(size: int) -> Any:
    live = serverside.apply(None, widget({"parts": parts(size)}), manager="a", force=False, now=0, node=WIDGET,
                            api_version="v1")  # fmt: skip
    return live, widget({"parts": [{**part, "image": "j"} for part in reversed(parts(size))]})


def apply_it(given: Any) -> None:
    serverside.apply(given[0], given[1], manager="b", force=True, now=1, node=WIDGET, api_version="v1")


def update_it(given: Any) -> None:
    new = {**given[0], "spec": given[1]["spec"]}
    record_update(given[0], new, manager="c", now=2, node=WIDGET, api_version="v1")


def rules(unit: Callable[[int], dict[str, Any]], each: int) -> Callable[[int], Any]:
    return lambda size: [Rule.of({"verbs": ["get"], **unit(number)}) for number in range(max(1, size // each))]


def many(letter: str, count: int) -> list[str]:
    return [f"{letter}{number}" for number in range(count)]


RULES: dict[str, Callable[[int], Any]] = {
    "resources by names": rules(
        lambda n: {"apiGroups": [f"g{n}"], "resources": many("r", 150), "resourceNames": many("n", 130)}, 2200
    ),
    "groups by resources": rules(lambda n: {"apiGroups": many("g", 100), "resources": many(f"r{n}-", 100)}, 1600),
    "one rule": lambda size: [Rule.of({"verbs": many("v", size // 30), "apiGroups": many("g", size // 30),
                                       "resources": many("r", size // 30)})],
    "small rules": rules(lambda n: {"apiGroups": ["g"], "resources": [f"r{n}"]}, 60),
    "verbs of one resource": rules(
        lambda n: {"verbs": [f"v{n}", f"v{n + 1}"], "apiGroups": [""], "resources": ["r"]}, 60),
    "paths": rules(lambda n: {"nonResourceURLs": [f"/a{n}*", f"/b{n}"]}, 60),
}  # fmt: skip


def header_block(size: int) -> bytes:
    encoder = spdy.Encoder()
    return b"".join(encoder.syn_stream(2 * n + 1, {"a": "b" * 50}) for n in range(max(1, size // 30)))


def names(text: str) -> None:
    name_rules.qualified_name_problems(text)
    name_rules.subdomain_problems(text)
    name_rules.label_value_problems(text)


def formats(text: str) -> None:
    for check in FORMATS.values():
        check(text)


def tolerating(size: int) -> Any:
    tolerations = [{"key": f"k{number}", "operator": "Exists"} for number in range(size // 36)]
    spec = {"containers": [{"name": "a", "image": "i"}], "tolerations": tolerations}
    pod = {"metadata": {"name": "p", "namespace": "n"}, "spec": spec}
    return pod, {**pod, "spec": {**spec, "tolerations": tolerations[::-1]}}


def apiserver() -> Iterator[Row]:
    yield Row("api: pods", "an update with many tolerations", tolerating, lambda pods: validate_pod(*pods), 1 << 19)
    for name, make in JSON.items():
        yield Row("api: application/json", name, make, negotiation.read_json)
        yield Row("api: application/json", f"twice the same: {name}", make, duplicate_fields)
    for name, make in YAML.items():
        yield Row("api: application/yaml", name, make, negotiation.read_yaml, 1 << 17)
    for name, make in PROTOBUF.items():
        yield Row("api: application/vnd.kubernetes.protobuf", name, make, partial(
            negotiation.read_object, content_type=negotiation.PROTOBUF))  # fmt: skip
    for name, make in RULES.items():
        yield Row("api: rules of roles", name, make, lambda wanted: uncovered((), wanted))
        yield Row("api: rules of roles", f"{name}, half of them held, as far as they are compared", make,
                  lambda wanted: uncovered(wanted[::2], wanted), smallest=1 << 16)  # fmt: skip
    for name, texts in LABELS.items():
        yield Row("api: labelSelector", name, texts, selectors.LabelSelector.parse)
        yield Row("api: names", name, texts, names)
    for name, texts in FIELDS.items():
        yield Row("api: fieldSelector", name, texts, field_selectors.FieldSelector.parse)
    for name, texts in PATHS.items():
        yield Row("api: jsonPath of columns", name, texts, jsonpath.compile, 1 << 16)
    for name, texts in TEMPLATES.items():
        yield Row("api: jsonPath of columns", f"template: {name}", texts, jsonpath.Template, 1 << 16)
    wide = cache(lambda size: {"a": [{"a": number} for number in range(size // 16)]})
    yield Row("api: jsonPath of columns", "a wide object", wide, jsonpath.compile("..a"))
    yield Row("api: jsonPath of columns", "a filter of many", wide, jsonpath.compile(".a[?(@.a==7)]"))
    yield Row("api: application/json-patch+json", "additions", operations({"op": "add", "path": "/a/-", "value": 1}),
              lambda ops: patch.json_patch({"a": []}, ops))  # fmt: skip
    yield Row("api: application/json-patch+json", "copies, as far as they are allowed",
              operations({"op": "copy", "from": "/a", "path": "/a/b"}),
              lambda ops: patch.json_patch({"a": {}}, ops), smallest=1 << 16)  # fmt: skip
    yield Row("api: application/json-patch+json", "tests", operations({"op": "test", "path": "/a", "value": [1]}),
              lambda ops: patch.json_patch({"a": [1]}, ops))  # fmt: skip
    yield Row("api: application/json-patch+json", "a long path", times("/a"),
              lambda path: patch.json_patch({}, [{"op": "remove", "path": path}]))  # fmt: skip
    wide_patch = of(JSON["many keys"], json.loads)
    yield Row("api: application/merge-patch+json", "many keys", wide_patch, lambda p: patch.merge_patch({"0": 1}, p))
    yield Row("api: application/strategic-merge-patch+json", "many elements", containers,
              lambda given: strategic_merge.strategic_merge(given[0], given[1], POD))  # fmt: skip
    yield Row("api: application/apply-patch+yaml", "many elements", applied, apply_it, 1 << 17)
    yield Row("api: managedFields", "many elements", applied, update_it, 1 << 17)
    yield Row(
        "api: managedFields", "many fields", lambda size: {f"f:{n}": {} for n in range(size // 10)}, fieldset.parse
    )
    yield Row("api: Accept", "entries", times("a/b;c=d,", "", "*/*"), negotiation.accepted)
    yield Row("api: Accept", "semicolons", times(";"), negotiation.accepted)
    for name, texts in {"segments": times("/a"), "dots": times("/.."), "escapes": times("/%2e"), "slashes": times("/"),
                        "a long segment": times("a", "/api/v1/")}.items():  # fmt: skip
        yield Row("api: path", name, texts, lambda path: parse_path("GET", path, {}))
    for name, texts in {"digits": times("1"), "dots": times("1."), "dashes": times("1-"), "colons": times("a:"),
                        "spaces": times(" ", "1", "x"), "at signs": times("a@"), "units": times("1h", "", "x"),
                        "commas": times("1,"), "slashes": times("a/"), "equals signs": times("=")}.items():  # fmt: skip
        yield Row("api: formats of CRDs", name, texts, formats)
    for text in (r"^(a*)*$", r"^(a|a)*b$", r"(x+x+)+y", r"^([a-z0-9]+-?)+$", r"a.*a.*a.*b"):
        yield Row("api: patterns of CRDs", text, times("a", "", "!"), Pattern(text).search, 1 << 16)
    yield Row("api: patterns of CRDs", "a long pattern", times("(a|b)?"), Pattern, 1 << 12)
    yield Row("api: quantities", "digits", times("1"), quantity.parse)
    yield Row("api: quantities", "a fraction", times("1", "0."), quantity.parse)
    yield Row("api: quantities", "an exponent", times("1", "1e"), quantity.parse)
    for name, texts in {"digits of an interval": times("1", "@every "), "units": times("1h", "@every "),
                        "values": times("*,", "", "0 * * * *"), "fields": times("* ")}.items():  # fmt: skip
        yield Row("api: schedules of CronJobs", name, texts, timetable, 1 << 17)
    yield Row("api: schedules of CronJobs", "parts of a zone", times("a/", "", "b"), zone_of)
    yield Row("api: SPDY", "streams", header_block, lambda data: list(spdy.Decoder().feed(data)), 1 << 17)
    yield Row("api: SPDY", "empty data frames", times(spdy.data_frame(1, b"")), lambda d: list(spdy.Decoder().feed(d)))
    yield Row("api: SPDY", "byte by byte", times(spdy.data_frame(1, b"a" * 900)), spdy_by_bytes, 1 << 15)
    link = rewriter("/proxy", pod="127.64.0.5:80", host="localhost")
    for name, page in PAGES.items():
        yield Row("api: HTML of pods", name, page, lambda page: rewrite_html(page, link), 1 << 20)
    yield Row("api: WebSocket", "a terminal's size", times(b"[", b'{"Width":'), terminal_size)


def spdy_by_bytes(data: bytes) -> None:
    decoder = spdy.Decoder()
    for at in range(len(data)):
        for _ in decoder.feed(data[at : at + 1]):
            pass
