"""Commands of the manual that make objects, and what they answer."""

from __future__ import annotations

import pytest

from unit.api.examples import ROOT, documents

from .conftest import Kubectl

MANUAL = ROOT / "manual"
SERVICE = "sample-service.yaml"
SERVICE_NAME = "paddleservice.elasticserving.paddlepaddle.org/paddleservice-sample"

# verb, namespace given on the command line, file, what is printed
CREATED = [
    ("apply", "", "coco.yaml", "sampleset.batch.paddlepaddle.org/coco created"),
    ("apply", "", "ppyoloe.yaml", "paddlejob.batch.paddlepaddle.org/ppyoloe created"),
    ("apply", "", "hiertext.yaml", "sampleset.batch.paddlepaddle.org/hiertext created"),
    ("apply", "", "ppocrv3.yaml", "paddlejob.batch.paddlepaddle.org/ppocrv3 created"),
    ("create", "", "imagenet-secret.yaml", "secret/imagenet created"),
    ("create", "", "imagenet.yaml", "sampleset.batch.paddlepaddle.org/imagenet created"),
    ("create", "", "imagenet-rmr.yaml", "samplejob.batch.paddlepaddle.org/imagenet-rmr created"),
    ("create", "", "imagenet-sync.yaml", "samplejob.batch.paddlepaddle.org/imagenet-sync created"),
    ("create", "", "imagenet-clear.yaml", "samplejob.batch.paddlepaddle.org/imagenet-clear created"),
    ("create", "", "imagenet-warmup.yaml", "samplejob.batch.paddlepaddle.org/imagenet-warmup created"),
    ("create", "", "ps-demo.yaml", "paddlejob.batch.paddlepaddle.org/ps-demo created"),
    ("create", "paddle-system", "wide-and-deep.yaml", "paddlejob.batch.paddlepaddle.org/wide-ande-deep created"),
    ("create", "paddle-system", "resnet.yaml", "paddlejob.batch.paddlepaddle.org/resnet created"),
    (
        "create",
        "paddle-system",
        "wide-and-deep-volcano.yaml",
        "paddlejob.batch.paddlepaddle.org/wide-ande-deep created\n"
        "podgroup.scheduling.volcano.sh/wide-ande-deep created",
    ),
    ("create", "paddle-system", "wide-and-deep-gpu.yaml", "paddlejob.batch.paddlepaddle.org/wide-ande-deep created"),
    (
        "apply",
        "paddle-system",
        "pv-pvc.yaml",
        "persistentvolume/nfs-pv created\npersistentvolumeclaim/nfs-pvc created",
    ),
    ("create", "paddle-system", "data-storage.yaml", "paddlejob.batch.paddlepaddle.org/paddlejob-demo-1 created"),
    ("apply", "", "lac.yaml", f"{SERVICE_NAME} created"),
]


@pytest.mark.parametrize(("verb", "namespace", "name", "printed"), CREATED, ids=[row[2] for row in CREATED])
def test_objects_are_created_with_the_words_of_the_manual(
    shell: Kubectl, verb: str, namespace: str, name: str, printed: str
) -> None:
    place = ("-n", namespace) if namespace else ()
    try:
        assert shell(*place, verb, "--validate=strict", "-f", str(MANUAL / name)).stdout.strip() == printed
    finally:
        shell(*place, "delete", "--ignore-not-found", "--wait=false", "-f", str(MANUAL / name))


def test_the_service_of_the_manual_brings_its_namespace(shell: Kubectl) -> None:
    shell("delete", "namespace", "paddleservice-system", "--wait=true", "--ignore-not-found")
    printed = shell("apply", "--validate=strict", "-f", str(MANUAL / SERVICE)).stdout
    assert printed.splitlines() == [
        "namespace/paddleservice-system created",
        f"{SERVICE_NAME} created",
    ]
    shell("delete", "-f", str(MANUAL / SERVICE), "--wait=true", "--ignore-not-found")
    shell("create", "namespace", "paddleservice-system")


def test_every_object_of_the_manual_is_created_here() -> None:
    files = {path.name for path in MANUAL.glob("*.yaml") if documents(path)}
    assert files == {SERVICE, *(row[2] for row in CREATED)}
