"""The table of built-in kinds and the types behind it."""

from __future__ import annotations

from paddlecloud.local.apiserver.builtin.kinds import SUBRESOURCE_KINDS, builtin_kinds, type_schema
from paddlecloud.local.apiserver.builtin.types import DEFINITIONS
from paddlecloud.local.apiserver.registry import KindInfo, Registry
from paddlecloud.local.apiserver.schema import structural as sch

KINDS: dict[str, KindInfo] = {f"{k.resource.api_version}/{k.kind}": k for k in builtin_kinds()}


def test_every_kind_and_subresource_has_a_type_that_resolves_completely() -> None:
    schemas = [info.schema for info in KINDS.values()]
    schemas += [type_schema(*kind) for kind in SUBRESOURCE_KINDS.values()]
    seen: dict[int, sch.Node] = {}  # holds every node, so that no two ever have the same id
    todo = [sch.Node(schema or {}, DEFINITIONS) for schema in schemas]
    while todo:
        node = todo.pop()
        if id(node) in seen:
            continue
        seen[id(node)] = node
        todo += [n for n in (*node.children.values(), node.items, node.additional) if n is not None]
    assert len(seen) > 1500
    assert len(KINDS) == len(Registry(KINDS.values()).group_versions()[""]["v1"]) + 30


def test_kinds_describe_themselves_in_kubectl_explain() -> None:
    for info in KINDS.values():
        node = sch.Node(info.schema or {}, info.definitions)
        assert node.schema["description"], info.kind
        gvk = {"group": info.resource.group, "version": info.resource.version, "kind": info.kind}
        assert node.schema["x-kubernetes-group-version-kind"] == [gvk]
        for part in {"spec", "status"} & set(node.children):
            assert node.schema["properties"][part]["description"], f"{info.kind}.{part}"


def test_pod_lists_carry_the_keys_that_merging_needs() -> None:
    pod = KINDS["v1/Pod"]
    spec = sch.child(sch.Node(pod.schema or {}, pod.definitions), "spec")
    assert spec is not None
    containers = sch.child(spec, "containers")
    assert containers is not None
    assert (sch.list_type(containers), sch.map_keys(containers)) == ("map", ("name",))
    assert (sch.patch_strategy(containers), sch.patch_merge_key(containers)) == ({"merge"}, "name")
    container = sch.item(containers)
    assert container is not None
    ports = sch.child(container, "ports")
    assert ports is not None
    assert sch.map_keys(ports) == ("containerPort", "protocol")
    port = sch.item(ports)
    assert port is not None
    assert sch.default(port, "protocol") == "TCP"
    tolerations = sch.child(spec, "tolerations")
    assert tolerations is not None
    assert sch.list_type(tolerations) == "atomic"
    volumes = sch.child(spec, "volumes")
    assert volumes is not None
    assert sch.patch_strategy(volumes) == {"merge", "retainKeys"}
    selector = sch.child(spec, "nodeSelector")
    assert selector is not None
    assert sch.map_type(selector) == "atomic"


def test_reviews_can_only_be_created() -> None:
    created_only = {name for name, info in KINDS.items() if info.verbs == ("create",)}
    assert created_only == {
        "v1/Binding",
        "authentication.k8s.io/v1/TokenReview",
        "authentication.k8s.io/v1/SelfSubjectReview",
        "authorization.k8s.io/v1/SubjectAccessReview",
        "authorization.k8s.io/v1/SelfSubjectAccessReview",
        "authorization.k8s.io/v1/SelfSubjectRulesReview",
        "authorization.k8s.io/v1/LocalSubjectAccessReview",
    }
    assert "deletecollection" not in KINDS["v1/Namespace"].verbs
