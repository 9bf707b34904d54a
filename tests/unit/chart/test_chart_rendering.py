"""The chart as Helm renders it: valid, complete, and with no more rights than the controllers use."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from rendered import CHART, ROOT, RUNNER, SERVED, files, helm, template

import paddlecloud
from paddlecloud.controllers.paddleservice.template import Site
from paddlecloud.controllers.sampledata.names import PORT, SAMPLE_SET
from paddlecloud.controllers.tenant import TenantSettings
from paddlecloud.kube.shared_key import FIELD
from paddlecloud.modelhub import names
from paddlecloud.modelhub.read_grant import KEY_NAME
from paddlecloud.platform.chart import dashboard_rules

KUBERNETES = "1.31"


def helm_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([helm(), *arguments], capture_output=True, text=True, timeout=60, check=False)


def render(*values: str, served: Sequence[str] = SERVED, namespace: str = "kubeflow") -> list[dict[str, Any]]:
    return [found for found in yaml.safe_load_all(template(values, served=served, namespace=namespace)) if found]


def of_kind(objects: list[dict[str, Any]], kind: str) -> dict[str, dict[str, Any]]:
    return {obj["metadata"]["name"]: obj for obj in objects if obj["kind"] == kind}


def test_helm_finds_nothing_to_complain_about() -> None:
    done = helm_command("lint", "--strict", str(CHART))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def made() -> Mapping[Path, str]:
    return files()


def test_what_is_checked_in_is_what_the_chart_says(made: Mapping[Path, str]) -> None:
    old = [str(path.relative_to(ROOT)) for path, text in made.items() if not path.exists() or path.read_text() != text]
    assert not old, f"`make rendered` writes {', '.join(old)} anew: look at the difference, then commit it"


def test_every_object_is_valid_kubernetes(made: Mapping[Path, str]) -> None:
    texts = [text for path, text in made.items() if path != RUNNER]  # which holds rules alone
    objects = [obj for text in texts for obj in yaml.safe_load_all(text) if obj]
    distinct = {json.dumps(obj, sort_keys=True): obj for obj in objects if obj["kind"] != "ServiceMonitor"}
    for obj in distinct.values():
        kubernetes_validate.validate(obj, KUBERNETES, strict=True)
    assert len(distinct) > 80


def test_plain_manifests_name_nothing_twice(made: Mapping[Path, str]) -> None:
    """They are applied one after the other, and the first brings what the others need."""
    plain = [obj for path, text in made.items() if "deploy" in path.parts for obj in yaml.safe_load_all(text)]
    names = [(obj["kind"], obj["metadata"]["name"], obj["metadata"].get("namespace")) for obj in plain]
    assert len(names) == len(set(names))
    assert ("Namespace", "paddle-system", None) in names
    assert not any(
        "helm" in str(obj["metadata"].get(part, "")).lower() for obj in plain for part in ("labels", "annotations")
    )


def test_the_deployments_are_called_as_ever_and_hardened() -> None:
    deployments = of_kind(render(), "Deployment")
    assert sorted(deployments) == ["pdc-paddlecloud-paddlejob", "pdc-paddlecloud-sampleset", "pdc-paddlecloud-serving"]
    for deployment in deployments.values():
        pod = deployment["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        assert deployment["spec"]["replicas"] == 2
        assert (pod["securityContext"]["runAsNonRoot"], pod["securityContext"]["runAsUser"]) == (True, 65532)
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert container["image"] == "paddlecloud/paddlecloud:0.1.0"


@pytest.mark.parametrize(
    ("values", "site"),
    [
        ((), Site()),
        (
            ("servingImage=registry.example.com/serving:1", "modelEndpoint=http://minio:9000"),
            Site("registry.example.com/serving:1", "http://minio:9000"),
        ),
    ],
)
def test_the_serving_controller_gets_its_image_and_the_model_store(values: Sequence[str], site: Site) -> None:
    pod = of_kind(render(*values), "Deployment")["pdc-paddlecloud-serving"]["spec"]["template"]["spec"]
    reported = {entry["name"]: entry["value"] for entry in pod["containers"][0]["env"] if "value" in entry}
    found = Site.from_environment(reported)
    assert (found.image, found.model_endpoint) == (site.image, site.model_endpoint)
    assert found.models.roots == site.models.roots


def test_tenants_are_of_the_whole_cluster_and_get_what_the_operator_chose() -> None:
    with pytest.raises(ValueError, match="watches its own alone"):
        render("tenants.enabled=true", "watch=namespace")
    made = render("tenants.enabled=true", "tenants.podSecurity=restricted", "tenants.networkPolicy.reachedFrom={gate}")
    pod = of_kind(made, "Deployment")["pdc-paddlecloud-tenants"]["spec"]["template"]["spec"]
    given = {entry["name"]: entry["value"] for entry in pod["containers"][0]["env"] if "value" in entry}
    assert TenantSettings.of(given) == TenantSettings("restricted", ("kubeflow", "gate"))
    job = of_kind(made, "Job")["pdc-paddlecloud-crds"]["spec"]["template"]["spec"]
    assert job["containers"][0]["command"][-1] == "--profiles"


def test_a_model_store_that_is_not_a_url_is_refused() -> None:
    with pytest.raises(ValueError, match="modelEndpoint"):
        render("modelEndpoint=minio:9000")


def test_what_is_served_decides_what_is_made() -> None:
    kinds = {obj["kind"] for obj in render(served=())}
    assert {"PodDisruptionBudget"} <= kinds
    assert not {"ServiceMonitor", "NetworkPolicy"} & kinds
    assert {"ServiceMonitor", "NetworkPolicy"} <= {obj["kind"] for obj in render()}


def test_controllers_reach_names_the_api_server_and_cache_servers_and_nothing_else() -> None:
    policies = of_kind(render("networkPolicy.apiServerPorts={8443}"), "NetworkPolicy")
    named = [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}, {"port": 8443, "protocol": "TCP"}]
    sets = {"matchExpressions": [{"key": SAMPLE_SET, "operator": "Exists"}]}
    caches = {
        "to": [{"namespaceSelector": {}, "podSelector": sets}],
        "ports": [{"port": PORT, "protocol": "TCP"}],
    }
    assert {name.removeprefix("pdc-paddlecloud-"): policy["spec"]["egress"] for name, policy in policies.items()} == {
        "paddlejob": [{"ports": named}],
        "sampleset": [{"ports": named}, caches],
        "serving": [{"ports": named}],
    }
    assert all(policy["spec"]["policyTypes"] == ["Ingress", "Egress"] for policy in policies.values())


def test_a_single_replica_may_be_disturbed() -> None:
    assert "pdc-paddlecloud-paddlejob" not in of_kind(render("paddlejob.replicas=1"), "PodDisruptionBudget")


def test_a_release_for_one_namespace_has_no_rights_elsewhere() -> None:
    objects = render("watch=namespace")
    for name, role in of_kind(objects, "ClusterRole").items():
        if name.endswith(("-crds", "-edit", "-view")):  # the latter two are given to nobody: parts of roles for users
            continue
        resources = {resource for rule in role["rules"] for resource in rule["resources"]}
        assert resources <= {"nodes", "persistentvolumes", "csidrivers"}, name
    for deployment in of_kind(objects, "Deployment").values():
        assert "--namespace=kubeflow" in deployment["spec"]["template"]["spec"]["containers"][0]["args"]


def test_two_releases_of_one_name_share_no_cluster_wide_object() -> None:
    names = [
        {
            (obj["kind"], obj["metadata"]["name"])
            for obj in render("watch=namespace", namespace=namespace)
            if obj["kind"].startswith("Cluster")
        }
        for namespace in ("team-a", "team-b")
    ]
    assert not names[0] & names[1]


def test_every_binding_leads_to_a_role_and_an_account_of_the_release() -> None:
    """The original chart bound the serving controller to another one's role."""
    objects = render()
    for binding in [*of_kind(objects, "RoleBinding").values(), *of_kind(objects, "ClusterRoleBinding").values()]:
        assert binding["roleRef"]["name"] in of_kind(objects, binding["roleRef"]["kind"])
        for subject in binding["subjects"]:
            assert subject["name"] in of_kind(objects, "ServiceAccount")
            assert subject["namespace"] == "kubeflow"


def test_no_rule_is_a_wildcard() -> None:
    for role in [obj for obj in render() if obj["kind"] in ("Role", "ClusterRole")]:
        for rule in role["rules"]:
            assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]


def keys_of_the_original() -> Iterator[str]:
    """Those that its users may have in a values file."""
    yield from ("nameOverride=x", "fullnameOverride=x", "clusterDomain=example.org", "kubeVersion=1.29")
    yield from ("tags.all-dep=true", "juicefs.enabled=true", "redis.architecture=standalone", "global.storageClass=nfs")
    yield from ("jupyterhub.hub.password=x", "pipelines.minio.auth.rootUser=minio", "hostpath.nodeHostPath=/mnt")
    for controller in ("paddlejob", "sampleset", "serving"):
        yield from (
            f"{controller}.image.repository=x/y",
            f"{controller}.image.debug=true",
            f"{controller}.args={{a,b}}",
        )
        yield from (f"{controller}.nodeSelector.pool=cpu", f"{controller}.podAntiAffinityPreset=hard")
    yield "serving.proxyImage.tag=v0.5.0"


def test_values_files_of_the_original_chart_are_accepted() -> None:
    assert sorted(of_kind(render(*keys_of_the_original()), "Deployment")) == ["x-paddlejob", "x-sampleset", "x-serving"]


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("paddlejob.replica=2", "replica"),
        ("watch=everything", "watch"),
        ("paddlejob.replicas=-1", "replicas"),
        ("paddlejob.podAntiAffinityPreset=maybe", "podAntiAffinityPreset"),
        ("image.pullPolicy=Sometimes", "pullPolicy"),
        ("dataCenter.enabled=true", "dataCenter"),
    ],
)
def test_a_value_that_makes_no_sense_is_named(value: str, named: str) -> None:
    done = helm_command("template", "pdc", str(CHART), "--set", value)
    assert done.returncode != 0
    assert named in done.stderr


def test_the_pipelines_api_is_made_on_request_and_has_neither_account_nor_rights() -> None:
    assert "ml-pipeline" not in of_kind(render(), "Service")
    without, made = render(), render("pipelinesApi.enabled=true", "pipelinesApi.runner=false")
    rights = ("ServiceAccount", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")
    assert all(of_kind(made, kind) == of_kind(without, kind) for kind in rights)
    deployment = next(obj for name, obj in of_kind(made, "Deployment").items() if name.endswith("-pipelines-api"))
    pod = deployment["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert "serviceAccountName" not in pod
    assert "--namespace=kubeflow" in pod["containers"][0]["args"]
    service = of_kind(made, "Service")["ml-pipeline"]
    assert service["spec"]["ports"][0]["port"] == 8888
    assert service["spec"]["selector"].items() <= deployment["spec"]["template"]["metadata"]["labels"].items()


def test_the_dashboard_is_made_on_request_reads_what_pages_show_and_answers_under_its_names() -> None:
    assert not any(name.endswith("-dashboard") for name in of_kind(render(), "Deployment"))
    done = helm_command("template", "pdc", str(CHART), "--set", "dashboard.enabled=true")
    assert done.returncode != 0
    assert "dashboard.names is empty" in done.stderr
    values = "dashboard.names={dash.example.com},dashboard.trustedProxies={10.1.0.0/16}"
    made = render("dashboard.enabled=true", values)
    (deployment,) = (obj for name, obj in of_kind(made, "Deployment").items() if name.endswith("-dashboard"))
    pod = deployment["spec"]["template"]["spec"]
    assert pod["containers"][0]["args"] == ["--name=dash.example.com", "--trusted-proxy=10.1.0.0/16"]
    assert deployment["spec"]["replicas"] == 1, "sessions are in its memory"
    (role,) = (obj for name, obj in of_kind(made, "ClusterRole").items() if name.endswith("-dashboard"))
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"get", "list", "watch"}
    assert role["rules"] == dashboard_rules(), "as on one machine"
    assert not {"secrets", "configmaps"} & {kind for rule in role["rules"] for kind in rule["resources"]}
    (binding,) = (obj for name, obj in of_kind(made, "ClusterRoleBinding").items() if name.endswith("-dashboard"))
    assert binding["subjects"][0]["name"] == pod["serviceAccountName"]
    plain = render("dashboard.enabled=true", "dashboard.names={dash.example.com}", "dashboard.https=false")
    (deployment,) = (obj for name, obj in of_kind(plain, "Deployment").items() if name.endswith("-dashboard"))
    assert "--http" in deployment["spec"]["template"]["spec"]["containers"][0]["args"]


def test_a_store_of_models_brings_a_hub_that_services_fetch_from_and_that_has_no_account() -> None:
    assert "modelhub" not in of_kind(render("models.enabled=true"), "Service"), "without a store it has no files"
    made = render("models.enabled=true", "models.store=s3://models/all", "models.storeSecret=keys")
    deployment = next(obj for name, obj in of_kind(made, "Deployment").items() if name.endswith("-modelhub"))
    pod = deployment["spec"]["template"]["spec"]
    (hub,) = pod["containers"]
    assert pod["automountServiceAccountToken"] is False
    assert "--store=s3://models/all" in hub["args"]
    assert hub["envFrom"] == [{"secretRef": {"name": "keys"}}]
    key = next(each["secret"] for each in pod["volumes"] if "secret" in each)
    assert key == {"secretName": KEY_NAME, "optional": True}
    assert f"--grant-key={hub['volumeMounts'][1]['mountPath']}/{FIELD}" in hub["args"]
    service = of_kind(made, "Service")[names.SERVICE]
    assert service["spec"]["ports"][0]["port"] == names.PORT == hub["ports"][0]["containerPort"]
    assert service["spec"]["selector"].items() <= deployment["spec"]["template"]["metadata"]["labels"].items()
    serving = next(obj for name, obj in of_kind(made, "Deployment").items() if name.endswith("-serving"))
    given = {each["name"]: each.get("value") for each in serving["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert given[names.VARIABLE] == "http://modelhub.kubeflow.svc.cluster.local:8890"


def test_steps_of_pipelines_have_the_account_and_rights_that_they_have_on_one_machine() -> None:
    made = render("pipelinesApi.enabled=true", "pipelinesApi.namespace=team")
    described = Path(paddlecloud.__file__).parent / "pipelines" / "runner.yaml"
    for own in yaml.safe_load_all(described.read_text(encoding="utf-8")):
        name, kind = own["metadata"]["name"], own["kind"]
        of_chart = of_kind(made, kind)[name]
        assert of_chart["metadata"]["namespace"] == "team"
        assert of_chart.get("rules") == own.get("rules")
        assert of_chart.get("roleRef") == own.get("roleRef")
        if kind == "RoleBinding":
            assert of_chart["subjects"] == [{**own["subjects"][0], "namespace": "team"}]
