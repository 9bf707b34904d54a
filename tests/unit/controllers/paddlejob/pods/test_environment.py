"""The environment contract: what every pod gets, in every mode."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.api.paddlejob import decode, normalise
from paddlecloud.controllers.paddlejob.pods import env, hosts
from paddlecloud.kube.clock import rfc3339
from unit.controllers.paddlejob.world import JobCluster, paddlejob, template

COMMON = {"TRAINER_PORTS_NUM": "20", "PADDLE_PORT": "36000"}
WIDE = {"name": "wd", "ps": 2, "worker": 2, "withGloo": 1}

# Addresses are given to pods in order of creation: servers 10.0.0.1 and .2, workers 10.0.0.3 and .4
CASES = {
    "A: servers and workers with gloo, PodIP": (
        WIDE,
        {
            **COMMON,
            "PADDLE_PSERVERS_IP_PORT_LIST": "10.0.0.1:36000,10.0.0.2:36000",
            "PADDLE_TRAINER_ENDPOINTS": "10.0.0.3:36000,10.0.0.4:36000",
            "PADDLE_TRAINERS": "10.0.0.3,10.0.0.4",
            "PADDLE_TRAINERS_NUM": "2",
            "PADDLE_WITH_GLOO": "1",
            "PADDLE_GLOO_RENDEZVOUS": "3",
            "PADDLE_GLOO_HTTP_ENDPOINT": "10.0.0.1:36018",
        },
        {
            "wd-ps-1": ("10.0.0.2", "1", "PSERVER"),
            "wd-worker-1": ("10.0.0.4", "1", "TRAINER"),
        },
    ),
    "A: the same with Service names": (
        {**WIDE, "intranet": "Service"},
        {
            **COMMON,
            "PADDLE_PSERVERS_IP_PORT_LIST": "wd-ps-0.wd.default.svc:36000,wd-ps-1.wd.default.svc:36000",
            "PADDLE_TRAINER_ENDPOINTS": "wd-worker-0.wd.default.svc:36000,wd-worker-1.wd.default.svc:36000",
            "PADDLE_TRAINERS": "wd-worker-0.wd.default.svc,wd-worker-1.wd.default.svc",
            "PADDLE_TRAINERS_NUM": "2",
            "PADDLE_GLOO_HTTP_ENDPOINT": "wd-ps-0.wd.default.svc:36018",
        },
        {
            "wd-ps-1": ("wd-ps-1.wd.default.svc", "1", "PSERVER"),
            "wd-worker-0": ("wd-worker-0.wd.default.svc", "0", "TRAINER"),
        },
    ),
    "B: two workers, collective": (
        {"name": "resnet", "worker": 2},
        {
            **COMMON,
            "PADDLE_TRAINER_ENDPOINTS": "10.0.0.1:36000,10.0.0.2:36000",
            "PADDLE_TRAINERS": "10.0.0.1,10.0.0.2",
            "PADDLE_TRAINERS_NUM": "2",
            "PADDLE_MASTER": "10.0.0.1:36000",
            "PADDLE_NNODES": "2",
            "PADDLE_JOB_ID": "default-resnet",
        },
        {"resnet-worker-0": ("10.0.0.1", "0", "TRAINER"), "resnet-worker-1": ("10.0.0.2", "1", "TRAINER")},
    ),
    "C: elastic": (
        {"name": "resnet-elastic", "worker": 3, "elastic": 1},
        {
            "PADDLE_ELASTIC_JOB_ID": "default-resnet-elastic",
            "PADDLE_ELASTIC_NP": "3",
            "PADDLE_ELASTIC_TIMEOUT": "60",
        },
        {"resnet-elastic-worker-2": ("10.0.0.3", "2", "TRAINER")},
    ),
    "a single worker": (
        {"name": "one", "worker": 1},
        {**COMMON, "PADDLE_TRAINER_ENDPOINTS": "10.0.0.1:36000", "PADDLE_TRAINERS_NUM": "1"},
        {"one-worker-0": ("10.0.0.1", "0", "TRAINER")},
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_pods_get_what_paddle_reads(
    case: tuple[dict[str, object], dict[str, str], dict[str, tuple[str, str, str]]],
) -> None:
    spec, everyone, members = case
    world = JobCluster(paddlejob(**spec)).start()
    for pod, (address, index, role) in members.items():
        seen = world.env(pod)
        assert {key: seen.get(key) for key in everyone} == everyone
        assert seen["POD_IP"] == address
        assert seen["PADDLE_TRAINER_ID"] == index
        assert (seen["TRAINING_ROLE"], seen["PADDLE_TRAINING_ROLE"]) == (role, role)
        assert seen["PADDLE_CURRENT_ENDPOINT"] == f"{address}:36000"


def test_collective_jobs_are_not_given_servers_or_gloo() -> None:
    seen = JobCluster(paddlejob(worker=2, withGloo=1)).start().env("job-worker-0")
    assert not [key for key in seen if "PSERVER" in key or "GLOO" in key]


def test_host_mode_uses_ports_of_the_jobs_own_and_keeps_ranks_apart() -> None:
    world = JobCluster(paddlejob(worker=2, intranet="Host")).start()
    port = world.status["port"]
    assert port != 36000
    assert port % 20 == 0
    assert world.env("job-worker-1")["PADDLE_PORT"] == str(port)
    pod = world.pods["job-worker-0"]["spec"]
    assert pod["hostNetwork"] is True
    assert pod["containers"][0]["ports"] == [{"name": "paddle", "containerPort": port, "hostPort": port}]
    assert pod["dnsPolicy"] == "ClusterFirstWithHostNet"


def hosts_file(world: JobCluster, name: str) -> str | None:
    """What a pod reads in /etc/hosts, if it is given a file."""
    pod = world.pods[name]["spec"]
    volumes = {volume["name"]: volume for volume in pod.get("volumes") or ()}
    for mount in pod["containers"][0].get("volumeMounts") or ():
        if mount["mountPath"] == "/etc/hosts":
            source = volumes[mount["name"]]["configMap"]
            (item,) = source["items"]
            assert (source["name"], mount["subPath"]) == ("job", item["path"])
            return str((world.get("ConfigMap") or {})["data"][item["key"]])
    return None


def test_on_the_nodes_network_every_pod_knows_its_nodes_names() -> None:
    world = JobCluster(paddlejob(worker=2, intranet="Host"))
    world.settle()
    world.assign("job-worker-0", node="node-a.example.com")
    world.assign("job-worker-1", node="node-b")
    world.settle()
    for name in ("job-worker-0", "job-worker-1"):
        lines = (hosts_file(world, name) or "").splitlines()
        assert lines[0] == "127.0.0.1\tlocalhost"
        assert lines[2:] == ["10.0.0.1\tnode-a.example.com node-a", "10.0.0.2\tnode-b"]


def test_a_new_generation_waits_for_a_hosts_file_of_its_own() -> None:
    world = JobCluster(paddlejob(worker=1, intranet="Host")).start()
    world.fail("job-worker-0")
    world.settle()
    world.obey()
    world.settle()
    (item,) = world.pods["job-worker-0"]["spec"]["volumes"][0]["configMap"]["items"]
    assert item["key"] == hosts.key(1)
    assert item["key"] not in (world.get("ConfigMap") or {})["data"]


@pytest.mark.parametrize(
    ("intranet", "container"),
    [
        ("PodIP", {}),
        ("Service", {}),
        ("Host", {"env": [{"name": "GLOO_SOCKET_IFNAME", "value": "eth1"}]}),
        ("Host", {"volumeMounts": [{"name": "mine", "mountPath": "/etc/hosts"}]}),
        ("Host", {"resources": {"limits": {"nvidia.com/gpu": 1}}}),
    ],
)
def test_elsewhere_the_hosts_file_is_left_alone(intranet: str, container: dict[str, object]) -> None:
    worker = {"replicas": 1, "template": template(container=container)}
    world = JobCluster(paddlejob(worker=worker, intranet=intranet)).start()
    assert not [v for v in world.pods["job-worker-0"]["spec"].get("volumes") or () if v["name"] == hosts.VOLUME]
    assert hosts.key(0) not in (world.get("ConfigMap") or {})["data"]


def test_users_win_over_additions_but_not_over_the_contract() -> None:
    own = [
        {"name": "PADDLE_LOG_DIR", "value": "/mine"},
        {"name": "PADDLE_TRAINER_ID", "value": "7"},
        {"name": "LEARNING_RATE", "value": "0.1"},
    ]
    block = {"replicas": 1, "template": template(container={"env": own})}
    seen = JobCluster(paddlejob(worker=block)).start().env("job-worker-0")
    assert seen["PADDLE_LOG_DIR"] == "/mine"
    assert seen["LEARNING_RATE"] == "0.1"
    assert seen["PADDLE_TRAINER_ID"] == "0"


@pytest.mark.parametrize(
    ("resources", "backend"),
    [
        ({}, "gloo"),
        ({"limits": {"cpu": 2}}, "gloo"),
        ({"limits": {"nvidia.com/gpu": 1}}, None),
        ({"requests": {"baidu.com/xpu": 1}}, None),
    ],
)
def test_only_cpu_pods_are_configured_to_use_gloo(resources: dict[str, object], backend: str | None) -> None:
    block = {"replicas": 2, "template": template(container={"resources": resources})}
    assert JobCluster(paddlejob(worker=block)).start().env("job-worker-0").get("PADDLE_DISTRI_BACKEND") == backend


def test_log_folders_differ_by_pod() -> None:
    world = JobCluster(paddlejob(worker=3)).start()
    assert len({world.env(pod)["PADDLE_LOG_DIR"] for pod in world.pods}) == 3


def test_ipv6_endpoints_are_bracketed() -> None:
    assert env.endpoint("fd00::7", 36000) == "[fd00::7]:36000"


def test_a_dual_stack_pod_is_addressed_by_its_ipv4() -> None:
    world = JobCluster(paddlejob(worker=1))
    world.settle()
    world.assign()
    world.pods["job-worker-0"]["status"] |= {"podIP": "fd00::7", "podIPs": [{"ip": "fd00::7"}, {"ip": "10.9.9.9"}]}
    world.settle()
    assert (world.get("ConfigMap") or {})["data"]["PADDLE_TRAINERS"] == "10.9.9.9"


counts = st.integers(1, 5)


@given(
    servers=st.integers(0, 5),
    workers=counts,
    gloo=st.integers(0, 2),
    intranet=st.sampled_from(["PodIP", "Service", "Host", None]),
)
def test_every_pod_finds_itself_in_its_list(servers: int, workers: int, gloo: int, intranet: str | None) -> None:
    """The invariants each release of the original broke in one mode or another."""
    spec: dict[str, object] = {"worker": workers, "withGloo": gloo}
    if servers:
        spec["ps"] = servers
    if intranet:
        spec["intranet"] = intranet
    world = JobCluster(paddlejob(**spec)).start()
    lists = {"ps": "PADDLE_PSERVERS_IP_PORT_LIST", "worker": "PADDLE_TRAINER_ENDPOINTS"}
    for name, pod in world.pods.items():
        seen, role = world.env(name), pod["metadata"]["labels"]["paddlepaddle.org/role"]
        endpoints = seen[lists[role]].split(",")
        own = f"{seen['POD_IP']}:{seen['PADDLE_PORT']}"
        assert endpoints.index(own) == int(seen["PADDLE_TRAINER_ID"])
        assert len(set(endpoints)) == len(endpoints)
        if "PADDLE_GLOO_HTTP_ENDPOINT" in seen:
            assert seen["PADDLE_GLOO_HTTP_ENDPOINT"] not in endpoints


def test_workers_wait_for_servers_only_without_gloo() -> None:
    waits = {
        gloo: env.holds_workers(normalise(decode(paddlejob(ps=1, worker=1, withGloo=gloo))).settings)
        for gloo in (0, 1, 2)
    }
    assert waits == {0: True, 1: False, 2: False}
    world = JobCluster(paddlejob(ps=1, worker=1))
    world.settle()
    world.assign()
    world.settle()
    assert world.may_start("job-ps-0")
    assert not world.may_start("job-worker-0")
    assert world.pods["job-ps-0"]["spec"]["containers"][0]["readinessProbe"]["tcpSocket"] == {"port": 36000}
    world.run("job-ps-0")
    world.settle()
    assert world.may_start("job-worker-0")


def test_workers_do_not_wait_for_ever_for_servers_that_never_listen() -> None:
    world = JobCluster(paddlejob(ps=1, worker=1))
    world.settle()
    world.assign()
    world.settle()
    running = {"running": {"startedAt": rfc3339(world.now)}}
    world.pods["job-ps-0"]["status"] |= {
        "phase": "Running",
        "containerStatuses": [{"name": "paddle", "ready": False, "state": running}],
    }
    world.now += 29
    world.settle()
    assert not world.may_start("job-worker-0")
    world.now += 1
    world.settle()
    assert world.may_start("job-worker-0")
    assert len([event for event in world.events if "ServersDeaf" in event]) == 1
    world.run("job-worker-0")
    world.settle()
    assert world.phase == "Running"
    assert world.status["ps"]["ready"] == "1/1"


def test_heter_pods_get_what_paddles_role_maker_asks_for() -> None:
    world = JobCluster(paddlejob(ps=1, worker=1, heter=1, withGloo=1)).start()
    server, worker, heter = (f"10.0.0.{n}:36000" for n in (1, 2, 3))
    assert world.env("job-ps-0")["PADDLE_PSERVERS_IP_PORT_LIST"] == server
    reports = world.env("job-worker-0")
    assert (reports["STAGE_ID"], reports["STAGE_NUM"], reports["PADDLE_STAGE_TRAINERS_NUM"]) == ("1", "2", "[1,1]")
    assert reports["PADDLE_NEXT_HETER_TRAINER_IP_PORT_LIST"] == heter
    assert "PADDLE_PREVIOUS_HETER_TRAINER_IP_PORT_LIST" not in reports
    reports = world.env("job-heter-0")
    assert (reports["TRAINING_ROLE"], reports["STAGE_ID"], reports["HETER_DEVICE_TYPE"]) == (
        "HETER_TRAINER",
        "2",
        "cpu",
    )
    assert reports["PADDLE_PREVIOUS_HETER_TRAINER_IP_PORT_LIST"] == worker
    assert reports["PADDLE_ALL_HETER_TRAINER_IP_PORT_LIST"] == reports["PADDLE_HETER_ENDPOINTS"] == heter


def test_the_original_word_for_heter_is_still_to_be_had() -> None:
    world = JobCluster(paddlejob(ps=1, worker=1, heter=1, withGloo=1, compat="HETER")).start()
    assert world.env("job-heter-0")["TRAINING_ROLE"] == "HETER"


def test_pods_that_share_an_address_are_held_rather_than_trained_wrongly() -> None:
    world = JobCluster(paddlejob(worker=2, intranet="Host"))
    world.settle()
    world.assign()
    for pod in world.pods.values():
        pod["status"] |= {"podIP": "192.168.0.1", "podIPs": [{"ip": "192.168.0.1"}]}
    world.now += 100
    world.settle()
    assert not any(world.may_start(name) for name in world.pods)
    assert "share the address 192.168.0.1" in world.status["message"]
