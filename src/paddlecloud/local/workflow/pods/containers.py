"""The containers of a node's pod: the program of the template, what makes its inputs, and what runs beside it. Pure.

A program that has outputs, a script, dependencies or sidecars is started by the executor (`executor/main.py`), which
finds its orders in variables (`executor/orders.py`). Input artifacts are made by an init container, as in Argo, and are
volumes of the main container: nothing is written to the folders of the machine.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from paddlecloud.kube.resource import Object
from paddlecloud.local.workflow.artifacts import driver, locations
from paddlecloud.local.workflow.durations import seconds
from paddlecloud.local.workflow.executor.orders import (
    ARTIFACTS,
    INPUTS,
    MAIN_VOLUMES,
    OUTPUTS,
    SHARED,
    ExecutorError,
    as_variables,
)
from paddlecloud.local.workflow.pods import interpreter
from paddlecloud.local.workflow.templates import Template, TemplateError, kind_of

MAIN, INIT = "main", "init"
INPUT_VOLUME, SHARED_VOLUME = "input-artifacts", "var-run-argo"
EXECUTOR_IMAGE = "busybox"
"""Of pods of resource, data and http templates: the executor alone runs in them."""
_BY_EXECUTOR = ("resource", "data", "http")
"""Kinds without a program of the author."""
MANIFEST = "/argo/manifest.yaml"


def containers_of(
    template: Template, spec: Mapping[str, Any], workflow: str, pod: str, owner: Object
) -> tuple[list[Object], list[Object]]:
    """Init containers and containers."""
    kind = kind_of(template)
    if template.get("securityContext") is None and spec.get("securityContext"):
        template = {**template, "securityContext": spec["securityContext"]}
    orders = _orders(template, spec, workflow, pod)
    logs = _logs(template, spec, orders)
    programs = _programs(template, {**orders, **({"log": logs[MAIN]} if MAIN in logs else {})}, owner)
    main = next((each for each in programs if each["name"] == MAIN), programs[0])
    sidecars = [_own(each, main) for each in template.get("sidecars") or ()]
    wraps = all(each.get("command") for each in (main, *sidecars))
    for program in programs:
        own = dict(orders) if program is main else {}
        if program["name"] in logs:
            own["log"] = logs[program["name"]]
        if kind == "containerSet":
            own["set"] = _place_in_set(template["containerSet"], program["name"])
            if orders.keys() & {"parameters", "artifacts"} and program is main:
                own["set"]["others"] = [each["name"] for each in programs if each is not main]
        if sidecars and wraps:
            own["sidecars"] = True
        if program is main and template.get("daemon"):
            own["daemon"] = True
        if kind in _BY_EXECUTOR or not own:
            continue
        if own.keys() <= {"daemon", "values"}:  # it runs alone; `node_state` and `outputs` read them
            program["env"] = [*(program.get("env") or ()), *_variables(own, template)]
        else:
            _wrap(program, own, template)
    loading = _loading(template, main)
    inits = [*loading, *(_own(each, main) for each in template.get("initContainers") or ())]
    for sidecar in sidecars:
        if wraps:
            _wrap(sidecar, {"beside": True}, template)
        else:
            inits.append({**sidecar, "restartPolicy": "Always"})
    return inits, [*programs, *(sidecars if wraps else ())]


def _logs(template: Template, spec: Mapping[str, Any], orders: dict[str, Any]) -> dict[str, Any]:
    """By the name of a container: where its log goes. The orders of the main one say what is kept, in the end."""
    inner = (template.get("containerSet") or {}).get("containers")
    names = [str(each["name"]) for each in inner] if inner else [MAIN]
    made = {name: order for name in names if (order := locations.log_order(template, spec, name))}
    for name, order in made.items():
        orders.setdefault("artifacts", []).append(order)
        made[name] = {"number": len(orders["artifacts"]) - 1, **({"s3": dict(order["s3"])} if "s3" in order else {})}
    return made


def _programs(template: Template, orders: dict[str, Any], owner: Object) -> list[Object]:
    kind = kind_of(template)
    if kind == "resource":
        return [_resource(template, orders, owner)]
    if kind == "data":
        return [_data(template, orders)]
    if kind == "http":
        return [_http(template, orders)]
    if kind == "containerSet":
        whole = template["containerSet"]
        shared = whole.get("volumeMounts") or ()
        made = []
        for each in whole["containers"]:
            program = {key: copy.deepcopy(value) for key, value in each.items() if key != "dependencies"}
            if shared:
                program["volumeMounts"] = [*(program.get("volumeMounts") or ()), *shared]
            made.append(program)
        return made
    container = copy.deepcopy(template[kind])
    container.pop("source", None)
    return [{**container, "name": MAIN}]


def _own(container: Object, main: Object) -> Object:
    """A sidecar or init container as Kubernetes knows it; `mirrorVolumeMounts` gives it the volumes of the main one."""
    made = {key: copy.deepcopy(value) for key, value in container.items() if key != "mirrorVolumeMounts"}
    if container.get("mirrorVolumeMounts"):
        mounted = {mount["mountPath"] for mount in made.get("volumeMounts") or ()}
        mirrored = [mount for mount in main.get("volumeMounts") or () if mount["mountPath"] not in mounted]
        made["volumeMounts"] = [*(made.get("volumeMounts") or ()), *copy.deepcopy(mirrored)]
    return made


def _wrap(container: Object, orders: Mapping[str, Any], template: Template) -> None:
    command = container.get("command")
    if not command:
        raise TemplateError(
            f"template {template.get('name', '')}: container {container['name']} has outputs, dependencies or sidecars "
            f"and no command, and what image {str(container.get('image', ''))[:200]} runs is not known here: "
            "give the container a command"
        )
    interpreter.start(container, ("run", *command), user=interpreter.user_of(container, template))
    _give(container, orders, template)


def _give(container: Object, orders: Mapping[str, Any], template: Template) -> None:
    """The orders, the credentials that they name, and the folders that the executor writes to."""
    kept = [*(orders.get("artifacts") or ()), *(orders[each] for each in ("log", "data", "http") if each in orders)]
    credentials = locations.secret_variables(kept)
    container["env"] = [*(container.get("env") or ()), *credentials, *_variables(orders, template)]
    mounts = list(container.get("volumeMounts") or ())
    if orders.keys() & {"result", "parameters", "artifacts", "resource", "log", "data", "http"}:
        mounts.append({"name": driver.OUTPUTS_VOLUME, "mountPath": OUTPUTS})
    if orders.keys() & {"set", "sidecars", "beside"}:
        mounts.append({"name": SHARED_VOLUME, "mountPath": SHARED})
    if mounts:
        container["volumeMounts"] = mounts


def _variables(orders: Any, template: Template) -> list[Object]:
    try:
        return as_variables(orders)
    except ExecutorError as why:
        raise TemplateError(f"template {template.get('name', '')}: {why}") from None


def _orders(template: Template, spec: Mapping[str, Any], workflow: str, pod: str) -> dict[str, Any]:
    """What the executor has to do; nothing where the program can run alone."""
    orders: dict[str, Any] = {}
    source = (template.get("script") or {}).get("source")
    if source is not None:
        orders["source"] = source
    if template.get("capturesResult"):
        orders["result"] = True
    parameters = {}
    for parameter in (template.get("outputs") or {}).get("parameters") or ():
        value_from = parameter.get("valueFrom") or {}
        found = {key: value_from[key] for key in ("path", "jsonPath", "jqFilter") if value_from.get(key)}
        if not found and parameter.get("value") is not None:
            orders.setdefault("values", []).append(parameter)
        if found:
            parameters[parameter["name"]] = {**found, "default": value_from.get("default")}
            if parameter.get("globalName"):
                parameters[parameter["name"]]["globalName"] = parameter["globalName"]
    if parameters:
        orders["parameters"] = parameters
    if artifacts := locations.output_orders(template, spec, workflow, pod):
        orders["artifacts"] = artifacts
    return orders


# Resources


def _resource(template: Template, orders: Mapping[str, Any], owner: Object) -> Object:
    given = template["resource"]
    order: dict[str, Any] = {
        key: given[key]
        for key in ("action", "mergeStrategy", "manifest", "successCondition", "failureCondition", "flags")
        if given.get(key)
    }
    if given.get("manifestFrom"):
        order["manifestPath"] = MANIFEST
    if given.get("setOwnerReference"):
        order["owner"] = owner
    container: Object = {"name": MAIN, "image": EXECUTOR_IMAGE}
    interpreter.start(container, ("resource",), packages=True, user=interpreter.user_of(template))
    _give(container, {**orders, "resource": order}, template)
    return container


def _data(template: Template, orders: Mapping[str, Any]) -> Object:
    given = template["data"]
    place = locations.paths_order(given["source"]["artifactPaths"], template)
    steps = [str(each["expression"]) for each in given.get("transformation") or () if each.get("expression")]
    container: Object = {"name": MAIN, "image": EXECUTOR_IMAGE}
    if "s3" not in place:
        container["volumeMounts"] = [{"name": driver.ARTIFACTS_VOLUME, "mountPath": ARTIFACTS, "readOnly": True}]
    interpreter.start(container, ("data",), packages=True, user=interpreter.user_of(template))
    _give(container, {**orders, "data": {**place, "transformation": steps}}, template)
    return container


def _http(template: Template, orders: Mapping[str, Any]) -> Object:
    given = copy.deepcopy(template["http"])
    if (source := given.pop("bodyFrom", None)) is not None:
        given["bytes"] = str(source.get("bytes") or "")
    container: Object = {"name": MAIN, "image": EXECUTOR_IMAGE}
    interpreter.start(container, ("http",), packages=True, user=interpreter.user_of(template))
    _give(container, {**orders, "http": given}, template)
    return container


# Container sets


def _place_in_set(whole: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Which containers this one waits for, and how often it is tried again."""
    graph = {each["name"]: list(each.get("dependencies") or ()) for each in whole["containers"]}
    strategy = whole.get("retryStrategy") or {}
    order: dict[str, Any] = {"name": name, "after": graph[name]}
    if strategy:
        order["retries"] = int(str(strategy.get("retries") or 0))
        order["pause"] = seconds(strategy.get("duration") or 0)
    return order


# Inputs


def _loading(template: Template, main: Object) -> list[Object]:
    """The init container that makes input artifacts; `main` is given a mount of each."""
    if source := ((template.get("resource") or {}).get("manifestFrom") or {}).get("artifact"):
        inputs = template.get("inputs") or {}
        given = next((each for each in inputs.get("artifacts") or () if each["name"] == source.get("name")), source)
        manifest = {**given, "path": MANIFEST}
        others = [each for each in inputs.get("artifacts") or () if each["name"] != source.get("name")]
        template = {**template, "inputs": {**inputs, "artifacts": [*others, manifest]}}
    orders = locations.input_orders(template, main)
    if not orders:
        return []
    mounts: list[Object] = [
        {"name": INPUT_VOLUME, "mountPath": INPUTS},
        {"name": driver.ARTIFACTS_VOLUME, "mountPath": ARTIFACTS, "readOnly": True},
    ]
    for order in orders:
        if mount := order.pop("mount", None):
            main["volumeMounts"] = [*(main.get("volumeMounts") or ()), {"name": INPUT_VOLUME, **mount}]
        if volume := order.pop("volume", None):
            mounts.append({**volume, "mountPath": f"{MAIN_VOLUMES}{volume['mountPath']}"})
    container: Object = {
        "name": INIT,
        "image": main["image"],
        "env": [*locations.secret_variables(orders), *_variables(orders, template)],
        "volumeMounts": list({mount["mountPath"]: mount for mount in mounts}.values()),
    }
    for field in ("imagePullPolicy", "securityContext"):
        if main.get(field) is not None:
            container[field] = main[field]
    interpreter.start(container, ("inputs",), user=interpreter.user_of(container, template))
    if resources := _common_resources(main):
        container["resources"] = resources
    return [container]


def _common_resources(main: Object) -> Object:
    """Processors and memory, which a quota may ask of every container; no devices."""
    given = main.get("resources") or {}
    return {
        side: kept
        for side in ("limits", "requests")
        if (kept := {name: value for name, value in (given.get(side) or {}).items() if name in ("cpu", "memory")})
    }


def volumes_of(volumes: Iterable[Object], template: Template, containers: Sequence[Object]) -> list[Object]:
    """Those of workflow and template that a container mounts, and the platform's own."""
    own: Iterable[Object] = (
        {"name": INPUT_VOLUME, "emptyDir": {}},
        {"name": SHARED_VOLUME, "emptyDir": {}},
        *driver.volumes(),
    )
    used = {mount["name"] for each in containers for mount in each.get("volumeMounts") or ()}
    return [volume for volume in (*volumes, *(template.get("volumes") or ()), *own) if volume["name"] in used]
