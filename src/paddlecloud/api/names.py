"""Names of this project's kinds, and the labels and annotations that more than one package reads or writes.

Plain data, so that every layer can import it at no cost: `kube.resource` makes collections of the kinds, the packages
of the kinds declare them, and `sdk` and `cli` select by the labels.
"""

from __future__ import annotations

from typing import NamedTuple


class KindName(NamedTuple):
    group: str
    version: str
    plural: str
    kind: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}"


BATCH = "batch.paddlepaddle.org"
SERVING = "serving.paddlepaddle.org"
ELASTIC_SERVING = "elasticserving.paddlepaddle.org"
"""The group of the earlier ElasticServing project, whose YAML is still served."""

MODELHUB = "modelhub.paddlepaddle.org"

PADDLEJOB = KindName(BATCH, "v1", "paddlejobs", "PaddleJob")
SAMPLESET = KindName(BATCH, "v1alpha1", "samplesets", "SampleSet")
SAMPLEJOB = KindName(BATCH, "v1alpha1", "samplejobs", "SampleJob")
PADDLESERVICE = KindName(SERVING, "v1", "paddleservices", "PaddleService")
EARLIER_PADDLESERVICE = KindName(ELASTIC_SERVING, "v1", "paddleservices", "PaddleService")
MODEL = KindName(MODELHUB, "v1alpha1", "models", "Model")
MODELVERSION = KindName(MODELHUB, "v1alpha1", "modelversions", "ModelVersion")
KUBEFLOW_PADDLEJOB = KindName("kubeflow.org", "v1", "paddlejobs", "PaddleJob")
PROFILE = KindName("kubeflow.org", "v1", "profiles", "Profile")

ROLES = ("ps", "worker", "heter")
"""That pods of a PaddleJob have, in the order in which they start."""
JOB_LABEL = "paddlepaddle.org/job-name"
"""Of everything made for a PaddleJob, with the job's name as value."""
ROLE_LABEL = "paddlepaddle.org/role"
INDEX_LABEL = "paddlepaddle.org/index"
ORIGINAL_ROLE_LABEL = "paddle-res-type"
"""The role of a pod as the original operators write it."""
SAMPLESET_LABEL = "paddlepaddle.org/sampleset"
"""Of everything made for a SampleSet, with the set's name as value; informers select by it."""
SERVICE_LABEL = "PaddleService"
"""Of all pods of a PaddleService, on Knative and as Deployments, canary included; the original controller's too."""

SERVICE = f"{SERVING}/service"
ENDPOINT = f"{SERVING}/endpoint"
"""Label: whether a revision is a default or a canary."""
REVISION = f"{SERVING}/revision"
SOURCE = f"{SERVING}/source"
"""Annotation of a revision: the endpoint it was made from, so that one can go back to it."""
MODEL_FINGERPRINT = f"{SERVING}/model-fingerprint"
"""Annotation of a revision whose model is a folder of the node: by which a later change of its files is detected."""
MODEL_VERSION = f"{SERVING}/model-version"
"""Annotation of a revision whose model is known by name: NAME:VERSION, for those of the ModelHub with @DIGEST."""

MODEL_LABEL = f"{MODELHUB}/model"
"""Of a ModelVersion, with the name of its Model as value: versions of one model are selected by it."""
MODEL_FINALIZER = f"{MODELHUB}/files"
"""Of a ModelVersion: its manifest in the store is removed before it goes. Of a Model: its versions are."""

PROFILE_LABEL = "paddlepaddle.org/profile"
"""Of everything made for a Profile, with its name as value."""
PROFILE_UID = "paddlepaddle.org/profile-uid"
"""Annotation of the namespace of a Profile. No owner reference: garbage collection would delete the data with it."""
PROFILE_FINALIZER = "paddlepaddle.org/tenant"
"""Of a Profile: before it goes, its namespace is let go or deleted."""
OWNER_ANNOTATION = "owner"
"""Of a namespace: whose it is, as Kubeflow writes it. A Profile of that owner takes over a namespace that exists."""
KEPT_ANNOTATION = "paddlepaddle.org/kept-since"
"""Of the namespace of a Profile that was deleted: since when nobody but administrators reaches its data."""

PIPELINE_STEP = "paddlepaddle.org/pipeline-step"
"""Annotation of what a launcher of a pipeline made: the run it was started for, and a digest of what was asked for."""
PIPELINE_RUN_NAME = "paddlepaddle.org/pipeline-run-name"
PIPELINE_STEP_NAME = "paddlepaddle.org/pipeline-step-name"
"""Annotations of the same: the name of the run's Workflow, and of the step in it."""

PACKED_VERSION = "modelhub.paddlepaddle.org/version"
"""Annotation of a PaddleService of a pipeline, which fetches a packed model: NAME:VERSION of the ModelHub with the same
files, a space, and the SHA-256 of the archive, as its variable `MODEL_DIGEST` has it."""

RETRY_AT = "paddlepaddle.org/retry-at"
"""Annotation of PaddleJobs and SampleJobs: a new value requests another run of a job that has ended."""

KNATIVE_REVISION = "serving.knative.dev/revision"
MEASURES = "gateway.paddlecloud.dev/measures"
"""Annotation that the embedded Knative leaves in a revision's status: what its clients saw lately, as JSON; while it
shares a route with another. Other Knatives leave none of these."""
COLD_START = "gateway.paddlecloud.dev/cold-start"
"""Annotation in a revision's status: where the time of its last start from zero went, as JSON."""
NAME_URL = "gateway.paddlecloud.dev/name-url"
"""Annotation in the status of routes and services: their URL by name, on the port that all of them share."""
HTTP2_READY = "HTTP2Ready"
"""Condition of routes and services whose port is named `h2c`: whether HTTP/2 is routed. Ready does not depend on it."""

QUEUE_NAME = "scheduling.volcano.sh/queue-name"
"""Annotation of a namespace: the Volcano Queue of gangs that name none, as Volcano's admission reads it."""
GROUP_NAME = "scheduling.k8s.io/group-name"
"""Annotation of a pod: the PodGroup it belongs to, as Volcano reads it."""
