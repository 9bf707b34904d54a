"""PersistentVolumes and claims with real kubectl: found or made, kept while in use, given back as their policy says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unit.local.workloads.real import WAIT, Kubectl, apply, read


def claim(name: str, **spec: Any) -> dict[str, Any]:
    body = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": body}


def writer(name: str, claimed: str) -> dict[str, Any]:
    mounts = [{"name": "data", "mountPath": "/data"}]
    script = "echo $HOSTNAME >> /data/log; cat /data/log; sleep 1000"
    container = {"name": "main", "image": "busybox", "command": ["sh", "-c", script], "volumeMounts": mounts}
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claimed}}]
    spec = {"terminationGracePeriodSeconds": 0, "containers": [container], "volumes": volumes}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def bound(kubectl: Kubectl, name: str) -> str:
    kubectl("wait", "--for=jsonpath={.status.phase}=Bound", f"pvc/{name}", WAIT)
    return str(read(kubectl, f"pvc/{name}")["spec"]["volumeName"])


def test_a_claim_gets_a_folder_that_outlives_its_pods_and_goes_with_the_claim(kubectl: Kubectl) -> None:
    apply(kubectl, claim("data"), writer("first", "data"))
    kubectl("wait", "--for=condition=Ready", "pod/first", WAIT)
    volume = read(kubectl, f"pv/{bound(kubectl, 'data')}")
    assert read(kubectl, "pvc/data")["spec"]["storageClassName"] == "local"
    folder = Path(volume["spec"]["hostPath"]["path"])
    kubectl("delete", "pod", "first")
    assert (folder / "log").read_text() == "first\n"
    apply(kubectl, writer("second", "data"))
    kubectl("wait", "--for=condition=Ready", "pod/second", WAIT)
    kubectl("delete", "pvc", "data", "--wait=false")
    held = read(kubectl, "pvc/data")
    assert held["metadata"]["deletionTimestamp"], "in use: it goes when the pod has gone"
    assert (folder / "log").read_text() == "first\nsecond\n"
    kubectl("delete", "pod", "second")
    kubectl("wait", "--for=delete", "pvc/data", WAIT)
    kubectl("wait", "--for=delete", f"pv/{volume['metadata']['name']}", WAIT)
    assert not folder.exists()


def test_a_claim_finds_its_volume_by_class_and_selector_and_leaves_it_released(
    kubectl: Kubectl, namespace: str, tmp_path: Path
) -> None:
    def volume(name: str, size: str, colour: str) -> dict[str, Any]:
        return {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"{namespace}-{name}", "labels": {"colour": colour}},
            "spec": {
                "capacity": {"storage": size},
                "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
                "persistentVolumeReclaimPolicy": "Retain",
                "storageClassName": f"{namespace}-shelf",
                "hostPath": {"path": str(tmp_path / name)},
            },
        }

    apply(
        kubectl,
        volume("small", "500Mi", "red"),
        volume("large", "9Gi", "red"),
        volume("fitting", "2Gi", "red"),
        volume("other", "1Gi", "blue"),
    )
    shelf = {"storageClassName": f"{namespace}-shelf", "selector": {"matchLabels": {"colour": "red"}}}
    apply(kubectl, claim("data", **shelf), writer("pod", "data"))
    assert bound(kubectl, "data") == f"{namespace}-fitting"
    kubectl("wait", "--for=condition=Ready", "pod/pod", WAIT)
    assert (tmp_path / "fitting" / "log").read_text() == "pod\n"
    apply(kubectl, claim("large", volumeName=f"{namespace}-large", storageClassName=f"{namespace}-shelf"))
    assert bound(kubectl, "large") == f"{namespace}-large"
    apply(kubectl, claim("none", **shelf))
    kubectl("delete", "pod/pod", "pvc/data")
    kubectl("wait", "--for=jsonpath={.status.phase}=Released", f"pv/{namespace}-fitting", WAIT)
    assert (tmp_path / "fitting" / "log").exists()
    assert read(kubectl, "pvc/none")["status"]["phase"] == "Pending", "what was retained is not given to the next"
    kubectl("delete", "pvc", "--all")
    kubectl("delete", "pv", *(f"{namespace}-{name}" for name in ("small", "large", "fitting", "other")))
