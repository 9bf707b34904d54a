"""A tenant tries every field that could name something foreign, on both platforms: rows of tenant_matrix.yaml.

The tenant has the role `edit` in its namespace, by a token of a ServiceAccount. Everything is tried at once; then each
try has met its verdict, and the canaries are as they were: the victim's objects and Secret, the volumes and nodes, and
a server on this machine's loopback that counts who asks it. None of the pods made here gets a node, but on the embedded
platform for the cache server of one set and for steps of workflows that are refused a Secret or an object there: what a
program inside a tenant's pod may do is not judged here.
"""

from __future__ import annotations

import base64
import dataclasses
import itertools
import json
import re
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from harness import Kubectl, Target, until
from paddlecloud.kube import config
from paddlecloud.kube.client import Client
from paddlecloud.kube.credentials import Credential, Static
from paddlecloud.kube.errors import ApiError
from paddlecloud.kube.resource import Object
from paddlecloud.kube.stdlib import StdlibTransport, drive

from .hands import read
from .tenant_matrix import Attack, Matrix

pytestmark = [pytest.mark.core, pytest.mark.timeout(300)]

MERGE = "application/merge-patch+json"
DRIVER = "csi.juicefs.com"
FILE_SYSTEM = {"name": "fs", "storage": "file", "bucket": "/none", "metaurl": "redis://127.0.0.1:1/0"}
"""Of a JuiceFS that is nowhere: nothing here mounts it."""
KEPT = ("secrets", "configmaps", "serviceaccounts", "services", "persistentvolumeclaims", "samplesets", "statefulsets")
"""Of the victim's namespace: what must stay as it is."""
ENTRY = {"nodeID": "a", "outputs": {}, "creationTimestamp": "2026-01-01T00:00:00Z"}
"""What a memoized step gave."""
SERVICES = "paddleservices.serving.paddlepaddle.org"
MATRIX = Matrix()


class Loopback:
    """A server that nobody may ask."""

    def __init__(self) -> None:
        asked: list[str] = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(f"{self.command} {self.path}")
                self.send_error(404)

            do_HEAD = do_POST = do_PUT = do_GET

            def log_message(self, format: str, *args: Any) -> None: ...

        self.asked = asked
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def loopback() -> Iterator[Loopback]:
    made = Loopback()
    yield made
    made.close()


@contextmanager
def juicefs_known(kubectl: Kubectl) -> Iterator[None]:
    """Controllers look for the driver's name before they look at what a set asks of it."""
    if kubectl("get", "csidriver", DRIVER, check=False).returncode == 0:
        yield
        return
    kubectl("apply", "-f", "-", input=json.dumps(
        {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": DRIVER}, "spec": {}}
    ))  # fmt: skip
    yield
    kubectl("delete", "csidriver", DRIVER)


class TwoNamespaces:
    """The two namespaces; `key` is in the victim's Secret and nowhere else."""

    def __init__(self, kubectl: Kubectl, server: Target, own: str, victim: str) -> None:
        self.kubectl, self.own, self.victim = kubectl, own, victim
        self.key = f"key-{secrets.token_hex(16)}"
        self._embedded = server.embedded
        self._make_victim()
        self._make_tenant()
        self.tenant = _client(server, kubectl("create", "token", "tenant", "-n", own).stdout.strip())

    def apply(self, namespace: str, *objects: Object) -> None:
        body = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.kubectl("apply", "-n", namespace, "-f", "-", input=json.dumps(body))

    def _make_victim(self) -> None:
        self.apply(
            self.victim,
            _secret("keys", {"secret-key": self.key, "access-key": "AK"}),
            _secret("fs", FILE_SYSTEM),
            {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}},
            _of("samplesets.batch.paddlepaddle.org", "data"),
            _of(SERVICES, "model"),
            _config_map("settings", {"a": "2"}),
            _config_map("cache", {"a": json.dumps(ENTRY)}, **{"workflows.argoproj.io/configmap-type": "Cache"}),
        )
        if self._embedded:
            self.apply(self.victim, _of("workflowtemplates.argoproj.io", "shared"))

    def _make_tenant(self) -> None:
        self.kubectl("create", "serviceaccount", "tenant", "-n", self.own)
        binding = ("rolebinding", "tenant", "--clusterrole=edit", f"--serviceaccount={self.own}:tenant")
        self.kubectl("create", *binding, "-n", self.own)
        own_set = _of("samplesets.batch.paddlepaddle.org", "own")
        if self._embedded:
            own_set["spec"] = {"noSync": True, "csi": {"driver": "local"}}
        self.apply(self.own, _secret("fs", FILE_SYSTEM), own_set)

    def settle(self) -> dict[str, str]:
        """Wait until the victim's objects and the tenant's own set are made; what attacks call them."""
        bound = "jsonpath={.status.phase}"
        look = self.kubectl
        until(lambda: look("get", "pvc", "data", "-n", self.victim, "-o", bound, check=False).stdout == "Bound")
        if self._embedded:
            until(lambda: look("get", "sampleset", "own", "-n", self.own, "-o", bound).stdout == "Ready")
        until(lambda: "conditions" in read(look, SERVICES, "model", "-n", self.victim).get("status", {}))
        claim = read(look, "pvc", "data", "-n", self.victim)
        return {
            "own": self.own,
            "victim": self.victim,
            "volume": claim["spec"]["volumeName"],
            "address": read(look, "services.v1.", "web", "-n", self.victim)["spec"]["clusterIP"],
            "uid": read(look, "sampleset", "data", "-n", self.victim)["metadata"]["uid"],
            "node": read(look, "nodes")["items"][0]["metadata"]["name"],
        }

    def canaries(self) -> dict[str, Any]:
        """All that no attack may change, without what changes by itself."""
        found: dict[str, Any] = {}
        for item in read(self.kubectl, ",".join(KEPT), "-n", self.victim)["items"]:
            found[f"{item['kind']} {item['metadata']['name']}"] = _lasting(item)
        for item in read(self.kubectl, "persistentvolumes")["items"]:
            if (item["spec"].get("claimRef") or {}).get("namespace") == self.victim:
                found[f"PersistentVolume {item['metadata']['name']}"] = _lasting(item)
        for item in read(self.kubectl, "nodes")["items"]:
            labels = item["metadata"].get("labels") or {}
            mine = {name: value for name, value in labels.items() if not value.startswith("own-runtime")}
            found[f"Node {item['metadata']['name']}"] = mine
        return found

    def everything_of_the_tenant(self) -> str:
        kinds = self.kubectl("api-resources", "--namespaced", "--verbs=list", "-o", "name").stdout.split()
        served = [kind for kind in kinds if "metrics.k8s.io" not in kind]
        return self.kubectl("get", ",".join(served), "-n", self.own, "-o", "json").stdout

    def try_out(self, attack: Attack) -> str:
        """The API's refusal; empty where it accepts the object."""
        namespace = None if attack.namespace == "-" else attack.namespace
        path = attack.resource.path(namespace)
        try:
            if attack.verb == "patch":
                whole = path if "/" in attack.resource.plural else f"{path}/{attack.body['metadata']['name']}"
                drive(self.tenant.raw("PATCH", whole, body=attack.body, content_type=MERGE))
            else:
                drive(self.tenant.raw("POST", path, body=attack.body))
        except ApiError as error:
            return str(error)
        return ""

    def reported(self, kind: str) -> dict[str, str]:
        """What the statuses of a kind's objects say, by name."""
        items = read(self.kubectl, kind, "-n", self.own)["items"]
        return {item["metadata"]["name"]: json.dumps(item.get("status") or {}) for item in items}

    def events(self) -> dict[str, str]:
        """What was reported of the tenant's objects, by name."""
        said: dict[str, str] = {}
        for event in read(self.kubectl, "events.v1.", "-n", self.own)["items"]:
            name = event["involvedObject"].get("name", "")
            said[name] = f"{said.get(name, '')} {event.get('message')}"
        return said


def _client(server: Target, token: str) -> Client:
    found = config.load(str(server.kubeconfig))
    source = Static(Credential(authorization=f"Bearer {token}"))
    return Client(StdlibTransport(dataclasses.replace(found, source=source), user_agent="tenant"))


def _secret(name: str, data: dict[str, str]) -> Object:
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": encoded}


def _config_map(name: str, data: dict[str, str], **labels: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}, "data": data}


def _of(kind: str, name: str) -> Object:
    """An object as the matrix bases its attacks on."""
    plural, _, group = kind.partition(".")
    versions = {
        "samplesets": ("v1alpha1", "SampleSet"),
        "paddleservices": ("v1", "PaddleService"),
        "workflowtemplates": ("v1alpha1", "WorkflowTemplate"),
    }
    version, name_of_kind = versions[plural]
    return {
        "apiVersion": f"{group}/{version}",
        "kind": name_of_kind,
        "metadata": {"name": name},
        "spec": MATRIX.bases[kind],
    }


def _lasting(item: Object) -> Object:
    meta = item["metadata"]
    kept = {name: meta.get(name) for name in ("uid", "labels", "annotations", "ownerReferences", "finalizers")}
    return {**kept, **{name: item[name] for name in ("spec", "data", "secrets") if name in item}}


@pytest.fixture
def serving(server: Target, operators: None) -> Iterator[None]:
    """PaddleServices are looked after, too."""
    if server.embedded:
        yield
        return
    from cluster import operators as release

    with release.serving(server):
        yield


@pytest.fixture
def world(kubectl: Kubectl, server: Target, namespace: str, serving: None) -> Iterator[TwoNamespaces]:
    victim = f"{namespace}-victim"
    kubectl("create", "namespace", victim)
    with juicefs_known(kubectl):
        yield TwoNamespaces(kubectl, server, namespace, victim)
        for space in (namespace, victim):
            kubectl("delete", "samplejobs,samplesets", "--all", "-n", space, "--timeout=90s", timeout=100)
    kubectl("delete", "namespace", victim, "--wait=false")


def test_no_field_that_a_tenant_may_write_reaches_anything_of_another(
    world: TwoNamespaces, loopback: Loopback, server: Target
) -> None:
    names = {**world.settle(), "loopback": loopback.address}
    before = world.canaries()
    attacks = MATRIX.attacks(embedded=server.embedded, names=names)
    wrong: list[str] = []
    accepted: list[Attack] = []
    for attack in attacks:
        refusal = world.try_out(attack)
        if attack.verdict == "denied" and not re.search(attack.text, refusal):
            wrong.append(f"{attack.about}: not denied with {attack.text!r} but: {refusal or 'accepted'}")
        elif attack.verdict != "denied" and refusal:
            wrong.append(f"{attack.about}: denied, which no row says: {refusal}")
        elif attack.verdict != "denied":
            accepted.append(attack)
    wrong += _without_verdict(world, accepted)
    assert not wrong, f"{len(wrong)} of {len(attacks)}:\n" + "\n".join(wrong)

    assert world.canaries() == before
    everything = world.everything_of_the_tenant()
    assert world.key not in everything
    assert base64.b64encode(world.key.encode()).decode() not in everything
    assert loopback.asked == []
    claims = read(world.kubectl, "persistentvolumeclaims", "-n", world.own)["items"]
    thief = next(claim for claim in claims if claim["metadata"]["name"] == "data")
    assert thief.get("status", {}).get("phase") != "Bound"


def _without_verdict(world: TwoNamespaces, accepted: list[Attack]) -> list[str]:
    """Attacks that controllers did not refuse, or look at, in time."""
    left = {attack.body["metadata"]["name"]: attack for attack in accepted if _is_judged(attack)}
    said: dict[str, str] = {}

    def all_met() -> bool:
        events = world.events()
        for kind, group in itertools.groupby(sorted(left.values(), key=_kind), key=_kind):
            statuses = world.reported(kind)
            for name in [attack.body["metadata"]["name"] for attack in group]:
                said[name] = f"{statuses.get(name, '')} {events.get(name, '')}"
                if _is_met(left[name], said[name]):
                    del left[name]
        return not left

    try:
        until(all_met, timeout=90, every=1)
    except AssertionError:
        return [f"{left[name].about}: no {left[name].text!r} but {said[name][:600]}" for name in left]
    return []


def _kind(attack: Attack) -> str:
    return f"{attack.resource.plural}.{attack.resource.group}"


def _is_judged(attack: Attack) -> bool:
    """Whether a controller of ours, or of the embedded Knative, reports what it makes of the object. Templates of
    workflows are only read when a workflow names them."""
    unjudged = ("podgroups", "queues", "workflowtemplates")
    return bool(attack.resource.group) and attack.resource.plural not in unjudged


def _is_met(attack: Attack, said: str) -> bool:
    if attack.verdict == "refused":
        return bool(re.search(attack.text, said.replace('\\"', '"')))
    return said.split() not in ([], ["{}"])
