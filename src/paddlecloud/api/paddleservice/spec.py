"""The fields of a PaddleService as people write them, and its status.

Published YAML writes numbers where the original CRD wanted strings (`targetUtilization: 70`) and short names of
autoscalers (`kpa`); both are accepted.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from paddlecloud.api.fields import (
    CONDITION_LIST,
    FOLDER_ADDRESS,
    Condition,
    Embedded,
    Int32,
    Int64,
    IntOrString,
    Root,
    Rule,
    Time,
    Wire,
    doc,
)
from paddlecloud.api.name_rules import DNS_LABEL, MAX_LABEL, no_longer_than
from paddlecloud.api.paddleservice.named_model import LONGEST_ADDRESS, NAMED_MODEL

CONDITIONS = ("ModelReady", "DefaultEndpointReady", "CanaryEndpointReady", "RoutesReady", "Ready", "Conflict")
MAX_REPLICAS = 5_000
"""Pods that a service may be pinned to: one for each node of the largest cluster that Kubernetes supports."""

MAX_NAME = MAX_LABEL - len("-default-00000000")
"""Revisions are called `<name>-default-<hash>`, and their names are DNS labels."""
AUTOSCALERS = {"kpa": "kpa.autoscaling.knative.dev", "hpa": "hpa.autoscaling.knative.dev"}


class EndpointSpec(Wire):
    """One version of the service: an image, or a model that our inference server serves."""

    container_image: Annotated[str | None, doc("The image, without its tag.")] = None
    tag: Annotated[IntOrString | None, doc("Tag of the image.")] = None
    port: Annotated[Int32 | None, doc("Port the server listens on; 8080 with `model`.", minimum=1, maximum=65535)] = (
        None
    )
    arg: Annotated[str | None, doc("Shell line run with `/bin/bash -c`; the image's own entrypoint when left out.")] = (
        None
    )
    model: Annotated[
        str | None,
        doc(
            "Model to serve without an image of one's own: NAME@ALIAS or NAME:VERSION of the ModelHub, NAME:VERSION of "
            "a model store, or a URI.",
            rules=(FOLDER_ADDRESS, NAMED_MODEL),
            maxLength=LONGEST_ADDRESS,
        ),
    ] = None


class ServiceSpec(Wire):
    """How the service scales."""

    autoscaler: Annotated[
        str | None,
        doc("Which autoscaler; kpa when left out.", enum=[*AUTOSCALERS.values(), *AUTOSCALERS]),
    ] = None
    metric: Annotated[
        str | None,
        doc("What it looks at; concurrency when left out.", enum=["concurrency", "rps", "cpu"]),
    ] = None
    target: Annotated[Int32 | None, doc("Wanted value of the metric per pod; 100 when left out.", minimum=0)] = None
    target_utilization: Annotated[
        IntOrString | None, doc("Percentage of the target at which pods are added; 70 when left out.")
    ] = None
    window: Annotated[IntOrString | None, doc("Time the metric is averaged over, 6s to 1h; 60s when left out.")] = None
    panic_window: Annotated[
        IntOrString | None, doc("Percentage of the window that sudden load is judged by; 10 when left out.")
    ] = None
    panic_threshold: Annotated[
        IntOrString | None, doc("Percentage of the target that counts as sudden load; 200 when left out.")
    ] = None
    min_scale: Annotated[
        Int32 | None,
        doc("Fewest pods; 0, which lets the service sleep, when left out.", minimum=0, maximum=MAX_REPLICAS),
    ] = None
    max_scale: Annotated[Int32 | None, doc("Most pods; 0 means no limit.", minimum=0)] = None


class Rollout(Wire):
    """How traffic moves to a new revision. Without it, all of it moves once the revision is ready."""

    steps: Annotated[
        list[Int32] | None, doc("Percentages of traffic the new revision gets, one after the other.", minItems=1)
    ] = None
    pause_seconds: Annotated[Int32 | None, doc("Time between two steps; 60 when left out.", minimum=0)] = None
    max_error_percent: Annotated[
        float | None, doc("Go back when more than this share of answers are errors.", minimum=0, maximum=100)
    ] = None
    max_latency_milliseconds: Annotated[
        Int32 | None, doc("Go back when the 95th percentile takes longer than this.", minimum=1)
    ] = None
    paused: Annotated[bool | None, doc("Stay at the current step.")] = None


ONE_DEFAULT = Rule(
    "!has(self.default) || !has(self.model) || self.model == ''",
    "spec.model is short for spec.default.model: set one of spec.model and spec.default and remove the other, with "
    """kubectl patch --type=merge -p '{"spec":{"model":null}}' or '{"spec":{"default":null}}'""",
)


class PaddleServiceSpec(Wire):
    """What is served, and how it scales."""

    RULES: ClassVar[tuple[Rule, ...]] = (ONE_DEFAULT,)

    default: Annotated[EndpointSpec | None, doc("The version that gets all traffic, or what the canary leaves.")] = None
    canary: Annotated[EndpointSpec | None, doc("A version that gets a share of the traffic.")] = None
    canary_traffic_percent: Annotated[
        Int32 | None, doc("Share of the canary; 50 when left out.", minimum=0, maximum=100)
    ] = None
    model: Annotated[
        str | None,
        doc(
            "Shorthand for default.model; one of the two.",
            rules=(FOLDER_ADDRESS, NAMED_MODEL),
            maxLength=LONGEST_ADDRESS,
        ),
    ] = None
    follow: Annotated[
        bool | None,
        doc("Roll out what an alias (NAME@ALIAS) points to when it is moved. Left out, the service keeps its version."),
    ] = None
    allow_model_code: Annotated[
        bool | None, doc("Run the processor that a fetched model brings along. It is code: trust where it comes from.")
    ] = None
    allow_plain_http: Annotated[
        bool | None, doc("Fetch models over http:// without `#sha256=HEX` in the reference.")
    ] = None
    service: Annotated[ServiceSpec | None, doc("How the service scales.")] = None
    replicas: Annotated[
        Int32 | None,
        doc(
            "Pin the number of pods; set by `kubectl scale`. 0 leaves it to the autoscaler.",
            minimum=0,
            maximum=MAX_REPLICAS,
        ),
    ] = None
    runtime_version: Annotated[str | None, doc("Name of the container; paddleserving when left out.")] = None
    resources: Annotated[
        Embedded | None,
        doc("core/v1 ResourceRequirements, kept whole. Missing cpu is 0.2, missing memory 512Mi."),
    ] = None
    working_dir: Annotated[str | None, doc("Directory the program starts in.")] = None
    volume_mounts: Annotated[list[Embedded] | None, doc("core/v1 VolumeMounts of the container.")] = None
    volumes: Annotated[list[Embedded] | None, doc("core/v1 Volumes of the pod.")] = None

    env: Annotated[list[Embedded] | None, doc("core/v1 EnvVars of the container.")] = None
    env_from: Annotated[list[Embedded] | None, doc("core/v1 EnvFromSources of the container.")] = None
    service_account_name: Annotated[str | None, doc("ServiceAccount of the pod.")] = None
    image_pull_secrets: Annotated[list[Embedded] | None, doc("Secrets the image is pulled with.")] = None
    node_selector: Annotated[dict[str, str] | None, doc("Labels of the nodes the pods may run on.")] = None
    tolerations: Annotated[list[Embedded] | None, doc("core/v1 Tolerations of the pod.")] = None
    readiness_probe: Annotated[Embedded | None, doc("core/v1 Probe; a TCP probe of the port when left out.")] = None
    liveness_probe: Annotated[Embedded | None, doc("core/v1 Probe.")] = None
    startup_probe: Annotated[Embedded | None, doc("core/v1 Probe.")] = None
    container_concurrency: Annotated[
        Int32 | None, doc("Requests a pod takes at the same time; 0 means no limit.", minimum=0, maximum=1000)
    ] = None
    timeout_seconds: Annotated[Int32 | None, doc("Time a request may take; 300 when left out.", minimum=1)] = None
    protocol: Annotated[
        str | None, doc("Protocol of the port; http1 when left out.", enum=["http1", "h2c", "grpc"])
    ] = None
    rollout: Annotated[Rollout | None, doc("How traffic moves to a new revision.")] = None


class ServiceAddress(Wire):
    """Where the service is reached inside the cluster."""

    url: str | None = None


class EndpointStatus(Wire):
    """The revision that carries an endpoint."""

    name: Annotated[str | None, doc("Name of the revision that serves.")] = None
    latest: Annotated[
        str | None, doc("The revision of the present spec, while another one serves: it is starting, or rolled out.")
    ] = None
    percent: Annotated[Int32 | None, doc("Traffic it gets now.")] = None
    replicas: Annotated[Int32 | None, doc("Its pods.")] = None
    model: Annotated[str | None, doc("NAME:VERSION of the model it serves, where it is known by name.")] = None


class ServedModel(Wire):
    """A version of a model, and what it gets of the traffic."""

    endpoint: Annotated[str | None, doc("default or canary.")] = None
    name: Annotated[str | None, doc("Name of the model.")] = None
    version: Annotated[str | None, doc("Which version of it.")] = None
    digest: Annotated[str | None, doc("Digest of its files in the ModelHub; nothing for those of a model store.")] = (
        None
    )
    revision: Annotated[str | None, doc("The revision that serves it.")] = None
    percent: Annotated[Int32 | None, doc("Its share of the traffic; 0 until it is ready.")] = None
    since: Annotated[Time | None, doc("Since when it has a share.")] = None
    reference: Annotated[
        str | None, doc("How the spec names it; nothing for a version that is served until the next one is ready.")
    ] = None


class RolloutStatus(Wire):
    """How far a roll-out has come. There is none when the new revision has all of the traffic."""

    phase: Annotated[
        str | None,
        doc("Progressing, Paused, WentBack; or Waiting, until answers of an attempt before no longer count."),
    ] = None
    step: Annotated[Int32 | None, doc("Steps done.")] = None
    percent: Annotated[Int32 | None, doc("Traffic of the new revision.")] = None
    next_step_time: Annotated[Time | None, doc("When the next step is due.")] = None
    message: Annotated[str | None, doc("Why it pauses or went back.")] = None
    went_back_time: Annotated[Time | None, doc("When it went back.")] = None


class ColdStart(Wire):
    """Where the time of the last start from zero went, in milliseconds."""

    queue: Int32 | None = None
    spawn: Int32 | None = None
    imports: Int32 | None = None
    load: Int32 | None = None
    warmup: Int32 | None = None
    total: Int32 | None = None


class ServiceCondition(Condition):
    """One aspect of the service's state."""

    severity: Annotated[str | None, doc("How bad it is when the condition does not hold: Error or Info.")] = None


class PaddleServiceStatus(Wire):
    """What happened so far."""

    conditions: Annotated[
        list[ServiceCondition] | None,
        CONDITION_LIST,
        doc(", ".join(CONDITIONS) + "."),
    ] = None
    url: Annotated[str | None, doc("Where the service is reached.")] = None
    name_url: Annotated[
        str | None,
        doc("The same by name on the embedded platform, for browsers and curl; many programs do not resolve it."),
    ] = None
    address: Annotated[ServiceAddress | None, doc("Where it is reached inside the cluster.")] = None
    default: Annotated[EndpointStatus | None, doc("Revision of the default endpoint.")] = None
    canary: Annotated[EndpointStatus | None, doc("Revision of the canary.")] = None
    models: Annotated[
        list[ServedModel] | None,
        doc("Which version of a model gets which share of the traffic, and since when; of models known by name."),
    ] = None
    traffic: Annotated[
        str | None,
        doc('Shares of the default that serves, of one that is being rolled out, and of the canary, as "90/10".'),
    ] = None
    replicas: Annotated[Int32 | None, doc("Pods of all revisions.", minimum=0)] = None
    selector: Annotated[str | None, doc("Label selector of the pods.")] = None
    observed_generation: Annotated[Int64 | None, doc("The generation of the spec this status is about.")] = None
    annotations: Annotated[dict[str, str] | None, doc("Free remarks of controllers.")] = None
    retried_at: Annotated[
        str | None, doc("Value of the annotation paddlepaddle.org/retry-at that was last followed.")
    ] = None
    engine: Annotated[str | None, doc("What carries the service: Knative or Deployment.")] = None
    rollout: Annotated[RolloutStatus | None, doc("How far a roll-out has come.")] = None
    cold_start: Annotated[ColdStart | None, doc("Where the time of the last start from zero went.")] = None
    message: Annotated[str | None, doc("What is awaited, or what went wrong.")] = None


class PaddleService(Root):
    """A model behind a URL."""

    RULES: ClassVar[tuple[Rule, ...]] = (DNS_LABEL, no_longer_than(MAX_NAME, "names of its revisions are made from it"))

    spec: Annotated[PaddleServiceSpec | None, doc("What is served, and how it scales.")] = None
    status: Annotated[PaddleServiceStatus | None, doc("What happened so far; written by the controller.")] = None
