"""Values of an operator, in the keys of Zero to JupyterHub, become traits of JupyterHub; others are named."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.notebooks import objects
from paddlecloud.notebooks.settings import SettingsError, parse, traits, unknown


def made(values: dict[str, Any], *, local: bool = True) -> dict[str, dict[str, Any]]:
    return traits(parse(values), python="/bin/python", local=local)


@pytest.mark.parametrize(
    ("values", "trait", "expected"),
    [
        ({}, "KubeSpawner.image", "paddlecloud/notebook"),
        ({"singleuser": {"image": {"name": "a/b", "tag": "v1"}}}, "KubeSpawner.image", "a/b:v1"),
        ({"singleuser": {"memory": {"limit": "2G", "guarantee": "1G"}}}, "KubeSpawner.mem_limit", "2G"),
        ({"singleuser": {"cpu": {"guarantee": 0.5}}}, "KubeSpawner.cpu_guarantee", 0.5),
        ({"singleuser": {"storage": {"capacity": "1Gi"}}}, "KubeSpawner.storage_capacity", "1Gi"),
        ({"singleuser": {"storage": {"dynamic": {"storageClass": "x"}}}}, "KubeSpawner.storage_class", "x"),
        ({"singleuser": {"storage": {"homeMountPath": "/home/me"}}}, "KubeSpawner.working_dir", "/home/me"),
        ({"singleuser": {"startTimeout": 600}}, "KubeSpawner.http_timeout", 300),
        ({"singleuser": {"profileList": [{"display_name": "G"}]}}, "KubeSpawner.profile_list", [{"display_name": "G"}]),
        ({"hub": {"config": {"JupyterHub": {"shutdown_on_logout": True}}}}, "JupyterHub.shutdown_on_logout", True),
        ({"hub": {"config": {"KubeSpawner": {"image": "x"}}}}, "KubeSpawner.image", "x"),
    ],
)  # fmt: skip
def test_a_value_becomes_a_trait(values: dict[str, Any], trait: str, expected: Any) -> None:
    kind, _, name = trait.partition(".")
    assert made(values)[kind][name] == expected


def test_the_culler_runs_as_a_service_with_four_rights_unless_it_is_off() -> None:
    hub = made({"cull": {"timeout": 60, "every": 5, "maxAge": 7}})["JupyterHub"]
    words = ["/bin/python", "-m", "jupyterhub_idle_culler", "--timeout=60", "--cull-every=5", "--max-age=7"]
    assert hub["services"][0]["command"] == words
    assert len(hub["load_roles"][0]["scopes"]) == 4
    assert "services" not in made({"cull": {"enabled": False}})["JupyterHub"]


def test_on_one_machine_people_have_passwords_and_on_clusters_a_provider() -> None:
    here, there = made({}), made({}, local=False)
    assert here["JupyterHub"]["authenticator_class"].endswith("LocalAuthenticator")
    assert there["JupyterHub"]["authenticator_class"].endswith("OidcAuthenticator")
    assert "uid" not in here["KubeSpawner"]
    assert (there["KubeSpawner"]["uid"], there["KubeSpawner"]["allow_privilege_escalation"]) == (1000, False)


def test_no_configuration_names_a_user_a_password_or_an_administrator() -> None:
    for local in (True, False):
        given = made({}, local=local)
        traits_of_people = {name for kind in given.values() for name in kind} & {
            "password", "admin_users", "allowed_users", "admin_access", "api_tokens"
        }  # fmt: skip
        assert not traits_of_people


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"cull": {"timeout": 0}}, "cull.timeout: Expected `int` >= 1"),
        ({"cull": {"timeout": "soon"}}, "cull.timeout: Expected `int`"),
        ({"singleuser": {"image": "x"}}, "singleuser.image: Expected `object`"),
        ({"singleuser": {"storage": {"homeMountPath": "home"}}}, "homeMountPath: it is an absolute path"),
        ({"hub": []}, "hub: Expected `object`"),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_its_key(values: dict[str, Any], why: str) -> None:
    with pytest.raises(SettingsError) as raised:
        parse(values)
    assert why in str(raised.value)


def test_keys_that_mean_nothing_here_are_named_with_their_place() -> None:
    values = {
        "proxy": {"secretToken": "x"},
        "cull": {"timeout": 1, "users": True},
        "singleuser": {"image": {"name": "x", "pullSecrets": []}, "lifecycleHooks": {}},
        "hub": {"config": {"Any": {"trait": 1}}},
    }
    assert unknown(values) == ["cull.users", "proxy", "singleuser.image.pullSecrets", "singleuser.lifecycleHooks"]


def test_hub_and_proxy_have_the_names_of_the_manual_and_no_secret_in_them() -> None:
    found = {(one["kind"], one["metadata"]["name"]) for one in objects.objects({})}
    services = {name for kind, name in found if kind == "Service"}
    assert services == {"hub", "proxy-api", "proxy-public"}
    assert {name for kind, name in found if kind == "Deployment"} == {"hub", "proxy"}
    assert "Secret" not in {kind for kind, _ in found}


def test_the_hub_may_do_little_and_nothing_in_namespaces_that_are_no_tenants() -> None:
    bound = [one for one in objects.rights() if one["kind"] == "ClusterRoleBinding"]
    assert [one["roleRef"]["name"] for one in bound] == ["paddlecloud-notebooks-hub"]
    wide = next(one for one in objects.rights() if one["metadata"]["name"] == "paddlecloud-notebooks-hub")
    assert wide["rules"] == [{"apiGroups": ["kubeflow.org"], "resources": ["profiles"], "verbs": ["list"]}]
