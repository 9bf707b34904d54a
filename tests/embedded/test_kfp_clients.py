"""The API of Kubeflow Pipelines as kfp's own clients use it, both generations, on a platform that `pdc up` started."""

from __future__ import annotations

from pathlib import Path

import pytest

from embedded.kfp_world import PipelinesAddress, pipelines_address, tenant_token
from harness import Kubectl, Target, pdc, until
from unit.local.workloads.real import read

PIPELINE_1 = """
def echo(name, text):
    says = ["sh", "-c", 'echo "$0"; test "$0" != fail']
    return dsl.ContainerOp(name=name, image="busybox", command=says, arguments=[text])
@dsl.pipeline(name="two-steps", description="says something twice")
def pipe(msg: str = "hello"):
    first = echo("first", "begin")
    echo("second", msg).after(first)
compiler.Compiler().compile(pipe, "two.yaml")
"""
PIPELINE_2 = """
@dsl.container_component
def echo(text: str):
    return dsl.ContainerSpec(image="busybox", command=["sh", "-c", 'echo "$0"'], args=[text])
@dsl.pipeline(name="two-steps", description="says something twice")
def pipe(msg: str = "hello"):
    first = echo(text="begin")
    echo(text=msg).after(first)
compiler.Compiler().compile(pipe, "two.yaml")
"""
SPECS = {1: PIPELINE_1, 2: PIPELINE_2}
ARTIFACT = """
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {{name: {name}}}
spec:
  entrypoint: main
  artifactGC: {{strategy: {strategy}}}
  templates:
  - name: main
    container: {{image: busybox, command: [sh, -c, "printf hello > /tmp/made"]}}
    outputs: {{artifacts: [{{name: made, path: /tmp/made, archive: {{none: {{}}}}}}]}}
"""


@pytest.fixture
def kfp_api(server: Target, platform_data: Path, tmp_path: Path) -> PipelinesAddress:
    return pipelines_address(platform_data, tmp_path)


def test_kfp_1_runs_a_compiled_file_waits_for_it_and_finds_it_again(kfp_api: PipelinesAddress) -> None:
    found = kfp_api.run(
        1,
        PIPELINE_1
        + """
made = client.create_run_from_pipeline_package(
    "two.yaml", arguments={"msg": "hi"}, run_name="r1", experiment_name="exp one", service_account="pipeline-runner")
run = client.wait_for_run_completion(made.run_id, 60).run
experiment = client.get_experiment(experiment_name="exp one")
listed = client.list_runs(experiment_id=experiment.id, sort_by="created_at desc").runs
manifest = json.loads(client.get_run(made.run_id).pipeline_runtime.workflow_manifest)
show([run.status, run.name, run.error, [each.id == made.run_id for each in listed],
      {p.name: p.value for p in run.pipeline_spec.parameters}, manifest["spec"]["serviceAccountName"],
      sorted(node["displayName"] for node in manifest["status"]["nodes"].values() if node["type"] == "Pod")])
""",
    )
    assert found == ["Succeeded", "r1", None, [True], {"msg": "hi"}, "pipeline-runner", ["first", "second"]]


def test_kfp_2_runs_a_compiled_file_waits_for_it_and_finds_it_again(kfp_api: PipelinesAddress) -> None:
    found = kfp_api.run(
        2,
        PIPELINE_2
        + """
made = client.create_run_from_pipeline_package(
    "two.yaml", arguments={"msg": "hi"}, run_name="r2", experiment_name="exp two", enable_caching=False)
run = client.wait_for_run_completion(made.run_id, timeout=60)
experiment = client.get_experiment(experiment_name="exp two")
listed = client.list_runs(experiment_id=experiment.experiment_id, sort_by="created_at desc").runs
unknown = refusal(lambda: client.create_run_from_pipeline_package("two.yaml", arguments={"mgs": "hi"}))
client.archive_run(made.run_id)
archived = client.get_run(made.run_id).storage_state
client.delete_run(made.run_id)
gone = refusal(lambda: client.get_run(made.run_id))
show([run.state, run.display_name, run.error, run.runtime_config.parameters, run.service_account,
      sorted({task.display_name for task in run.run_details.task_details} & {"echo", "echo-2"}),
      [each.run_id == made.run_id for each in listed], unknown[:2], "did you mean" in unknown[2], archived, gone[:2]])
""",
    )
    assert found == [
        "SUCCEEDED", "r2", None, {"msg": "hi"}, "pipeline-runner", ["echo", "echo-2"], [True], [400, 3], True,
        "ARCHIVED", [404, 5],
    ]  # fmt: skip


def test_kfp_2_is_answered_from_the_cache_the_second_time(kfp_api: PipelinesAddress) -> None:
    found = kfp_api.run(
        2,
        """
        @dsl.container_component
        def make(text: str, made: dsl.OutputPath(str)):
            return dsl.ContainerSpec(
                image="busybox", args=[text, made],
                command=["sh", "-c", 'mkdir -p "$(dirname "$1")"; echo "$0" > "$1"'])
        @dsl.pipeline(name="cached")
        def pipe(msg: str = "hello"):
            make(text=msg)
        compiler.Compiler().compile(pipe, "cached.yaml")
        runs = [client.create_run_from_pipeline_package("cached.yaml", arguments={"msg": "once"}) for _ in range(1)]
        client.wait_for_run_completion(runs[0].run_id, timeout=60)
        runs.append(client.create_run_from_pipeline_package("cached.yaml", arguments={"msg": "once"}))
        show([client.wait_for_run_completion(run.run_id, timeout=60).state for run in runs])
        """,
    )
    assert found == ["SUCCEEDED", "SUCCEEDED"]
    assert len(kfp_api.pods_of("cached-")) == 1


@pytest.mark.parametrize("generation", [1, 2])
def test_a_recurring_run_starts_runs_until_it_is_disabled(kfp_api: PipelinesAddress, generation: int) -> None:
    found = kfp_api.run(
        generation,
        SPECS[generation]
        + """
import time
one = given["generation"] == 1
experiment = client.create_experiment("recurring %d" % given["generation"])
where = experiment.id if one else experiment.experiment_id
made = client.create_recurring_run(where, "every second", interval_second=1, pipeline_package_path="two.yaml")
own = made.id if one else made.recurring_run_id
for _ in range(200):
    runs = client.list_runs(experiment_id=where).runs or []
    if any((run.status if one else run.state).lower() == "succeeded" for run in runs):
        break
    time.sleep(0.2)
listed = client.list_recurring_runs(experiment_id=where)
listed = (listed.jobs if one else listed.recurring_runs)[0]
(client.jobs.disable_job if one else client.disable_recurring_run)(own)
after = client.get_recurring_run(own)
(client.jobs.delete_job if one else client.delete_recurring_run)(own)
gone = refusal(lambda: client.get_recurring_run(own))
bad = refusal(lambda: client.create_recurring_run(
    where, "x", cron_expression="*/5 * * * * *", pipeline_package_path="two.yaml"))
run = runs[0]
show([listed.name if one else listed.display_name, listed.trigger.periodic_schedule.interval_second,
      [after.enabled if one else after.status == "ENABLED"], len(client.list_runs(experiment_id=where).runs) >= 1,
      run.name if one else run.display_name, (run.recurring_run_id == own) if not one else
      [r.key.id for r in run.resource_references if r.key.type == "JOB"] == [own], gone[:2], bad])
""",
    )
    *rest, bad = found
    assert rest == ["every second", "1", [False], True, "every second", True, [404, 5]]
    assert bad[:2] == [400, 3]
    assert "only 0 can be carried out. Give an interval instead" in bad[2]


def test_kfp_1_sees_a_failure_retries_it_archives_and_deletes_it(kfp_api: PipelinesAddress) -> None:
    found = kfp_api.run(
        1,
        PIPELINE_1
        + """
made = client.create_run_from_pipeline_func(pipe, arguments={"msg": "fail"}, experiment_name="failing")
first = client.wait_for_run_completion(made.run_id, 60).run
client.runs.retry_run(made.run_id)
second = client.wait_for_run_completion(made.run_id, 60).run
manifest = json.loads(client.get_run(made.run_id).pipeline_runtime.workflow_manifest)
client.runs.archive_run(made.run_id)
archived = client.get_run(made.run_id).run.storage_state
client.runs.delete_run(made.run_id)
gone = refusal(lambda: client.get_run(made.run_id))
show([first.status, first.error, second.status, archived, gone[:2]])
""",
    )
    status, error, again, archived, gone = found
    assert (status, again, archived, gone) == ("Failed", "Failed", "STORAGESTATE_ARCHIVED", [404, 5])
    assert error == "second: main: Error (exit code 1)"


def test_kfp_1_terminates_a_run_and_its_wait_ends(kfp_api: PipelinesAddress) -> None:
    found = kfp_api.run(
        1,
        """
        @dsl.pipeline(name="long")
        def pipe():
            dsl.ContainerOp(name="sleep", image="busybox", command=["sleep", "600"])
        made = client.create_run_from_pipeline_func(pipe, arguments={})
        client.runs.terminate_run(made.run_id)
        show(client.wait_for_run_completion(made.run_id, 60).run.status)
        """,
    )
    assert found == "Failed"


def test_kfp_2_terminates_a_run_and_its_wait_ends(kfp_api: PipelinesAddress) -> None:
    found = kfp_api.run(
        2,
        """
        @dsl.container_component
        def sleep():
            return dsl.ContainerSpec(image="busybox", command=["sleep", "600"])
        @dsl.pipeline(name="long")
        def pipe():
            sleep()
        made = client.create_run_from_pipeline_func(pipe, arguments={})
        client.terminate_run(made.run_id)
        ended = client.wait_for_run_completion(made.run_id, timeout=60)
        client.terminate_run(made.run_id)  # one that has ended stays as it is
        show([ended.state, client.get_run(made.run_id).state])
        """,
    )
    assert found == ["FAILED", "FAILED"]


def test_kfp_2_sees_a_failure_and_retries_it_from_the_step_that_failed(kfp_api: PipelinesAddress) -> None:
    found = kfp_api.run(
        2,
        """
        @dsl.container_component
        def step(text: str):
            return dsl.ContainerSpec(image="busybox", command=["sh", "-c", 'test "$0" != fail'], args=[text])
        @dsl.pipeline(name="fails")
        def pipe():
            first = step(text="begin")
            step(text="fail").after(first)
        made = client.create_run_from_pipeline_func(pipe, arguments={}, enable_caching=False)
        def steps():
            details = client.get_run(made.run_id).run_details.task_details
            return {task.display_name: task for task in details if task.display_name in ("step", "step-2")}
        failed = client.wait_for_run_completion(made.run_id, timeout=60)
        before = steps()
        client._run_api.run_service_retry_run(made.run_id)
        again = client.wait_for_run_completion(made.run_id, timeout=60)
        after = steps()
        show([failed.state, failed.error.message, again.state, {name: task.state for name, task in after.items()},
              before["step"].start_time == after["step"].start_time])
        """,
    )
    assert found == [
        "FAILED", "step-2: main: Error (exit code 1)", "FAILED", {"step": "SUCCEEDED", "step-2": "FAILED"}, True,
    ]  # fmt: skip


def test_kfp_1_reads_an_artifact_of_a_step_and_one_that_was_deleted_is_not_found(
    kfp_api: PipelinesAddress, kubectl: Kubectl, namespace: str
) -> None:
    for name, strategy in (("kept", "Never"), ("dropped", "OnWorkflowCompletion")):
        kubectl("create", "-f", "-", input=ARTIFACT.format(name=name, strategy=strategy))
        until(lambda name=name: read(kubectl, f"workflow/{name}").get("status", {}).get("phase"), "Succeeded")
    found = kfp_api.run(
        1,
        """
        import base64, time
        runs = {run.name: run.id for run in client.list_runs(namespace=given["namespace"]).runs}
        kept = client.runs.read_artifact(runs["kept"], "kept", "made").data
        other = refusal(lambda: client.runs.read_artifact(runs["kept"], "kept", "other"))
        for _ in range(200):
            gone = refusal(lambda: client.runs.read_artifact(runs["dropped"], "dropped", "made"))
            if gone:
                break
            time.sleep(0.1)
        show([base64.b64decode(kept).decode(), other[:2], gone[:2]])
        """,
        namespace=namespace,
    )
    assert found == ["hello", [404, 5], [404, 5]]


@pytest.mark.parametrize("generation", [1, 2])
def test_a_pipeline_is_uploaded_with_versions_found_by_name_listed_and_deleted(
    kfp_api: PipelinesAddress, generation: int
) -> None:
    found = kfp_api.run(
        generation,
        SPECS[generation]
        + """
one = given["generation"] == 1
id_of = lambda pipeline: pipeline.id if one else pipeline.pipeline_id
name = "pipe-%d" % given["generation"]
made = client.upload_pipeline("two.yaml", name, "a description")
client.upload_pipeline_version("two.yaml", "v2", pipeline_name=name)
again = refusal(lambda: client.upload_pipeline("two.yaml", name))
versions = client.list_pipeline_versions(id_of(made), sort_by="name").__dict__
versions = versions.get("_versions") or versions.get("_pipeline_versions")
names = [each.name if one else each.display_name for each in versions]
listed = [each.name if one else each.display_name for each in client.list_pipelines(page_size=100).pipelines]
found = client.get_pipeline_id(name) == id_of(made)
described = client.get_pipeline(id_of(made)).description
if not one:
    for version in versions:
        client.delete_pipeline_version(id_of(made), version.pipeline_version_id)
client.delete_pipeline(id_of(made))
show([found, described, names, name in listed, again[:2], client.get_pipeline_id(name)])
""",
    )
    assert found == [True, "a description", [f"pipe-{generation}", "v2"], True, [409, 6], None]


def test_kfp_1_runs_an_uploaded_pipeline_by_its_id_and_by_a_versions_id(kfp_api: PipelinesAddress) -> None:
    found = kfp_api.run(
        1,
        PIPELINE_1
        + """
made = client.upload_pipeline("two.yaml", "by id")
experiment = client.create_experiment("by id")
runs = [client.run_pipeline(experiment.id, "job", pipeline_id=made.id, params={"msg": "x"}),
        client.run_pipeline(experiment.id, "job", version_id=made.default_version.id)]
ended = [client.wait_for_run_completion(run.id, 60).run for run in runs]
show([[run.status, run.pipeline_spec.pipeline_id == made.id, run.pipeline_spec.parameters[0].value] for run in ended])
""",
    )
    assert found == [["Succeeded", True, "x"], ["Succeeded", True, "hello"]]


def test_kfp_2_runs_an_uploaded_pipeline_by_its_id_and_by_a_versions_id(kfp_api: PipelinesAddress) -> None:
    found = kfp_api.run(
        2,
        PIPELINE_2
        + """
made = client.upload_pipeline("two.yaml", "by id, kfp 2")
version = client.upload_pipeline_version("two.yaml", "second", pipeline_id=made.pipeline_id)
experiment = client.create_experiment("by id, kfp 2").experiment_id
def by_pipeline(own):  # the client itself wants a version, its API does not
    reference = kfp_server_api.V2beta1PipelineVersionReference(pipeline_id=own)
    return client._run_api.run_service_create_run(run=kfp_server_api.V2beta1Run(
        experiment_id=experiment, display_name="job", pipeline_version_reference=reference,
        runtime_config=kfp_server_api.V2beta1RuntimeConfig(parameters={"msg": "x"})))
runs = [by_pipeline(made.pipeline_id),
        client.run_pipeline(experiment, "job", pipeline_id=made.pipeline_id, version_id=version.pipeline_version_id)]
ended = [client.wait_for_run_completion(run.run_id, timeout=60) for run in runs]
of = [run.pipeline_version_reference for run in ended]
show([[run.state for run in ended], [each.pipeline_id == made.pipeline_id for each in of],
      [each.pipeline_version_id == version.pipeline_version_id for each in of],
      [run.runtime_config.parameters["msg"] for run in ended],
      refusal(lambda: client.run_pipeline(experiment, "job", "two.yaml", pipeline_root="s3://elsewhere"))[:2],
      refusal(lambda: by_pipeline("nothing"))[0]])
""",
    )
    assert found == [["SUCCEEDED", "SUCCEEDED"], [True, True], [True, True], ["x", "hello"], [400, 3], 404]


@pytest.mark.parametrize("generation", [1, 2])
def test_lists_have_pages_and_experiments_are_archived(kfp_api: PipelinesAddress, generation: int) -> None:
    found = kfp_api.run(
        generation,
        """
        one = given["generation"] == 1
        id_of = lambda each: each.id if one else each.experiment_id
        made = [client.create_experiment("paged %d-%d" % (given["generation"], n)) for n in range(3)]
        seen, token, pages = [], "", 0
        while True:
            page = client.list_experiments(page_token=token, page_size=2)
            seen, token, pages = seen + [id_of(each) for each in page.experiments], page.next_page_token, pages + 1
            if not token:
                break
        client.archive_experiment(id_of(made[0]))
        state = client.get_experiment(id_of(made[0])).storage_state
        client.delete_experiment(id_of(made[1]))
        gone = refusal(lambda: client.get_experiment(id_of(made[1])))
        wrong = refusal(lambda: client.list_experiments(sort_by="nonsense"))
        show([len(seen) == len(set(seen)), pages > 1, {id_of(e) for e in made} <= set(seen), state, gone[:2], wrong])
        """,
    )
    state = "STORAGESTATE_ARCHIVED" if generation == 1 else "ARCHIVED"
    sentence = "sort_by is 'nonsense'; known are created_at, name, id, description, storage_state"
    assert found == [True, True, True, state, [404, 5], [400, 3, sentence]]


@pytest.mark.parametrize("generation", [1, 2])
def test_credentials_decide(kfp_api: PipelinesAddress, kubectl: Kubectl, namespace: str, generation: int) -> None:
    """No token, a wrong one, and that of a tenant: in its own namespace it may work, in another one it may not."""
    token = tenant_token(kubectl, namespace)
    found = kfp_api.run(
        generation,
        """
        nobody = kfp.Client(host=given["host"])
        wrong = connect(token="nonsense")
        tenant = connect(token=given["tenant"])
        healthy = nobody.get_kfp_healthz().multi_user
        own = tenant.create_experiment("mine", namespace=given["namespace"])
        own_id = own.id if given["generation"] == 1 else own.experiment_id
        kept = client.create_experiment("not theirs")
        kept_id = kept.id if given["generation"] == 1 else kept.experiment_id
        show([
            healthy, own_id.startswith(given["namespace"] + "."),
            refusal(lambda: nobody.list_experiments())[:2],
            refusal(lambda: wrong.list_experiments())[:2],
            refusal(lambda: tenant.list_experiments()),
            refusal(lambda: tenant.get_experiment(kept_id))[:2],
            refusal(lambda: tenant.delete_experiment(kept_id))[:2],
            refusal(lambda: tenant.list_runs(namespace="kube-system"))[:2],
            [e.id if given["generation"] == 1 else e.experiment_id
             for e in tenant.list_experiments(namespace=given["namespace"]).experiments] == [own_id],
        ])
        """,
        tenant=token, namespace=namespace,
    )  # fmt: skip
    healthy, prefixed, nobody, wrong, foreign, *refused, listed = found
    assert (bool(healthy), prefixed, listed) == (False, True, True)
    assert (nobody, wrong) == ([401, 16], [401, 16])
    assert foreign[:2] == [403, 7]
    assert f'User "system:serviceaccount:{namespace}:tenant" cannot list' in foreign[2]
    assert refused == [[403, 7]] * 3


@pytest.mark.parametrize("generation", [1, 2])
def test_after_a_login_a_script_without_a_token_works_as_it_is(
    kfp_api: PipelinesAddress, server: Target, generation: int
) -> None:
    pdc("pipeline", "login", env={**server.env, "HOME": str(kfp_api.home)})
    program = 'show(bool(kfp.Client(given["host"]).create_experiment("logged in").created_at))'
    assert kfp_api.run(generation, program) is True
    pdc("pipeline", "logout", env={**server.env, "HOME": str(kfp_api.home)})
    program = 'show(refusal(lambda: kfp.Client(given["host"]).list_experiments())[0])'
    assert kfp_api.run(generation, program) == 401


def test_a_tenant_runs_a_pipeline_in_its_own_namespace(
    kfp_api: PipelinesAddress, kubectl: Kubectl, namespace: str
) -> None:
    found = kfp_api.run(
        1,
        PIPELINE_1
        + """
tenant = connect(token=given["tenant"])
made = tenant.create_run_from_pipeline_package("two.yaml", arguments={}, namespace=given["namespace"])
run = tenant.wait_for_run_completion(made.run_id, 60).run
show([run.status, run.service_account])
""",
        tenant=tenant_token(kubectl, namespace), namespace=namespace,
    )  # fmt: skip
    assert found == ["Succeeded", "default"]
    assert len(read(kubectl, "workflows")["items"]) == 1


def test_workflows_that_kubectl_created_are_runs_too(
    kfp_api: PipelinesAddress, kubectl: Kubectl, namespace: str
) -> None:
    spec = "{entrypoint: main, templates: [{name: main, container: {image: busybox, command: ['true']}}]}"
    kubectl("create", "-f", "-", input=f"""
        apiVersion: argoproj.io/v1alpha1
        kind: Workflow
        metadata: {{name: plain}}
        spec: {spec}""".replace("\n        ", "\n"))  # fmt: skip
    until(lambda: read(kubectl, "workflow/plain").get("status", {}).get("phase"), "Succeeded")
    found = kfp_api.run(
        2,
        """
        run = client.list_runs(namespace=given["namespace"]).runs[0]
        again = client.get_run(run.run_id)
        tasks = [task.state for task in again.run_details.task_details]
        show([run.display_name, run.state, again.run_id == run.run_id, tasks])
        """,
        namespace=namespace,
    )
    assert found == ["plain", "SUCCEEDED", True, ["SUCCEEDED"]]
