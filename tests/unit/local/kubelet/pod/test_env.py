"""Environments of containers: values, references and what `$(VAR)` does, in the order Kubernetes does it."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from paddlecloud.local.kubelet.pod.env import Facts, build_env, expand, expand_all, field_value
from paddlecloud.local.kubelet.pod.errors import ContainerConfigError
from paddlecloud.local.kubelet.pod.exec_limits import ALL, ONE, Room

POD: dict[str, Any] = {
    "metadata": {
        "name": "p",
        "namespace": "d",
        "uid": "u-1",
        "labels": {"app": "x", "tier": 'a"b'},
        "annotations": {"note/one": "two\nlines"},
    },
    "spec": {"nodeName": "n1", "serviceAccountName": "robot", "containers": []},
}
FACTS = Facts(pod_ip="127.64.0.9", host_ip="127.0.0.1", node_name="n1", allocatable={"cpu": "4", "memory": "8Gi"})
CONFIG = {"metadata": {"name": "c", "namespace": "d"}, "data": {"HOST": "db", "1-key": "1", "PORT": "5432"}}
SECRET = {"metadata": {"name": "s", "namespace": "d"}, "data": {"TOKEN": base64.b64encode(b"geheim").decode()}}


def env(*entries: Any, env_from: Any = (), resources: Any = None, base: Any = None) -> dict[str, str]:
    container = {"name": "main", "env": list(entries), "envFrom": list(env_from), "resources": resources or {}}
    return build_env(
        POD,
        container,
        facts=FACTS,
        configmap=lambda name: CONFIG if name == "c" else None,
        secret=lambda name: SECRET if name == "s" else None,
        base=base,
        room=Room(),
    )


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("$(A)", "1"),
        ("x$(A)y$(B)z", "x1y2z"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$(NONE)", "$(NONE)"),
        ("$A ${A}", "$A ${A}"),
        ("$(", "$("),
        ("$(A", "$(A"),
        ("$", "$"),
        ("", ""),
    ],
)
def test_references_in_texts(text: str, result: str) -> None:
    assert expand(text, {"A": "1", "B": "2"}) == result


def test_a_value_sees_what_was_defined_before_it_and_not_what_comes_after() -> None:
    found = env(
        {"name": "A", "value": "$(LATER)-$(BASE)"},
        {"name": "LATER", "value": "l"},
        {"name": "B", "value": "$(LATER)"},
        base={"BASE": "b"},
    )
    assert (found["A"], found["B"]) == ("$(LATER)-b", "l")


def test_own_values_win_over_sources_and_sources_over_the_platform() -> None:
    found = env({"name": "PORT", "value": "1"}, env_from=[{"configMapRef": {"name": "c"}}], base={"HOST": "platform"})
    assert (found["PORT"], found["HOST"]) == ("1", "db")


def test_a_source_may_carry_a_prefix() -> None:
    found = env(env_from=[{"prefix": "DB_", "configMapRef": {"name": "c"}}, {"secretRef": {"name": "s"}}])
    assert found == {"DB_HOST": "db", "DB_1-key": "1", "DB_PORT": "5432", "TOKEN": "geheim"}


@pytest.mark.parametrize("prefix", ["", "1-", "$_-", "#@!"])
def test_variables_of_a_source_may_have_names_that_a_shell_cannot_read(prefix: str) -> None:
    found = env(env_from=[{"prefix": prefix, "configMapRef": {"name": "c"}}])
    assert found == {f"{prefix}HOST": "db", f"{prefix}1-key": "1", f"{prefix}PORT": "5432"}


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ({"fieldRef": {"fieldPath": "metadata.name"}}, "p"),
        ({"fieldRef": {"fieldPath": "metadata.labels['app']"}}, "x"),
        ({"fieldRef": {"fieldPath": "metadata.annotations['note/one']"}}, "two\nlines"),
        ({"fieldRef": {"fieldPath": "spec.nodeName"}}, "n1"),
        ({"fieldRef": {"fieldPath": "spec.serviceAccountName"}}, "robot"),
        ({"fieldRef": {"fieldPath": "status.podIP"}}, "127.64.0.9"),
        ({"fieldRef": {"fieldPath": "status.hostIP"}}, "127.0.0.1"),
        ({"resourceFieldRef": {"resource": "limits.cpu"}}, "1"),
        ({"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}, "500"),
        ({"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}, "8192"),
        ({"resourceFieldRef": {"resource": "requests.memory"}}, "1048576"),
        ({"configMapKeyRef": {"name": "c", "key": "HOST"}}, "db"),
        ({"secretKeyRef": {"name": "s", "key": "TOKEN"}}, "geheim"),
    ],
)
def test_values_from_elsewhere(entry: Any, value: str) -> None:
    resources = {"limits": {"cpu": "500m"}, "requests": {"memory": "1Mi"}}
    assert env({"name": "V", "valueFrom": entry}, resources=resources)["V"] == value


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"configMapKeyRef": {"name": "none", "key": "k"}}, 'configmap "none" not found'),
        ({"configMapKeyRef": {"name": "c", "key": "k"}}, "couldn't find key k in ConfigMap d/c"),
        ({"secretKeyRef": {"name": "s", "key": "k"}}, "couldn't find key k in Secret d/s"),
        ({"fieldRef": {"fieldPath": "spec.containers"}}, "fieldPath spec.containers is not supported"),
    ],
)
def test_a_reference_to_nothing_says_what_is_missing(entry: Any, message: str) -> None:
    with pytest.raises(ContainerConfigError) as caught:
        env({"name": "V", "valueFrom": entry})
    assert str(caught.value) == message


def test_an_optional_reference_to_nothing_leaves_the_variable_out() -> None:
    entries = [
        {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "none", "key": "k", "optional": True}}},
        {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": True}}},
    ]
    assert env(*entries, env_from=[{"secretRef": {"name": "none", "optional": True}}]) == {}


def test_all_labels_as_the_downward_file_writes_them() -> None:
    assert field_value(POD, "metadata.labels", FACTS) == 'app="x"\ntier="a\\"b"'


def doubling(times: int) -> list[dict[str, str]]:
    return [
        {"name": "V0", "value": "aaaa"},
        *({"name": f"V{n}", "value": f"$(V{n - 1})$(V{n - 1})"} for n in range(1, times + 1)),
    ]


def test_variables_that_double_are_refused_before_they_are_computed() -> None:
    assert len(env(*doubling(14))["V14"]) == 4 << 14
    with pytest.raises(ContainerConfigError, match=r"environment variable V15 is longer than 128 KiB .* shorten it"):
        env(*doubling(60))  # computed, it would have more bytes than any machine


def test_what_is_named_many_times_is_refused_when_a_program_cannot_take_it_all() -> None:
    large = {"name": "A", "value": "a" * (ONE // 2)}
    many = [{"name": f"B{n}", "value": "$(A)"} for n in range(1000)]
    with pytest.raises(ContainerConfigError, match=r"longer than 2048 KiB together at environment variable B30,"):
        env(large, *many)


def test_a_source_that_is_named_many_times_counts_each_time() -> None:
    reads = 0

    def config(_: str) -> Any:
        nonlocal reads
        reads += 1
        return {"metadata": {"name": "c"}, "data": {f"K{n}": "a" * 1000 for n in range(100)}}

    container = {"name": "main", "envFrom": [{"configMapRef": {"name": "c"}}] * 5000}
    with pytest.raises(ContainerConfigError, match="2048 KiB together"):
        build_env(POD, container, facts=FACTS, configmap=config, secret=config, room=Room())
    assert reads <= ALL // 100_000 + 1


@pytest.mark.parametrize("field", ["env", "envFrom"])
def test_a_long_value_of_a_secret_is_not_decoded(field: str) -> None:
    secret = {"metadata": {"name": "s"}, "data": {"K": "!" * 1_000_000}}  # no base64: decoding would say so
    sources = {
        "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "K"}}}],
        "envFrom": [{"secretRef": {"name": "s"}}],
    }
    container = {"name": "main", field: sources[field]}
    with pytest.raises(ContainerConfigError, match="a Secret for an environment variable is longer than 128 KiB"):
        build_env(POD, container, facts=FACTS, configmap=lambda _: None, secret=lambda _: secret, room=Room())


def test_arguments_share_the_room_of_the_variables() -> None:
    room = Room()
    with pytest.raises(ContainerConfigError, match=r"args\[1\] is longer than 128 KiB"):
        expand_all(["short", "$(A)" * 1000], {"A": "a" * 1000}, what="args", room=room)
    for _ in range(20):
        room.take("environment variable A", "a" * 100_000, name="A")
    with pytest.raises(ContainerConfigError, match=r"2048 KiB together at args\[\d\]"):
        expand_all(["$(A)"] * 10, {"A": "a" * 100_000}, what="args", room=room)
