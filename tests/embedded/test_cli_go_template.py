"""Go templates: pdc prints what real kubectl prints for the same template and objects, and refuses what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness import Kubectl
from paddlecloud.cli.main import main

OBJECTS: list[dict[str, Any]] = [
    {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "slow", "labels": {"app": "x", "tier": "web"}},
        "data": {"a": "1", "html": "<a href='x'>&\"", "empty": ""},
    },
    {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "front"},
        "spec": {"selector": {"app": "x"}, "ports": [{"name": "web", "port": 80}, {"name": "metrics", "port": 9090}]},
    },
]
TEMPLATES = [
    "{{.metadata.name}}",
    '{{range .items}}{{.metadata.name}}{{"\\n"}}{{end}}',
    "{{range $i, $e := .items}}{{$i}}={{$e.metadata.name}} {{end}}",
    "{{len .items}}",
    "{{.nope}}",
    "{{index .items 0}}",
    "{{(index .items 0).metadata.name}}",
    "{{if .items}}yes{{else}}no{{end}}",
    "{{with .kind}}{{.}}{{else}}none{{end}}",
    '{{printf "%s-%d|%5s|%-5s|%v|%q|%t" .kind 3 "a" "b" .apiVersion "x\\"y" true}}',
    '{{printf "%.1f %g %e %v" 3.14 2.5 100000.0 1e21}}',
    "{{.kind | len}}",
    "{{ .foo.bar }}",
    '{{eq .kind "List"}} {{ne 1 2}} {{and true .kind}} {{or .nope "x"}} {{not true}}',
    "{{- .kind -}}  x",
    "a  {{- /* c */ -}}  b",
    "{{/* c */}}a",
    "{{index .items 7000}}",
    "{{.kind.foo}}",
    '{{base64decode "aGk="}}',
    '{{base64decode "a"}}',
    '{{$x := .kind}}{{$x}} {{$x = "b"}}{{$x}}',
    "{{.}}",
    "{{range .items}}{{range $k,$v := .metadata.labels}}{{$k}}:{{$v}},{{end}}{{end}}",
    "{{bad}}",
    "{{.kind",
    '{{range .items}}{{if eq .metadata.name "kube-root-ca.crt"}}<{{.metadata.name}}>{{else if eq .kind "Pod"}}p{{else}}o{{end}}{{end}}',  # noqa: E501
    '{{lt 1 2}} {{ge 2 2}} {{le "a" "b"}} {{gt 1.5 1.0}}',
    "{{lt 1 2.0}}",
    '{{print "a" 1 2 "b"}} {{println 3 "x"}}',
    '{{slice "abcdef" 1 3}} {{slice "abcdef" 2}}',
    '{{html "<a href=\'x\'>\\"&"}} {{js "it\'s <b> \\"q\\" \\n="}} {{urlquery "a b&c/é"}}',
    '{{define "x"}}T{{.}}{{end}}{{template "x" .kind}}',
    '{{block "y" .kind}}B{{.}}{{end}}',
    '{{template "nope"}}',
    "{{range .nope}}a{{else}}empty{{end}}",
    "{{.items.foo}}",
    "{{true}} {{1}} {{1.5}} {{'a'}} {{0x10}} {{\"q\"}} {{`raw\\n`}} {{1e6}} {{-3}}",
    "{{nil}}",
    '{{exists . "kind"}} {{exists . "nope" "x"}}',
    '{{len .kind}} {{len "é"}} {{len .nope}}',
    '{{ index . "kind" }} {{index . "nope"}}',
    "{{break}}",
    "{{range .items}}{{.metadata.name}}{{break}}{{end}}x",
    '{{range .items}}{{if eq .metadata.name "slow"}}{{continue}}{{end}}{{.metadata.name}} {{end}}',
    '{{range .items}}{{.spec}} {{.status.phase}}{{"\\t"}}{{end}}',
    '{{range .items}}{{.metadata.name}}{{range .status.containerStatuses}} {{.name}} {{.restartCount}} {{.ready}}{{end}}{{"\\n"}}{{end}}',  # noqa: E501
    "{{range .items}}{{with .status.conditions}}{{range .}}{{.type}}={{.status}};{{end}}{{end}}{{end}}",
    '{{range .items}}{{$name := .metadata.name}}{{range .spec.containers}}{{$name}}: {{.image}}{{"\\n"}}{{end}}{{end}}',
    '{{range .items}}{{if and (eq .kind "Pod") .status}}{{.metadata.namespace}}{{end}}{{end}}',
    "{{eq .value 1}}",
    "{{eq .value 2000001000.0}}",
    "{{if .value}}v{{end}}{{if not .value}}nv{{end}}",
    "{{$y}}",
    '{{.kind | printf "%s/%s" "x"}}',
    '{{"a" | print "b" | len}}',
    "{{range 3}}{{.}}{{end}}",
    '{{range "abc"}}{{.}}{{end}}',
    "{{.metadata.labels}} {{.metadata.generation}}",
    '{{if eq .kind "x" "List"}}in{{end}}',
    "{{ range .items }}\n  {{- .metadata.name }}\n{{ end -}}",
    '{{eq .nope "x"}} {{eq .nope .nope2}}',
    "{{and}}",
    "{{len}}",
    "{{end}}",
    "{{if true}}a",
    "{{else}}",
    '{{(.kind)}} {{((.kind))}} {{(len .kind) | printf "%03d"}}',
    "{{with $z := .kind}}{{$z}}{{end}}",
    "{{if $z := .kind}}{{$z}}{{end}}{{$z}}",
    "{{range $e := .items}}{{$e.kind}}{{end}}",
    "{{index .items 0 | len}}",
    '{{index (index .items 0) "metadata" "name"}}',
    '{{not .items}} {{not 0}} {{not ""}}',
    "{{.metadata.annotations.x}}{{.metadata.name | html}}",
    '{{"}}"}} {{"a b" | urlquery}}',
    '{{range .items}}{{index .metadata "name"}}{{index .metadata.labels "nope"}}{{end}}',
    "{{0.00001}} {{123456789.0}} {{1234567.5}} {{100000000000000000000000.0}} {{0.0001}}",
    "{{range .spec.ports}}{{.name}}={{.port}} {{if eq .port 80}}http{{else}}other{{end}}{{end}}",
    "{{(index .spec.ports 1).name}} {{len .spec.ports}} {{.spec.ports}}",
    '{{lt (index .spec.ports 0).port 1000}} {{printf "%05d" (index .spec.ports 0).port}}',
    "{{.data.html | html}} {{.data.html | js}} {{.data.html | urlquery}} {{.data}} {{.data.empty}}",
    "{{range $k, $v := .data}}{{$k}}={{$v}};{{end}}",
    '{{.metadata.labels.app}} {{index .metadata.labels "tier"}} {{index .metadata.labels "none"}}',
]
WHAT = (["cm"], ["cm,svc"], ["svc", "front"], ["cm", "slow"], ["priorityclass", "system-node-critical"])


@pytest.fixture(autouse=True)
def objects(main_context: None, kubectl: Kubectl) -> None:
    for obj in OBJECTS:
        kubectl("apply", "-f", "-", input=json.dumps(obj))


@pytest.mark.parametrize("what", WHAT, ids=" ".join)
def test_a_go_template_prints_what_kubectl_prints(
    what: list[str], kubectl: Kubectl, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for template in TEMPLATES:
        theirs = kubectl("get", *what, "-o", f"go-template={template}", check=False)
        capsys.readouterr()
        code = main(["-n", namespace, "get", *what, "-o", f"go-template={template}"])
        ours = capsys.readouterr()
        assert (code == 0) == (theirs.returncode == 0), f"{template}: {ours.err}{theirs.stderr}"
        assert code in (0, 2)
        if code == 0:
            assert ours.out == theirs.stdout, template
        else:
            assert "Go template" in ours.err or "cannot be carried out on this" in ours.err
            assert "Traceback" not in ours.err


def test_a_template_may_lie_in_a_file(
    kubectl: Kubectl, namespace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "ports.tmpl"
    file.write_text('{{range .spec.ports}}{{.name}}{{"\\n"}}{{end}}')
    theirs = kubectl("get", "svc", "front", "-o", f"go-template-file={file}").stdout
    assert main(["-n", namespace, "get", "svc", "front", "-o", f"go-template-file={file}"]) == 0
    assert capsys.readouterr().out == theirs == "web\nmetrics\n"
    assert main(["-n", namespace, "get", "svc", "front", "-o", "go-template-file=nowhere"]) == 2
    assert 'cannot read "nowhere"' in capsys.readouterr().err


def test_reports_of_pdc_itself_take_templates_too(namespace: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-n", namespace, "version", "-o", "go-template={{.kind}}"]) == 0
    assert capsys.readouterr().out == "VersionReport"
