"""Go templates on objects; tests/embedded/test_cli_go_template.py holds them against kubectl."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.kube.templates.gotemplate import GoTemplate, GoTemplateError

POD: dict[str, Any] = {
    "kind": "Pod",
    "metadata": {"name": "a", "labels": {"b": "2", "a": "1"}},
    "spec": {"replicas": 3, "weight": 1234567.5, "containers": [{"name": "x"}, {"name": "y"}], "none": None},
}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{.metadata.name}}", "a"),
        ("{{.metadata.nope.deeper}} {{.spec.none}}", "<no value> <no value>"),
        ("{{range .spec.containers}}{{.name}}\n{{end}}", "x\ny\n"),
        ("{{range $i, $c := .spec.containers}}{{if $i}}, {{end}}{{$c.name}}{{end}}", "x, y"),
        ("{{range $k, $v := .metadata.labels}}{{$k}}={{$v}} {{end}}", "a=1 b=2 "),
        ("{{range .nope}}x{{else}}empty{{end}}", "empty"),
        ("{{.metadata.labels}} {{.spec.containers}}", "map[a:1 b:2] [map[name:x] map[name:y]]"),
        ("{{.spec.replicas}} {{.spec.weight}}", "3 1.2345675e+06"),
        ("{{if eq .spec.replicas 3}}three{{else if .nope}}no{{else}}other{{end}}", "three"),
        ("{{with .metadata}}{{.name}} {{$.kind}}{{end}}", "a Pod"),
        ("{{(index .spec.containers 1).name | printf \"%-3s|\"}}", "y  |"),
        ("{{$n := .kind}}{{range .spec.containers}}{{$n = .name}}{{end}}{{$n}}", "y"),
        ("a {{- /* cut */ -}} b", "ab"),
        ('{{define "t"}}<{{.}}>{{end}}{{template "t" .kind}}', "<Pod>"),
        ("{{range .spec.containers}}{{.name}}{{break}}{{end}}", "x"),
        ('{{or .nope "x"}} {{and .kind 0}} {{not .nope}}', "x 0 true"),
    ],
)  # fmt: skip
def test_a_template_writes_text(template: str, text: str) -> None:
    assert GoTemplate(template).render(POD) == text


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("{{.kind", "not closed with }}"),
        ("{{if .kind}}", "{{if}} is not closed with {{end}}"),
        ("{{nonsense .}}", 'function "nonsense" not defined'),
        ("{{$x}}", 'undefined variable "$x"'),
        ("{{end}}", "unexpected {{end}}"),
        ("{{break}}", "outside {{range}}"),
        ("{{.kind | }}", "missing value"),
        ("{{?}}", "not understood"),
    ],
)
def test_what_is_no_template_is_refused_when_it_is_read(template: str, why: str) -> None:
    with pytest.raises(GoTemplateError) as refused:
        GoTemplate(template)
    assert why in str(refused.value)


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("{{.kind.name}}", "can't evaluate field name"),
        ("{{index .spec.containers 2}}", "index out of range: 2"),
        ("{{eq .spec.replicas 3.0}}", "incompatible types for comparison"),
        ("{{len .nope}}", "len of <nil>"),
        ("{{range .kind}}{{end}}", "range can't iterate over Pod"),
        ('{{define "t"}}{{template "t"}}{{end}}{{template "t"}}', "call each other more than 100 deep"),
        ('{{template "nope"}}', 'template "nope" not defined'),
        ("{{nil}}", "nil is not a command"),
        ("{{lt 1}}", "wrong number of arguments"),
    ],
)
def test_what_does_not_fit_the_object_is_refused(template: str, why: str) -> None:
    with pytest.raises(GoTemplateError) as refused:
        GoTemplate(template).render(POD)
    assert why in str(refused.value)
