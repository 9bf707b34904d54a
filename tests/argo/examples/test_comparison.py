"""Cases are found in Argo's files, their verdicts are free of what differs from run to run, and compared."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml

from . import __main__ as program
from . import catalogue, page, record
from .comparison import Result, compare
from .verdict import LIMIT, REFUSED, UNSERVED, Node, Verdict, judge, refusal

WORKFLOW = {"apiVersion": catalogue.GROUP, "kind": "Workflow", "metadata": {"generateName": "a-"}, "spec": {}}


def write(module: Path, path: str, *documents: object) -> None:
    file = module / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(yaml.safe_dump_all(documents))


def test_a_workflow_gets_the_nearest_template_that_it_names_and_what_that_names(tmp_path: Path) -> None:
    def template(name: str, **spec: object) -> dict[str, object]:
        return {"apiVersion": catalogue.GROUP, "kind": "WorkflowTemplate", "metadata": {"name": name}, "spec": spec}

    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}
    reading = {"valueFrom": {"configMapKeyRef": {"name": "settings", "key": "a"}}}
    write(tmp_path, "examples/near/template.yaml", template("shared", templates=[{"inputs": reading}]), config)
    write(tmp_path, "examples/far/template.yaml", template("shared"))
    write(tmp_path, "examples/near/a.yaml", {**WORKFLOW, "spec": {"workflowTemplateRef": {"name": "shared"}}})
    write(tmp_path, "examples/cannot-be-read.yaml")
    (tmp_path / "examples/cannot-be-read.yaml").write_text("a: [")
    (case,) = catalogue.cases(tmp_path)
    assert case.name == "examples/near/a.yaml"
    assert [need["kind"] for need in case.needs] == ["WorkflowTemplate", "ConfigMap"]
    assert case.needs[0]["spec"] == {"templates": [{"inputs": reading}]}


@pytest.mark.parametrize(
    ("kind", "spec", "made"),
    [
        ("CronWorkflow", {"workflowSpec": {"entrypoint": "a"}}, {"entrypoint": "a"}),
        ("WorkflowTemplate", {"entrypoint": "a"}, {"workflowTemplateRef": {"name": "n"}}),
        ("ClusterWorkflowTemplate", {"entrypoint": "a"}, {"workflowTemplateRef": {"name": "n", "clusterScope": True}}),
        ("WorkflowTemplate", {"templates": []}, None),
        ("WorkflowTemplate", {"entrypoint": "a", "arguments": {"parameters": [{"name": "p"}]}}, None),
    ],
)
def test_what_can_be_submitted_from_a_template_is_a_case_too(
    tmp_path: Path, kind: str, spec: dict[str, object], made: dict[str, object] | None
) -> None:
    write(
        tmp_path,
        "examples/a.yaml",
        {"apiVersion": catalogue.GROUP, "kind": kind, "metadata": {"name": "n"}, "spec": spec},
    )
    assert [case.workflow["spec"] for case in catalogue.cases(tmp_path)] == ([made] if made else [])


def test_the_interpreter_of_a_checkout_is_no_part_of_a_verdict() -> None:
    failed = {"phase": "Failed", "message": f'exec: "{sys.executable}": Permission denied'}
    assert judge({"metadata": {"name": "flow"}, "status": failed}, 1.0).message == 'exec: "PYTHON": Permission denied'


def test_names_times_and_identities_are_no_part_of_a_verdict() -> None:
    def run(name: str, seconds: int) -> Verdict:
        node = {"displayName": name, "type": "Pod", "phase": "Succeeded"}
        node["outputs"] = {"result": f"{name}-123456789 at 2026-01-01T00:00:0{seconds}Z", "exitCode": "0"}  # type: ignore[assignment]
        status = {"phase": "Succeeded", "nodes": {f"{name}-1": node}}
        return judge({"metadata": {"name": name, "namespace": "ns"}, "status": status}, 1.0)

    one, other = run("steps-abcde", 1), run("steps-fghij", 2)
    assert one == other
    assert one.nodes == (Node("NAME", "Pod", "Succeeded", {"result": "NAME-HASH at TIME", "exitCode": "0"}),)


@pytest.mark.parametrize(
    ("message", "phase", "shown"),
    [
        ('Workflow "a-x7" is invalid: spec.http: Forbidden: this platform does not serve it', UNSERVED, "spec.http"),
        ('Workflow "a-x7" is invalid: spec.entrypoint: Required value', REFUSED, "spec.entrypoint"),
        ("invalid spec: template name '' undefined", REFUSED, "invalid spec"),
    ],
)
def test_what_is_not_served_is_distinguished_from_what_is_invalid(message: str, phase: str, shown: str) -> None:
    found = refusal(message, 1.0)
    assert found.phase == phase
    assert found.message.startswith(shown)


def verdict(
    phase: str = "Succeeded", nodes: tuple[Node, ...] = (), message: str = "", seconds: float = 0.0, outside: str = ""
) -> Verdict:
    return Verdict(phase, message, nodes, {}, seconds, outside)


@pytest.mark.parametrize(
    ("real", "ours", "result", "difference"),
    [
        (verdict(), verdict(), Result.SAME, ""),
        (verdict(), verdict("Failed", message="why"), Result.DIFFERS, "Succeeded ≠ Failed: why"),
        (verdict("Running"), verdict(), Result.UNJUDGED, "Running ≠ Succeeded"),
        (verdict(REFUSED), verdict(), Result.DIFFERS, "refused ≠ Succeeded"),
        (
            verdict(nodes=(Node("a", "Pod", "Omitted", {}),)), verdict(nodes=(Node("a", "Pod", "Skipped", {}),)),
            Result.DIFFERS, "nodes: a (Pod) Omitted ≠ a (Pod) Skipped",
        ),
        (
            verdict(nodes=(Node("a", "Pod", "Succeeded", {"p": "1"}),)),
            verdict(nodes=(Node("a", "Pod", "Succeeded", {"p": "2"}),)),
            Result.DIFFERS, "outputs of a: {'p': '1'} ≠ {'p': '2'}",
        ),
    ],
)  # fmt: skip
def test_phase_nodes_and_outputs_are_compared(real: Verdict, ours: Verdict, result: Result, difference: str) -> None:
    assert compare(real, ours) == (result, difference)


def outputs(**values: str) -> Verdict:
    return verdict(nodes=(Node("a", "Pod", "Succeeded", values),))


@pytest.mark.parametrize(
    ("real", "ours", "case", "result"),
    [
        ("sleep-79m6t", "sleep-6vqdf", "", Result.SAME),
        ("sleep-79m6t", "sleep-first", "", Result.DIFFERS),
        ("39", "43", "examples/scripts-bash.yaml", Result.SAME),
        ("39", "43", "examples/scripts-python.yaml", Result.DIFFERS),
        ("# Kubernetes-managed hosts file.\n10.1.1.1\ta", "# Kubernetes-managed hosts file.\n", "", Result.SAME),
        ("10.1.1.1\ta", "10.1.1.2\ta", "", Result.DIFFERS),
    ],
)
def test_what_two_runs_of_real_argo_would_not_share_is_no_difference(
    real: str, ours: str, case: str, result: Result
) -> None:
    assert compare(outputs(result=real), outputs(result=ours), case).result is result


def test_the_page_counts_what_real_argo_completes() -> None:
    real = {"examples/a.yaml": verdict(), "examples/b.yaml": verdict(), "examples/c.yaml": verdict("Running")}
    ours = {"examples/a.yaml": verdict(), "examples/b.yaml": verdict("Failed"), "examples/c.yaml": verdict("Pending")}
    text = page.render(real, ours, {"examples/b.yaml": "no such field"})
    assert "**1 of them (50.0 %) end the same way here.**" in text
    assert "| b.yaml | Succeeded | Failed | differs: no such field |" in text
    assert "| c.yaml | Running | Pending | –: Running ≠ Pending |" in text


def test_the_page_says_why_real_argo_judges_nothing() -> None:
    real = {
        "examples/a.yaml": verdict("Running", seconds=LIMIT),
        "examples/b.yaml": verdict("Running", seconds=LIMIT),
        "examples/c.yaml": verdict("Running", seconds=LIMIT - 1),
        "examples/d.yaml": verdict("Failed", outside="no such host"),
        "examples/e.yaml": verdict("Running", seconds=LIMIT, outside="ImagePullBackOff"),
        "examples/f.yaml": verdict("Failed", seconds=LIMIT),
    }
    ours = {**real, "examples/a.yaml": verdict()}
    text = page.render(real, ours, {})
    assert "Of the other 5, 2 need a network, an image or a service that neither platform has;" in text
    assert "2 were not over on real Argo after 150 s, the limit of a run (1 of them end here);" in text
    assert "1 wait, with no pod that runs, for a person or for what their pods lack." in text
    assert "| a.yaml | Running | Succeeded | –: not over on real Argo after 150 s: Running ≠ Succeeded |" in text


def test_at_least_95_percent_of_what_real_argo_judges_ends_the_same_way() -> None:
    same, judged = page.share(page.rows(record.load(record.CLUSTER), record.load(record.EMBEDDED)))
    assert judged > 300
    assert same >= 0.95 * judged


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    verdicts = {"a": verdict(nodes=(Node("a", "Pod", "Failed", {"p": "1"}),)), "b": verdict(REFUSED, message="x")}
    record.save(tmp_path / "r.jsonl", verdicts)
    assert record.load(tmp_path / "r.jsonl") == verdicts


def test_the_page_is_what_the_records_say() -> None:
    assert program.PAGE.read_text(encoding="utf-8") == program.text(), "run `make test-argo`"


def test_no_reason_is_left_over() -> None:
    rows = page.rows(record.load(record.CLUSTER), record.load(record.EMBEDDED))
    differing = {row.name for row in rows if row.compared.result is Result.DIFFERS}
    assert sorted(set(program.reasons()) - differing) == []
