"""CreatePVC and DeletePVC of kfp-kubernetes as Argo's resource templates. Pure.

Their executors have images that do not exist; the driver of Kubeflow Pipelines recognises those names, and so does
this.
"""

from __future__ import annotations

from typing import Any

from paddlecloud.pipelines.ir.errors import InvalidPipeline
from paddlecloud.pipelines.ir.pipeline_spec import Container
from paddlecloud.pipelines.ir.sources import quoted, tag, variable

CREATE = "argostub/createpvc"
DELETE = "argostub/deletepvc"


def is_claim(container: Container) -> bool:
    return container.image in (CREATE, DELETE)


def template(name: str, container: Container, present: frozenset[str], path: str) -> dict[str, Any]:
    """`present` are the inputs the task is given: they decide which fields the claim has."""
    inputs = {"parameters": [{"name": each} for each in sorted(present)]} if present else {}
    if container.image == DELETE:
        manifest = tag(
            " + ".join(
                (
                    quoted('{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":'),
                    _json("pvc_name"),
                    quoted("}}"),
                )
            )
        )
        # Not waited for, as in Kubeflow Pipelines: Kubernetes keeps a claim while pods use it, pods that ended as well.
        resource = {"action": "delete", "manifest": manifest, "flags": ["--wait=false"]}
        return {"name": name, "inputs": inputs, "resource": resource}
    return {
        "name": name,
        "inputs": inputs,
        "outputs": {"parameters": [{"name": "name", "valueFrom": {"jsonPath": "{.metadata.name}"}}]},
        "resource": {"action": "create", "manifest": tag(_claim(present, path))},
    }


def _claim(present: frozenset[str], path: str) -> str:
    if "pvc_name" in present:
        name = _json("pvc_name")
    elif "pvc_name_suffix" in present:
        name = f"toJson(workflow.name + {variable('inputs.parameters.pvc_name_suffix')})"
    else:
        raise InvalidPipeline(path, "CreatePVC needs pvc_name or pvc_name_suffix")
    pieces = [quoted('{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":'), name]
    if "annotations" in present:
        pieces += [quoted(',"annotations":'), variable("inputs.parameters.annotations")]
    pieces += [quoted('},"spec":{"accessModes":'), variable("inputs.parameters.access_modes")]
    pieces += [quoted(',"resources":{"requests":{"storage":'), _json("size"), quoted("}}")]
    # An empty class is the one that provisions nothing, as with Kubernetes; None (absent) is the default class.
    if "storage_class_name" in present:
        pieces += [quoted(',"storageClassName":'), _json("storage_class_name")]
    if "volume_name" in present:
        pieces += [quoted(',"volumeName":'), _json("volume_name")]
    if "data_source" in present:
        pieces += [quoted(',"dataSource":'), variable("inputs.parameters.data_source")]
    return " + ".join([*pieces, quoted("}}")])


def _json(parameter: str) -> str:
    return f"toJson({variable(f'inputs.parameters.{parameter}')})"
