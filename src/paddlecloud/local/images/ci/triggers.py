"""What starts the builds of suites: a push to a suite's branch, a weekly schedule; and what deletes old runs. Pure.

A listener accepts events that are signed with the webhook's key, from GitHub or from a schedule, which sends the same
event. What is built follows from the suite alone: nothing else of an event is used.
"""

from __future__ import annotations

from collections.abc import Sequence

from paddlecloud.kube.resource import Object
from paddlecloud.local.images.ci import script, tekton
from paddlecloud.local.images.ci.tekton import SUITE_LABEL, Settings
from paddlecloud.local.images.suites import Suite, Suites

LISTENER = "image-builds"
_API = "triggers.tekton.dev/v1beta1"
_LISTENS = "image-build-listener"
_CLEANS = "image-build-cleanup"
_EVENT = "paddlecloud.local.images.ci.push_event"


def triggers(found: Suites, settings: Settings) -> list[Object]:
    """Listener, schedules and cleaning; without a webhook's key the last one alone."""
    made = [
        *_account(_CLEANS, settings, [_rule("tekton.dev", "pipelineruns", "list", "get", "delete")]),
        _cleanup(found, settings),
    ]
    if not settings.webhook_secret:
        return made
    listens = [
        _rule("tekton.dev", "pipelineruns", "create"),
        _rule("triggers.tekton.dev", "eventlisteners", "get", "list", "watch"),
        _rule("triggers.tekton.dev", "triggerbindings", "get", "list", "watch"),
        _rule("triggers.tekton.dev", "triggertemplates", "get", "list", "watch"),
        _rule("triggers.tekton.dev", "triggers", "get", "list", "watch"),
        _rule("triggers.tekton.dev", "interceptors", "get", "list", "watch"),
        _rule("", "secrets", "get", names=[settings.webhook_secret]),
        _rule("", "configmaps", "get", "list", "watch"),
        _rule("", "events", "create", "patch"),
    ]
    everywhere = [
        _rule("triggers.tekton.dev", "clustertriggerbindings", "get", "list", "watch"),
        _rule("triggers.tekton.dev", "clusterinterceptors", "get", "list", "watch"),
    ]
    return [
        *made,
        *_account(_LISTENS, settings, listens, everywhere),
        *(_template(suite, found, settings) for suite in found.suites),
        _listener(found.suites, settings),
        *(_schedule(suite, number, settings) for number, suite in enumerate(found.suites)),
    ]


def _template(suite: Suite, found: Suites, settings: Settings) -> Object:
    started = tekton.run(tekton.MULTI, suite.repository_name, tekton.parameters(suite, found.bases, settings))
    return {
        "apiVersion": _API,
        "kind": "TriggerTemplate",
        "metadata": {"name": suite.repository_name, "namespace": settings.namespace},
        "spec": {"resourcetemplates": [started]},
    }


def _listener(suites: Sequence[Suite], settings: Settings) -> Object:
    key = {"secretName": settings.webhook_secret, "secretKey": "token"}
    signed = {"ref": {"name": "github"}, "params": [_param("secretRef", key), _param("eventTypes", ["push"])]}
    chosen = [
        {
            "name": suite.repository_name,
            "interceptors": [signed, {"ref": {"name": "cel"}, "params": [_param("filter", _condition(suite))]}],
            "template": {"ref": suite.repository_name},
        }
        for suite in suites
    ]
    return {
        "apiVersion": _API,
        "kind": "EventListener",
        "metadata": {"name": LISTENER, "namespace": settings.namespace},
        "spec": {"serviceAccountName": _LISTENS, "triggers": chosen},
    }


def _condition(suite: Suite) -> str:
    return f"body.ref == 'refs/heads/{suite.branch}' && body.repository.name == '{suite.name}'"


def _schedule(suite: Suite, number: int, settings: Settings) -> Object:
    """Once a week, each suite on its day, so that builds of all do not wait for one another."""
    key = {"secretKeyRef": {"name": settings.webhook_secret, "key": "token"}}
    url = f"http://el-{LISTENER}:8080"
    container = {
        "name": "start",
        "image": settings.tool,
        "command": ["python", "-m", _EVENT, url, suite.name, suite.branch],
        "env": [{"name": "TOKEN", "valueFrom": key}],
    }
    name = f"build-{suite.repository_name}"
    return _cron_job(name, f"1 0 * * {number % 7}", container, tekton.ACCOUNT, settings)


def _cleanup(found: Suites, settings: Settings) -> Object:
    suites = " ".join(suite.repository_name for suite in found.suites)
    container = {
        "name": "cleanup",
        "image": settings.tool,
        "command": ["sh", "-c", script("cleanup.sh")],
        "env": tekton.named({"SUITES": suites, "LABEL": SUITE_LABEL, "KEEP": str(settings.keep)}),
    }
    return _cron_job("image-builds-cleanup", "5 0 * * *", container, _CLEANS, settings)


def _cron_job(name: str, schedule: str, container: Object, account: str, settings: Settings) -> Object:
    pod = {"restartPolicy": "Never", "serviceAccountName": account, "containers": [container]}
    job = {"backoffLimit": 3, "ttlSecondsAfterFinished": 3600, "template": {"spec": pod}}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name, "namespace": settings.namespace},
        "spec": {"schedule": schedule, "concurrencyPolicy": "Forbid", "jobTemplate": {"spec": job}},
    }


def _account(name: str, settings: Settings, rules: list[Object], everywhere: Sequence[Object] = ()) -> list[Object]:
    """An account with these rights in its namespace, and `everywhere`."""
    place = {"name": name, "namespace": settings.namespace}
    made: list[Object] = [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": place}]
    for scope, granted in (("", rules), ("Cluster", everywhere)):
        if not granted:
            continue
        api = "rbac.authorization.k8s.io"
        here = {"name": f"{settings.namespace}-{name}"} if scope else place
        common = {"apiVersion": f"{api}/v1", "metadata": here}
        bound = {"apiGroup": api, "kind": f"{scope}Role", "name": here["name"]}
        subjects = [{"kind": "ServiceAccount", **place}]
        made += [
            {**common, "kind": f"{scope}Role", "rules": list(granted)},
            {**common, "kind": f"{scope}RoleBinding", "roleRef": bound, "subjects": subjects},
        ]
    return made


def _rule(group: str, resource: str, *verbs: str, names: Sequence[str] = ()) -> Object:
    rule: Object = {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}
    return {**rule, "resourceNames": list(names)} if names else rule


def _param(name: str, value: object) -> Object:
    return {"name": name, "value": value}
