"""Every parser that reads what a stranger sent, and inputs made to be slow: one row for each pair.

`covers` names the place where such input comes in: a route, a media type, a query option. `test_budgets` knows which
places there are, and fails for one without a row.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from paddlecloud.api.pattern import Pattern
from paddlecloud.cache import legacy
from paddlecloud.cache import options as orders
from paddlecloud.cache.confine import relative
from paddlecloud.controllers.paddlejob import token
from paddlecloud.controllers.paddlejob.report import Message
from paddlecloud.controllers.paddleservice import measures
from paddlecloud.kube import jsonpath, quantity, selectors
from paddlecloud.local.apiserver import apply as serverside
from paddlecloud.local.apiserver import fieldset, negotiation, patch, strategic
from paddlecloud.local.apiserver.duplicates import duplicate_fields
from paddlecloud.local.apiserver.managed_fields import record_update
from paddlecloud.local.apiserver.rbac import Rule
from paddlecloud.local.apiserver.rbac_cover import uncovered
from paddlecloud.local.apiserver.request import parse as parse_path
from paddlecloud.local.apiserver.schema_formats import _CHECKS as FORMATS
from paddlecloud.local.apiserver.streaming import spdy
from paddlecloud.local.apiserver.streaming.remote_command import terminal_size
from paddlecloud.local.knative.gateway import bodies, http1
from paddlecloud.serving import grpc_service, literals, onnx_files, paddle_shapes, remote, v2
from paddlecloud.serving.grpc_messages import message
from paddlecloud.serving.tensors import TensorSpec, from_bytes, from_json
from paddlecloud.storage import archive, uri
from unit.apiserver.schemas_for_merging import WIDGET, widget
from unit.apiserver.test_strategic import POD

FLOAT, TEXTS = TensorSpec("x", "FP32", (-1, 3)), TensorSpec("t", "BYTES")
ENOUGH = 1 << 30
"""A limit that is not what is being tested."""


class Row(NamedTuple):
    covers: str
    shape: str
    make: Callable[[int], Any]
    """Input of about so many bytes."""
    run: Callable[[Any], Any]
    largest: int = 1 << 21
    """Bytes beyond which the input is refused, or is not tried."""
    smallest: int = 1 << 11

    def __str__(self) -> str:
        return f"{self.covers}: {self.shape}"


def times(unit: Any, before: Any = None, after: Any = None) -> Callable[[int], Any]:
    """Inputs that repeat a unit."""
    empty = unit[:0]
    return lambda size: (before or empty) + unit * max(1, size // len(unit)) + (after or empty)


def of(make: Callable[[int], Any], then: Callable[[Any], Any]) -> Callable[[int], Any]:
    return lambda size: then(make(size))


class FakeModel:
    """What the readers of requests ask a model for."""

    inputs = (FLOAT, TEXTS)
    outputs = (FLOAT,)
    name = "m"

    def input(self, name: str) -> TensorSpec:
        return FLOAT if name != "t" else TEXTS


MODEL: Any = FakeModel()

# --- the gateway, both directions -------------------------------------------------------------------------------------

GET = b"GET / HTTP/1.1\r\nHost: a\r\n"
OK = b"HTTP/1.1 200 OK\r\n"
HEADS: dict[str, Callable[[int], bytes]] = {
    "spaces in a value": times(b" ", b"X: a", b"b\r\n"),
    "tabs at the end": times(b"\t", b"X: a", b"\r\n"),
    "many headers": times(b"a:\r\n"),
    "one long name": times(b"a", b"", b": b\r\n"),
    "a name without a colon": times(b"a"),
    "an unterminated value": times(b"b", b"a: "),
    "many connection headers": times(b"Connection: a\r\n"),
    "commas": times(b",", b"Connection: a", b"\r\n"),
    "forged headers": times(b"X-Forwarded-For: a\r\n"),
    "forged headers of many names": lambda size: b"".join(b"k_%d: a\r\n" % n for n in range(size // 10)),
    "one long forged name": times(b"-", b"x-forwarded", b": a\r\n"),
    "a wrong last line": times(b"a: b\r\n", b"", b"no colon\r\n"),
    "carriage returns": times(b"\r", b"a: b"),
}
CHUNKED: dict[str, Callable[[int], bytes]] = {
    "tiny chunks": times(b"1\r\nx\r\n"),
    "extensions": times(b"1;a=b\r\nx\r\n"),
    "one chunk": lambda size: b"%x\r\n" % size + b"x" * size,
    "trailers": times(b"a:b\r\n", b"0\r\n"),
}


def by_bytes(reader: Any, data: bytes, step: int = 1) -> None:
    for at in range(0, len(data), step):
        reader.feed(data[at : at + step])


def gateway() -> Iterator[Row]:
    for name, make in HEADS.items():
        yield Row("gateway: head of a request", name, of(make, GET.__add__), http1.read_request)
        yield Row("gateway: head of an answer", name, of(make, OK.__add__), partial(http1.read_response, to=b"GET"))
    yield Row("gateway: head of a request", "a long host", times(b"a.", b"GET / HTTP/1.1\r\nHost: ", b"!\r\n"),
              http1.read_request)  # fmt: skip
    yield Row("gateway: head of a request", "a long target", times(b"/a", b"GET http://a", b" HTTP/1.1\r\nHost: a\r\n"),
              http1.read_request)  # fmt: skip
    for name, make in CHUNKED.items():
        yield Row("gateway: chunked body", name, make, lambda data: bodies.Chunked(400).feed(data))
        yield Row("gateway: chunked body", f"{name}, in pieces", make, lambda d: by_bytes(bodies.Chunked(400), d, 7))


# --- the API server ---------------------------------------------------------------------------------------------------

JSON: dict[str, Callable[[int], bytes]] = {
    "lists in lists": times(b"["),
    "objects in objects": times(b'{"a":'),
    "many lists": times(b"[],", b"[", b"0]"),
    "many objects": times(b"{},", b"[", b"0]"),
    "many keys": lambda size: b"{" + b",".join(b'"%d":0' % n for n in range(size // 9)) + b"}",
    "one key many times": times(b'"a":0,', b"{", b'"b":0}'),
    "many keys twice": lambda size: b"{" + b",".join(b'"%d":0,"%d":0' % (n, n) for n in range(size // 18)) + b"}",
    "escapes": times(b"\\u0041", b'{"a":"', b'"}'),
    "an unterminated text": times(b"a", b'{"a":"'),
    "a long number": times(b"1", b'{"a":', b"}"),
    "a long fraction": times(b"1", b'{"a":0.', b"}"),
    "many numbers": times(b"1.5,", b'{"a":[', b"0]}"),
    "spaces": times(b" ", b"{", b"}"),
}
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


def varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def kube_message(kind: str, raw: bytes) -> bytes:
    return b"k8s\0" + field(1, field(1, b"v1") + field(2, kind.encode())) + field(2, raw)


def nested(number: int, size: int) -> bytes:
    found = b""
    while len(found) < size and len(found) < 20_000:
        found = field(number, found)
    return found


def envelope(kind: str, make: Callable[[int], bytes]) -> Callable[[int], bytes]:
    return lambda size: kube_message(kind, make(size))


PROTOBUF: dict[str, Callable[[int], bytes]] = {
    "entries of a map": envelope("ConfigMap", times(field(2, field(1, b"k") + field(2, b"v")))),
    "empty entries of a map": envelope("ConfigMap", times(b"\x12\x00")),
    "containers": envelope("Pod", times(field(2, field(2, field(1, b"c"))))),
    "messages in messages": envelope("Pod", partial(nested, 2)),
    "unknown fields": envelope("Pod", times(b"\xf8\x7f\x00")),
    "a number that never ends": envelope("Pod", times(b"\xff")),
    "one long text": envelope("ConfigMap", lambda size: field(1, field(1, b"a" * size))),
    "envelopes": times(field(1, field(1, b"v1")), b"k8s\0"),
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
    selectors.qualified_name_problems(text)
    selectors.subdomain_problems(text)
    selectors.label_value_problems(text)


def formats(text: str) -> None:
    for check in FORMATS.values():
        check(text)


def apiserver() -> Iterator[Row]:
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
        yield Row("api: fieldSelector", name, texts, selectors.FieldSelector.parse)
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
              lambda given: strategic.strategic_merge(given[0], given[1], POD))  # fmt: skip
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
    yield Row("api: SPDY", "streams", header_block, lambda data: list(spdy.Decoder().feed(data)), 1 << 17)
    yield Row("api: SPDY", "empty data frames", times(spdy.data_frame(1, b"")), lambda d: list(spdy.Decoder().feed(d)))
    yield Row("api: SPDY", "byte by byte", times(spdy.data_frame(1, b"a" * 900)), spdy_by_bytes, 1 << 15)
    yield Row("api: WebSocket", "a terminal's size", times(b"[", b'{"Width":'), terminal_size)


def spdy_by_bytes(data: bytes) -> None:
    decoder = spdy.Decoder()
    for at in range(len(data)):
        for _ in decoder.feed(data[at : at + 1]):
            pass


# --- the inference server ---------------------------------------------------------------------------------------------

LITERALS: dict[str, Callable[[int], str]] = {
    "a list that never ends": times("1,", "["),
    "tuples": times("(1,),", "(", ")"),
    "lists in lists": times("["),
    "texts": times("'',", "[", "'a']"),
    "escapes": times(r"\x41", "['", "']"),
    "a text without an end": times(r"\\", "['"),
    "escaped quotes without an end": times(r"\'", "['"),
    "escaped double quotes without an end": times(r"\"", '["', "'"),
    "quotes": times("'"),
    "trailing commas": times(",  "),
    "points": times("1.", "["),
    "words": times("True ", "["),
    "dicts": times("{},", "[", "()]"),
    "digits": times("1"),
}
PREDICTIONS: dict[str, Callable[[int], bytes]] = {
    "rows": times(b'{"x":[1,2,3]},', b'{"feed":[', b'{"x":[1,2,3]}]}'),
    "keys": lambda size: json.dumps({"key": ["a"] * (size // 10), "value": ["1"] * (size // 10)}).encode(),
    "outputs": times(b'"y",', b'{"feed":[{}],"fetch":[', b'"x"]}'),
}


def serving() -> Iterator[Row]:
    read = {
        "serving: POST /{name}/prediction": paddle_shapes.read_prediction,
        "serving: POST /GeneralModelService/inference": paddle_shapes.read_general,
        "serving: POST /v2/models/{name}/infer": lambda model, raw, largest: v2.read(model, raw, None, largest),
    }
    for place, function in read.items():
        for name in ("lists in lists", "many objects", "many keys", "escapes", "a long number"):
            yield Row(place, name, JSON[name], partial(lambda f, raw: f(MODEL, raw, ENOUGH), function))
    for name, texts in LITERALS.items():
        yield Row("serving: POST /{name}/prediction", f"literal: {name}", texts, literals.read)
    for name, make in PREDICTIONS.items():
        yield Row("serving: POST /{name}/prediction", name, make, read_prediction)
    yield Row("serving: POST /v2/models/{name}/infer", "texts as bytes", times(b"\0\0\0\0"),
              lambda raw: from_bytes(TEXTS, raw, shape=[len(raw) // 4], datatype="BYTES"))  # fmt: skip
    yield Row(
        "serving: POST /v2/models/{name}/infer", "numbers", times([1.5, 2, 3]), lambda data: from_json(FLOAT, data)
    )
    yield Row("serving: POST /v2/models/{name}/infer", "rows of unequal length", times([[1.5], []]),
              lambda data: from_json(FLOAT, data))  # fmt: skip
    yield Row("serving: POST /v2/models/{name}/infer", "texts for numbers", times(["1.5"]),
              lambda data: from_json(FLOAT, data))  # fmt: skip
    infer = message("ModelInferRequest")
    for name, make in {
        "inputs": times(b"\x2a\x00"),
        "parameters": times(field(4, field(1, b"a"))),
        "values": lambda size: field(5, field(5, b"\x32" + varint(size) + b"\0" * size)),
        "texts": lambda size: field(5, field(5, b"\x42\x00" * (size // 2))),
        "a number that never ends": times(b"\xff"),
    }.items():
        yield Row("serving: gRPC", name, make, partial(grpc_service.parse, infer))
    yield Row("serving: data URLs", "base64", times("QUFB", "data:;base64,"), remote.fetch)
    yield Row("serving: data URLs", "not base64", times("!", "data:;base64,"), remote.fetch)
    tensor = field(5, field(13, field(1, b"location") + field(2, b"weights")))
    yield Row("serving: ONNX models", "tensors", of(times(tensor), partial(field, 7)), onnx_check)
    yield Row("serving: ONNX models", "graphs in graphs", lambda size: b"location" + nested(7, size), onnx_check)


def read_prediction(raw: bytes) -> None:
    paddle_shapes.read_prediction(MODEL, raw, ENOUGH)


def onnx_check(data: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        onnx_files.check(Path(file.name))


# --- the cache server, reports, archives ------------------------------------------------------------------------------


def order(size: int) -> Any:
    return {"paths": [f"/data/{number}" for number in range(size // 12)]}


def tar_of(size: int, *, content: int = 0) -> Path:
    path = Path(tempfile.mkdtemp()) / "a.tar"
    with tarfile.open(path, "w") as packed:
        for number in range(max(1, size // 512)):
            info = tarfile.TarInfo(f"{number % 10}")
            info.size = content
            packed.addfile(info, io.BytesIO(b"a" * content))
    return path


def zip_of(size: int) -> Path:
    path = Path(tempfile.mkdtemp()) / "a.zip"
    with zipfile.ZipFile(path, "w") as packed:
        for number in range(max(1, size // 100)):
            packed.writestr(zipfile.ZipInfo(f"d{number}/"), b"")
    return path


def unpack(path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        archive.unpack(path, Path(folder), name=path.name)


def others() -> Iterator[Row]:
    sample = f"{measures.REQUESTS}{{"
    for name, texts in {"words": times("a"), "braces": times(sample), "labels": times('code="5",', sample, "} 1"),
                        "quotes": times('"', sample, "} 1"), "samples": times(f'{sample}code="200"}} 1\n'),
                        "digits": times("1", f'{sample}code="200"}} ')}.items():  # fmt: skip
        yield Row("paddleservice: metrics of pods", name, texts, measures.read)
    report = msgspec.json.Decoder(Message)
    for name, make in JSON.items():
        yield Row("paddlejob: POST /report", name, make, report.decode)
    yield Row("paddlejob: POST /report", "a proof", times(b"a"), lambda body: token.proves("Signed x", "t", "/p", body))
    yield Row(
        "paddlejob: POST /report", "a long proof", times("a", "Signed "), lambda t: token.proves(t, "t", "/p", b"")
    )
    yield Row("cache: PUT /v2/jobs/{id}", "paths", order, partial(orders.parse, "rmr"))
    yield Row("cache: PUT /v2/jobs/{id}", "unknown options", lambda size: {str(n): 1 for n in range(size // 8)},
              partial(orders.parse, "sync"))  # fmt: skip
    for name, texts in {"colons": times(":", "s3://"), "at signs": times("a@", "s3://"), "slashes": times("/", "s3://a"),
                        "dots": times("../", "/data/")}.items():  # fmt: skip
        yield Row("cache: POST /upload", f"a source of {name}", texts, legacy.without_keys)
        yield Row("cache: PUT /v2/jobs/{id}", f"an address of {name}", texts, uri.parse)
        yield Row("cache: PUT /v2/jobs/{id}", f"a path of {name}", texts, lambda text: relative(text, ("/data",)))
    yield Row("archives", "members of a tar", cache(tar_of), unpack, 1 << 18)
    yield Row("archives", "files of a tar", cache(partial(tar_of, content=600)), unpack, 1 << 18)
    yield Row("archives", "members of a zip", cache(zip_of), unpack, 1 << 16)


ROWS = [*gateway(), *apiserver(), *serving(), *others()]


def run(row: Row, given: Any) -> None:
    """Refusals are as good as answers, as long as they cost no more."""
    with contextlib.suppress(Exception):
        found = row.run(given)
        if asyncio.iscoroutine(found):
            asyncio.run(found)
