"""As whom the parts of the platform act: the names Kubernetes gives them, so that RBAC and the audit log know each.

The workload controllers share one set of caches and one client, and therefore one name: kube-controller-manager's,
which is granted what each of them needs.
"""

from __future__ import annotations

from paddlecloud.local.apiserver.auth.authentication import AUTHENTICATED, User, service_account


def node(name: str) -> User:
    return User(f"system:node:{name}", groups=("system:nodes", AUTHENTICATED))


SCHEDULER = User("system:kube-scheduler", groups=(AUTHENTICATED,))
CONTROLLER_MANAGER = User("system:kube-controller-manager", groups=(AUTHENTICATED,))
NODE_CONTROLLER = service_account("kube-system", "node-controller")
KNATIVE = service_account("knative-serving", "controller")
WORKFLOW_CONTROLLER = service_account("kube-system", "workflow-controller")
