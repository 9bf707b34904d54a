"""Components as typed functions, for pipelines of kfp 1 and kfp 2. Made from paddlecloud.pipelines.components.

Each returns what the installed kfp makes of the component: a task of the pipeline that is being built.
"""

from __future__ import annotations

from typing import Any

from paddlecloud.pipelines.loading import Channel, task


def dataset(
    *,
    name: str | Channel,
    source_uri: str | Channel,
    source_secret: str | Channel,
    namespace: str | Channel = "kubeflow",
    action: str | Channel = "apply",
    partitions: int | Channel = 1,
    timeout_minutes: int | Channel | None = None,
) -> Any:
    """Copies sample data into the shared sample set data-center and warms its cache.

    Args:
        name: Name of the data set, and its folder in data-center.
        source_uri: Where the data is, such as bos://bucket/folder/.
        source_secret: Secret with the keys of the source.
        namespace: Namespace of the objects that the step creates.
        action: What is done to the objects: apply, create, patch or delete.
        partitions: Number of cache nodes, used when data-center does not exist yet.
        timeout_minutes: Minutes after which the step fails and removes what it started.

    Outputs: dataset.
    """
    return task(
        "operator/dataset",
        {
            "name": name,
            "source_uri": source_uri,
            "source_secret": source_secret,
            "namespace": namespace,
            "action": action,
            "partitions": partitions,
            "timeout_minutes": timeout_minutes,
        },
    )


def training(
    *,
    name: str | Channel,
    project: str | Channel,
    image: str | Channel,
    config_path: str | Channel,
    dataset: str | Channel,
    pvc_name: str | Channel,
    worker_replicas: int | Channel,
    namespace: str | Channel = "kubeflow",
    action: str | Channel = "apply",
    config_changes: str | Channel | None = None,
    pretrain_model: str | Channel | None = None,
    train_label: str | Channel | None = None,
    test_label: str | Channel | None = None,
    ps_replicas: int | Channel | None = None,
    gpu_per_node: int | Channel | None = None,
    use_visualdl: bool | Channel | None = None,
    save_inference: bool | Channel | None = None,
    need_convert: bool | Channel | None = None,
    timeout_minutes: int | Channel | None = None,
) -> Any:
    """Trains a model of a Paddle suite as a PaddleJob, exports the trained weights and packs them for Paddle Serving.

    Args:
        name: Name of the job and of the model.
        project: Paddle suite in the image: PaddleOCR.
        image: Image with the code of the suite.
        config_path: Model configuration, relative to the suite's folder.
        dataset: Name of a data set that the dataset component prepared.
        pvc_name: Claim of the volume that the steps share.
        worker_replicas: Number of workers.
        namespace: Namespace of the objects that the step creates.
        action: What is done to the objects: apply, create, patch or delete.
        config_changes: Changes of the configuration: KEY=VALUE, separated by commas.
        pretrain_model: URL of the weights that training begins with.
        train_label: Label file for training, in the data set's folder.
        test_label: Label file for evaluation, in the data set's folder.
        ps_replicas: Number of parameter servers.
        gpu_per_node: GPUs of each worker.
        use_visualdl: Serve the training's curves with VisualDL at the Service NAME-visualdl:8040; takes one worker.
        save_inference: Export the trained model for inference.
        need_convert: Pack the exported model for Paddle Serving.
        timeout_minutes: Minutes after which the step fails and removes what it started.

    Outputs: model_path.
    """
    return task(
        "operator/training",
        {
            "name": name,
            "project": project,
            "image": image,
            "config_path": config_path,
            "dataset": dataset,
            "pvc_name": pvc_name,
            "worker_replicas": worker_replicas,
            "namespace": namespace,
            "action": action,
            "config_changes": config_changes,
            "pretrain_model": pretrain_model,
            "train_label": train_label,
            "test_label": test_label,
            "ps_replicas": ps_replicas,
            "gpu_per_node": gpu_per_node,
            "use_visualdl": use_visualdl,
            "save_inference": save_inference,
            "need_convert": need_convert,
            "timeout_minutes": timeout_minutes,
        },
    )


def modelhub(
    *,
    name: str | Channel,
    model_name: str | Channel,
    pvc_name: str | Channel,
    namespace: str | Channel = "kubeflow",
    action: str | Channel = "apply",
    endpoint: str | Channel | None = None,
    model_version: str | Channel | None = None,
    timeout_minutes: int | Channel | None = None,
) -> Any:
    """Uploads the model that the training step packed to the model store.

    Args:
        name: Name of the step's Job.
        model_name: Name of the model: the training step's name.
        pvc_name: Claim of the volume that the steps share.
        namespace: Namespace of the objects that the step creates.
        action: What is done to the objects: apply, create, patch or delete.
        endpoint: Address of the model store: an S3 server (http://… or https://…) or a folder (file://…).
        model_version: Version of the model.
        timeout_minutes: Minutes after which the step fails and removes what it started.

    Outputs: model_uri.
    """
    return task(
        "operator/modelhub",
        {
            "name": name,
            "model_name": model_name,
            "pvc_name": pvc_name,
            "namespace": namespace,
            "action": action,
            "endpoint": endpoint,
            "model_version": model_version,
            "timeout_minutes": timeout_minutes,
        },
    )


def serving(
    *,
    name: str | Channel,
    image: str | Channel,
    model_name: str | Channel,
    namespace: str | Channel = "kubeflow",
    action: str | Channel = "apply",
    model_version: str | Channel | None = None,
    endpoint: str | Channel | None = None,
    port: int | Channel | None = None,
    timeout_minutes: int | Channel | None = None,
) -> Any:
    """Serves a model of the model store as a PaddleService.

    Args:
        name: Name of the PaddleService.
        image: Image with Paddle Serving.
        model_name: Name of the model in the store.
        namespace: Namespace of the objects that the step creates.
        action: What is done to the objects: apply, create, patch or delete.
        model_version: Version of the model.
        endpoint: Address of the model store: an S3 server (http://… or https://…) or a folder (file://…).
        port: Port that the server listens on.
        timeout_minutes: Minutes after which the step fails and removes what it started.

    Outputs: url.
    """
    return task(
        "operator/serving",
        {
            "name": name,
            "image": image,
            "model_name": model_name,
            "namespace": namespace,
            "action": action,
            "model_version": model_version,
            "endpoint": endpoint,
            "port": port,
            "timeout_minutes": timeout_minutes,
        },
    )


def sampleset(
    *,
    name: str | Channel,
    namespace: str | Channel = "kubeflow",
    version: str | Channel = "v1alpha1",
    action: str | Channel = "apply",
    timeout_minutes: int | Channel | None = None,
    partitions: int | Channel = 1,
    source: dict[str, Any] | Channel | None = None,
    secret_ref: dict[str, Any] | Channel | None = None,
    no_sync: str | Channel = "true",
    csi: dict[str, Any] | Channel | None = None,
    cache: dict[str, Any] | Channel | None = None,
    node_affinity: dict[str, Any] | Channel | None = None,
) -> Any:
    """Creates a SampleSet and waits until it is ready.

    Args:
        name: Name of the SampleSet.
        namespace: Namespace of the SampleSet.
        version: API version of the SampleSet.
        action: What is done to the object: apply, create, patch or delete.
        timeout_minutes: Minutes after which the step fails and removes what it started.
        partitions: Number of cache nodes.
        source: Where the data is: uri and secretRef.
        secret_ref: Secret of the cache's file system.
        no_sync: Whether the data is in the file system already: true or false.
        csi: Driver and mount options.
        cache: Options of the cache.
        node_affinity: Nodes that may hold the cache.

    Outputs: .
    """
    return task(
        "launcher/sampleset",
        {
            "name": name,
            "namespace": namespace,
            "version": version,
            "action": action,
            "timeout_minutes": timeout_minutes,
            "partitions": partitions,
            "source": source,
            "secret_ref": secret_ref,
            "no_sync": no_sync,
            "csi": csi,
            "cache": cache,
            "node_affinity": node_affinity,
        },
    )


def visualdl(
    *,
    name: str | Channel,
    pvc_name: str | Channel,
    mount_path: str | Channel,
    logdir: str | Channel,
    namespace: str | Channel = "kubeflow",
    timeout_minutes: int | Channel | None = None,
    action: str | Channel = "apply",
    model: str | Channel | None = None,
    host: str | Channel | None = None,
    port: int | Channel | None = None,
    cache_timeout: int | Channel | None = None,
    language: str | Channel | None = None,
    public_path: str | Channel | None = None,
    api_only: str | Channel | None = None,
) -> Any:
    """Serves the curves of a training with VisualDL, as a Deployment and a Service.

    Args:
        name: Name of the Deployment and the Service.
        pvc_name: Claim of the volume with the logs.
        mount_path: Where the volume is mounted, such as /mnt/task-center/.
        logdir: Folders with logs, separated by commas.
        namespace: Namespace of the Deployment.
        timeout_minutes: Minutes after which the step fails and removes what it started.
        action: What is done to the object: apply, create, patch or delete.
        model: A model file whose graph is shown.
        host: Address it listens on in its pod; all of them by default.
        port: Port of the Service.
        cache_timeout: Seconds for which answers are cached.
        language: Language of the page: en or zh.
        public_path: URL path of the page.
        api_only: Whether only the API is served: true or false.

    Outputs: url.
    """
    return task(
        "launcher/visualdl",
        {
            "name": name,
            "pvc_name": pvc_name,
            "mount_path": mount_path,
            "logdir": logdir,
            "namespace": namespace,
            "timeout_minutes": timeout_minutes,
            "action": action,
            "model": model,
            "host": host,
            "port": port,
            "cache_timeout": cache_timeout,
            "language": language,
            "public_path": public_path,
            "api_only": api_only,
        },
    )


def program(
    *,
    name: str | Channel,
    image: str | Channel,
    command: str | Channel,
    pvc_name: str | Channel,
    namespace: str | Channel = "kubeflow",
    action: str | Channel = "apply",
    config: str | Channel | None = None,
    sampleset: str | Channel | None = None,
    workers: int | Channel | None = None,
    gpu_per_node: int | Channel | None = None,
    account: str | Channel | None = None,
    pattern: str | Channel | None = None,
    timeout_minutes: int | Channel | None = None,
) -> Any:
    """Runs a command in the image of a suite as a PaddleJob, and reads a value from its log.

    Args:
        name: Name of the PaddleJob.
        image: Image with the code of the suite.
        command: What bash runs.
        pvc_name: Claim of the volume that the steps share.
        namespace: Namespace of the objects that the step creates.
        action: What is done to the objects: apply, create, patch or delete.
        config: Content of a file that the command finds at $CONFIG.
        sampleset: Set of samples that is mounted at /data.
        workers: Number of workers.
        gpu_per_node: GPUs of each worker.
        account: Account of the pods, for commands that ask the API server.
        pattern: Regular expression with one group: what it matches last in the log is the value.
        timeout_minutes: Minutes after which the step fails and removes what it started.

    Outputs: value.
    """
    return task(
        "suite/program",
        {
            "name": name,
            "image": image,
            "command": command,
            "pvc_name": pvc_name,
            "namespace": namespace,
            "action": action,
            "config": config,
            "sampleset": sampleset,
            "workers": workers,
            "gpu_per_node": gpu_per_node,
            "account": account,
            "pattern": pattern,
            "timeout_minutes": timeout_minutes,
        },
    )


def model_service(
    *,
    name: str | Channel,
    model: str | Channel,
    namespace: str | Channel = "kubeflow",
    action: str | Channel = "apply",
    timeout_minutes: int | Channel | None = None,
) -> Any:
    """Serves a version of a model with this project's inference server, as a PaddleService.

    Args:
        name: Name of the PaddleService.
        model: NAME:VERSION or NAME@ALIAS.
        namespace: Namespace of the objects that the step creates.
        action: What is done to the objects: apply, create, patch or delete.
        timeout_minutes: Minutes after which the step fails and removes what it started.

    Outputs: url.
    """
    return task(
        "suite/model_service",
        {
            "name": name,
            "model": model,
            "namespace": namespace,
            "action": action,
            "timeout_minutes": timeout_minutes,
        },
    )
