"""CreatePVC and DeletePVC of kfp-kubernetes as Argo's resource templates. Pure.

Their executors have images that do not exist; the driver of Kubeflow Pipelines recognises those names, and so does
this.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from paddlecloud.pipelines.ir.errors import InvalidPipeline
from paddlecloud.pipelines.ir.pipeline_spec import Container, InputParameter
from paddlecloud.pipelines.ir.sources import quoted, tag, variable

CREATE = "argostub/createpvc"
DELETE = "argostub/deletepvc"
UID = "uid"
"""An output of CreatePVC that kfp does not know. It counts in the cache keys of the steps that mount the claim, since
another claim under the same name holds nothing of the first one."""


def is_claim(container: Container) -> bool:
    return container.image in (CREATE, DELETE)


def uid_input(name: str) -> str:
    """The input that has the uid of the claim whose name is in the input `name`."""
    return f"{name}-{UID}"


def uid(source: InputParameter, maker: Container | None, known: Collection[str]) -> str:
    """The uid of the claim whose name comes from there; empty where it is not known.

    `maker` is what the task runs that gives the name, `known` are inputs around with such a name and its uid.
    """
    if source.task_output_parameter is not None and maker is not None and maker.image == CREATE:
        return f"{{{{tasks.{source.task_output_parameter.producer_task}.outputs.parameters.{UID}}}}}"
    name = source.component_input_parameter
    return f"{{{{inputs.parameters.{uid_input(name)}}}}}" if name in known else ""


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
    given = {"name": "{.metadata.name}", UID: "{.metadata.uid}"}
    return {
        "name": name,
        "inputs": inputs,
        "outputs": {"parameters": [{"name": key, "valueFrom": {"jsonPath": place}} for key, place in given.items()]},
        # A claim with a name of its own is there for all runs; one with a suffix is made for its run.
        "resource": {"action": "apply" if "pvc_name" in present else "create", "manifest": tag(_claim(present, path))},
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
