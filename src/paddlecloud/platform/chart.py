"""The Helm chart as this package carries it, and what its rules mean for controllers and users without it.

The embedded platform runs the chart's controllers under accounts of the same names with the same rules, read from the
same file: a right that is missing on a cluster is missing here. Users have the same rights on the kinds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import paddlecloud
from paddlecloud.kube.resource import Object

NAMESPACE = "kube-system"
"""Of the accounts: in the chart it is the release's, which may come to this platform as well."""
ACCOUNTS = {
    "paddlejob": "paddlejob-sa",
    "sampleset": "sampleset-sa",
    "serving": "paddle-serving-sa",
    "models": "models-sa",
    "tenants": "tenants-sa",
}
"""Key in rbac.yaml → account, as the chart's helper `paddlecloud.accounts` has it."""
_RBAC = "rbac.authorization.k8s.io"
_USERS = {"edit": ("create", "delete", "deletecollection", "patch", "update"), "view": ("get", "list", "watch")}
LABELS = {"app.kubernetes.io/managed-by": "paddlecloud"}
"""Of what the platform defines: a ClusterRole with them follows the release that is started."""


def chart() -> Path:
    """In an installed package it lies beside the modules, in a checkout at its top."""
    package = Path(paddlecloud.__file__).parent
    places = (package / "charts" / "paddlecloud", package.parents[1] / "charts" / "paddlecloud")
    return next(place for place in places if (place / "Chart.yaml").is_file())


def controller_accounts() -> list[Object]:
    """ServiceAccounts, ClusterRoles and bindings of this project's controllers.

    Of what the chart grants in the release's own namespace only what comes with the ModelHub is needed: nobody is
    elected here, and no pod is labelled.
    """
    rules = _rules()
    made: list[Object] = []
    for key, account in ACCOUNTS.items():
        name = f"paddlecloud:controller:{key}"
        granted = [rule for part in ("cluster", "namespaced", "kubeflow") for rule in rules[key].get(part, ())]
        made += [
            _object("v1", "ServiceAccount", account, namespace=NAMESPACE),
            {**_object(f"{_RBAC}/v1", "ClusterRole", name), "rules": granted},
            {
                **_object(f"{_RBAC}/v1", "ClusterRoleBinding", name),
                "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name},
                "subjects": [{"kind": "ServiceAccount", "namespace": NAMESPACE, "name": account}],
            },
        ]
        if own := rules[key].get("models"):
            made += [
                {**_object(f"{_RBAC}/v1", "Role", name, namespace=NAMESPACE), "rules": own},
                {
                    **_object(f"{_RBAC}/v1", "RoleBinding", name, namespace=NAMESPACE),
                    "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": name},
                    "subjects": [{"kind": "ServiceAccount", "namespace": NAMESPACE, "name": account}],
                },
            ]
    return made


def user_roles() -> list[Object]:
    """Parts of Kubernetes' roles `edit` and `view`: what their holders may do with this project's kinds."""
    made: list[Object] = []
    for key, parts in _rules().items():
        if not parts["users"]:
            continue
        for role, verbs in _USERS.items():
            obj = _object(f"{_RBAC}/v1", "ClusterRole", f"paddlecloud:{key}:{role}")
            obj["metadata"]["labels"][f"{_RBAC}/aggregate-to-{role}"] = "true"
            made.append({**obj, "rules": [{**rule, "verbs": list(verbs)} for rule in parts["users"]]})
    return made


def dashboard_rules() -> list[Object]:
    """Of the account of the dashboard's watches."""
    import yaml

    rules: list[Object] = yaml.safe_load((chart() / "dashboard-account.yaml").read_text())["rules"]
    return rules


def _rules() -> dict[str, dict[str, list[Any]]]:
    import yaml

    found: dict[str, dict[str, list[Any]]] = yaml.safe_load((chart() / "rbac.yaml").read_text())
    return found


def _object(api_version: str, kind: str, name: str, **meta: str) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "labels": dict(LABELS), **meta}}
