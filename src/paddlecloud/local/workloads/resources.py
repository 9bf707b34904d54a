"""The collections that workload controllers work on and `kube.resource` does not name."""

from __future__ import annotations

from paddlecloud.kube.resource import Resource

REPLICASETS = Resource("apps", "v1", "replicasets", "ReplicaSet")
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
STATEFULSETS = Resource("apps", "v1", "statefulsets", "StatefulSet")
REVISIONS = Resource("apps", "v1", "controllerrevisions", "ControllerRevision")
JOBS = Resource("batch", "v1", "jobs", "Job")
BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
STORAGECLASSES = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False)
ENDPOINTS = Resource("", "v1", "endpoints", "Endpoints")
