"""JSONPath as kubectl's users write it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.kube.templates import jsonpath
from paddlecloud.kube.templates.jsonpath import JsonPathError, Template

POD: dict[str, Any] = {
    "kind": "Pod",
    "metadata": {"name": "web-0", "labels": {"app": "web", "example.com/tier": "front"}, "annotations": {}},
    "spec": {
        "containers": [
            {"name": "a", "image": "nginx:1", "ports": [{"port": 80}, {"port": 81}]},
            {"name": "b", "image": "redis", "ready": True},
            {"name": "c", "image": "busybox", "weight": 2.5},
        ],
        "replicas": 3,
        "paused": None,
    },
    "status": {
        "conditions": [
            {"type": "Ready", "status": "True", "count": 2},
            {"type": "Initialized", "status": "False", "count": 7},
        ]
    },
}
LIST = {"kind": "List", "items": [POD, {"kind": "Pod", "metadata": {"name": "web-1"}, "spec": {}}]}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".metadata.name", ["web-0"]),
        ("metadata.name", ["web-0"]),
        ("{.metadata.name}", ["web-0"]),
        ("{metadata.name}", ["web-0"]),
        ("$.metadata.name", ["web-0"]),
        ("{$.metadata.name}", ["web-0"]),
        ("@.metadata.name", ["web-0"]),
        (".metadata.missing", []),
        (".metadata.name.deeper", []),
        (".spec.paused", [None]),
        (".metadata.labels['example.com/tier']", ["front"]),
        ('.metadata.labels["example.com/tier"]', ["front"]),
        (r".metadata.labels.example\.com/tier", ["front"]),
        ("['metadata']['name']", ["web-0"]),
        (".spec.containers[0].name", ["a"]),
        (".spec.containers[-1].name", ["c"]),
        (".spec.containers[7].name", []),
        (".spec.containers[*].name", ["a", "b", "c"]),
        (".spec.containers[0:2].name", ["a", "b"]),
        (".spec.containers[1:].name", ["b", "c"]),
        (".spec.containers[:1].name", ["a"]),
        (".spec.containers[-2:].name", ["b", "c"]),
        (".spec.containers[::2].name", ["a", "c"]),
        (".spec.containers[0,2].name", ["a", "c"]),
        (".spec.containers[0]['name','image']", ["a", "nginx:1"]),
        (".metadata.labels.*", ["web", "front"]),
        (".spec.containers.*.name", ["a", "b", "c"]),
        ("..port", [80, 81]),
        ("..name", ["web-0", "a", "b", "c"]),
        (".spec..ports[*].port", [80, 81]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type=='Ready')].status", ["True"]),
        (".status.conditions[?(@.type == 'Ready')].status", ["True"]),
        ('.status.conditions[?(@.type!="Ready")].status', ["False"]),
        (".status.conditions[?(@.count>2)].type", ["Initialized"]),
        (".status.conditions[?(@.count>=2)].type", ["Ready", "Initialized"]),
        (".status.conditions[?(@.count<7)].type", ["Ready"]),
        (".status.conditions[?(@.count==2)].type", ["Ready"]),
        (".spec.containers[?(@.ready)].name", ["b"]),
        (".spec.containers[?(@.ready==true)].name", ["b"]),
        (".spec.containers[?(@.weight>2.4)].name", ["c"]),
        (".spec.containers[?(@.image<1)].name", []),
        (".spec.containers[?(@.ports[0].port==80)].name", ["a"]),
        (".spec.containers[?(@.ports[?(@.port==81)])].name", ["a"]),
        (".spec.containers[?(@.name==$.spec.containers[1].name)].image", ["redis"]),
        (".spec.replicas[0]", []),
        (".", [POD]),
        ("{}", [POD]),
    ],
)
def test_paths_find(path: str, expected: list[Any]) -> None:
    assert jsonpath.compile(path)(POD) == expected


@pytest.mark.parametrize(
    "path",
    [".a[", ".a[0", ".a[?(@.b==", ".a[?(@.b=='c']", ".a]", ".a b", ".a[::0]", ".a{", ".a[?(/x/)]", ".a['b", ".a(b)"],
)
def test_bad_paths_are_refused(path: str) -> None:
    with pytest.raises(JsonPathError):
        jsonpath.compile(path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{.kind}", "List"),
        ("kind is {.kind}.", "kind is List."),
        ("{.items[*].metadata.name}", "web-0 web-1"),
        ('{range .items[*]}{.metadata.name}{"\\n"}{end}', "web-0\nweb-1\n"),
        ('{range .items[*]}{.metadata.name}{"\\t"}{.spec.replicas}{"\\n"}{end}', "web-0\t3\nweb-1\t\n"),
        ("{range .items[*]}[{range .spec.containers[*]}{.name},{end}]{end}", "[a,b,c,][]"),
        ("{range .items[*]}{$.kind}/{.metadata.name} {end}", "List/web-0 List/web-1 "),
        ("{.items[0].metadata.labels}", '{"app":"web","example.com/tier":"front"}'),
        ("{.items[0].spec.containers[0].ports}", '[{"port":80},{"port":81}]'),
        ("{.items[0].spec.containers[1].ready}", "true"),
        ("{.items[0].spec.containers[2].weight}", "2.5"),
        ("{.items[0].spec.paused}", "null"),
        ("{.missing}", ""),
        ("{'single'}{\"double\"}", "singledouble"),
        ('{.kind}{" "}{.items[1].kind}', "List Pod"),
        ('{.kind " " .items[1].kind}', "List Pod"),
        ("plain", "plain"),
        ("", ""),
        ("{range .missing[*]}x{end}", ""),
    ],
)
def test_templates_render(text: str, expected: str) -> None:
    assert Template(text).render(LIST) == expected


@pytest.mark.parametrize("text", ["{range .items[*]}x", "{end}", "{.a", "{", "{'a}", "{.a }}{ ["])
def test_bad_templates_are_refused(text: str) -> None:
    with pytest.raises(JsonPathError):
        Template(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{.nope}", "nope is not found"),
        ("{.items[9]}", "array index out of bounds: index 9, length 2"),
        ("{.kind[0]}", "List is not array or slice"),
    ],
)
def test_a_strict_template_says_what_is_missing(text: str, message: str) -> None:
    with pytest.raises(JsonPathError, match=message):
        Template(text, strict=True).render(LIST)


def test_nesting_is_bounded() -> None:
    deep = ".a" + "[?(@.a" * 5000
    with pytest.raises(JsonPathError, match="filters within each other"):
        jsonpath.compile(deep)
    with pytest.raises(JsonPathError, match="ranges within each other"):
        Template("{range .a}" * 5000)


@given(st.text(alphabet=".[]()?@$*'\"{}:,=<>!ab01 \\", max_size=20))
def test_any_text_compiles_or_is_refused(text: str) -> None:
    for make in (jsonpath.compile, Template):
        try:
            made = make(text)
        except JsonPathError:
            continue
        run = made.render if isinstance(made, Template) else made
        try:
            run({"a": [{"b": 1}, {"b": [0, 1]}], "b": "x"})
        except JsonPathError as error:
            assert "one element at a time" in str(error)  # noqa: PT017
