"""The components of `launcher/`: each creates one object, or does one thing on a shared volume.

Inputs, defaults and flags are the original's; the flags are in camel case. `configure`, `converter` and `uploader` had
inputs without a type, which kfp 2 reads as artifacts: they are texts now.
"""

from __future__ import annotations

from paddlecloud.pipelines.components.declaration import Component, Default, Input, Output

DAY_MINUTES = 24 * 60


def _name(kind: str) -> Input:
    return Input("name", "String", f"Name of the {kind}.", f"{kind} 的名称")


def _namespace(kind: str) -> Input:
    return Input("namespace", "String", f"Namespace of the {kind}.", f"{kind} 的命名空间", default="kubeflow")


def _version(kind: str, default: str) -> Input:
    return Input("version", "String", f"API version of the {kind}.", f"{kind} 的 API 版本", default=default)


def _action(default: str, *, name: str = "action") -> Input:
    return Input(
        name,
        "String",
        "What is done to the object: apply, create, patch or delete.",
        "对该对象的操作：apply、create、patch 或 delete",
        flag="--action",
        default=default,
    )


def _timeout(*, name: str = "timeout_minutes") -> Input:
    return Input(
        name,
        "Integer",
        "Minutes after which the step fails and removes what it started.",
        "超过该分钟数后步骤失败，并清理它启动的对象",
        flag="--timeoutMinutes",
        optional=True,
        absent=DAY_MINUTES,
    )


def _json(name: str, flag: str, doc: str, zh: str, *, optional: bool = True, array: bool = False) -> Input:
    return Input(name, "JsonArray" if array else "JsonObject", doc, zh, flag=flag, optional=optional)


def _text(
    name: str, doc: str, zh: str, *, flag: str = "", absent: Default | None = None, optional: bool = True
) -> Input:
    return Input(name, "String", doc, zh, flag=flag, optional=optional, absent=absent)


def _delete_after_done(kind: str) -> Input:
    return Input(
        "delete_after_done",
        "Boolean",
        f"Delete the {kind} once it has succeeded.",
        f"{kind} 成功后将其删除",
        flag="--deleteAfterDone",
        optional=True,
        absent=False,
    )


SAMPLESET = Component(
    "launcher",
    "sampleset",
    "SampleSet",
    "Creates a SampleSet and waits until it is ready.",
    "创建 SampleSet 并等待其就绪。",
    (
        _name("SampleSet"),
        _namespace("SampleSet"),
        _version("SampleSet", "v1alpha1"),
        _action("apply"),
        _timeout(),
        Input("partitions", "Integer", "Number of cache nodes.", "缓存分区数（节点数）", default=1),
        _json("source", "--source", "Where the data is: uri and secretRef.", "数据源：uri 与 secretRef"),
        _json("secret_ref", "--secretRef", "Secret of the cache's file system.", "缓存文件系统的 Secret"),
        Input(
            "no_sync",
            "String",
            "Whether the data is in the file system already: true or false.",
            "数据是否已在文件系统中：true 或 false",
            flag="--noSync",
            default="true",
        ),
        _json("csi", "--csi", "Driver and mount options.", "驱动与挂载选项"),
        _json("cache", "--cache", "Options of the cache.", "缓存选项"),
        _json("node_affinity", "--nodeAffinity", "Nodes that may hold the cache.", "可用于缓存的节点"),
    ),
)

SAMPLEJOB = Component(
    "launcher",
    "samplejob",
    "SampleJob",
    "Runs a SampleJob on a SampleSet and waits until it has succeeded.",
    "在 SampleSet 上运行 SampleJob 并等待其成功。",
    (
        _name("SampleJob"),
        _namespace("SampleJob"),
        _version("SampleJob", "v1alpha1"),
        _action("create"),
        _timeout(),
        _delete_after_done("SampleJob"),
        _text(
            "type", "Kind of work: sync, warmup, rmr or clear.", "任务类型：sync、warmup、rmr 或 clear", optional=False
        ),
        _json("sampleset_ref", "--sampleSetRef", "The SampleSet: its name.", "所引用的 SampleSet", optional=False),
        _json("secret_ref", "--secretRef", "Secret of the source, for sync.", "同步任务的数据源 Secret"),
        Input(
            "terminate",
            "Boolean",
            "End other jobs that wait on the cache servers.",
            "终止缓存服务器上排队的其他任务",
            optional=True,
            absent=False,
        ),
        _json(
            "job_options",
            "--jobOptions",
            "More fields of the spec, such as syncOptions.",
            "spec 的其他字段，如 syncOptions",
        ),
    ),
)

PADDLEJOB = Component(
    "launcher",
    "paddlejob",
    "PaddleJob",
    "Runs a PaddleJob and waits until it has succeeded.",
    "运行 PaddleJob 并等待其成功。",
    (
        _name("PaddleJob"),
        _namespace("PaddleJob"),
        _version("PaddleJob", "v1"),
        _action("create"),
        _timeout(),
        _delete_after_done("PaddleJob"),
        _text(
            "clean_pod_policy", "When pods are removed.", "何时清理 Pod", flag="--cleanPodPolicy", absent="OnCompletion"
        ),
        _json("scheduling_policy", "--schedulingPolicy", "Queue and gang of the job.", "调度队列与组调度"),
        _text(
            "intranet",
            "How pods reach each other: PodIP, Service or Host.",
            "Pod 间通信方式：PodIP、Service 或 Host",
            absent="PodIP",
        ),
        Input(
            "with_gloo",
            "Integer",
            "Gloo: 0 off, 1 workers, 2 servers too.",
            "Gloo：0 关闭，1 仅 Worker，2 包括服务器",
            flag="--withGloo",
            optional=True,
            absent=1,
        ),
        _json(
            "sampleset_ref",
            "--sampleSetRef",
            "SampleSet of the workers and where it is mounted.",
            "Worker 使用的 SampleSet 及挂载路径",
        ),
        _json("ps_spec", "--ps", "Parameter servers: replicas and template.", "参数服务器：replicas 与 template"),
        _json(
            "worker_spec", "--worker", "Workers: replicas and template.", "Worker：replicas 与 template", optional=False
        ),
        _json(
            "heter_spec",
            "--heter",
            "Heterogeneous workers: replicas and template.",
            "异构 Worker：replicas 与 template",
        ),
        Input("elastic", "Integer", "Elastic level, above 0.", "弹性级别，大于 0 时有效", optional=True, absent=0),
    ),
)

SERVING = Component(
    "launcher",
    "serving",
    "ElasticServing",
    "Deploys a PaddleService and waits until it is ready.",
    "部署 PaddleService 并等待其就绪。",
    (
        _name("PaddleService"),
        _namespace("PaddleService"),
        _version("PaddleService", "v1"),
        _timeout(name="Timeout Minutes"),
        _action("create", name="Action"),
        Input(
            "Runtime Version",
            "String",
            "Name of the container.",
            "容器名称",
            flag="--runtimeVersion",
            default="paddleserving",
        ),
        _json("Resources", "--resources", "Requests and limits.", "资源请求与上限"),
        _json("Default", "--default", "The endpoint that gets the traffic.", "默认版本", optional=False),
        _json("Canary", "--canary", "A second endpoint that gets a share of it.", "金丝雀版本"),
        Input(
            "Canary Traffic Percent",
            "Integer",
            "Share of the canary; 0 leaves it to the service's default.",
            "金丝雀流量百分比；0 表示使用默认值",
            flag="--canaryTrafficPercent",
            optional=True,
            absent=0,
        ),
        _json("Service", "--service", "How the service scales.", "扩缩容配置"),
        _text("WorkingDir", "Directory the server starts in.", "工作目录", flag="--workingDir"),
        _json("VolumeMounts", "--volumeMounts", "Mounts of the container.", "容器挂载", array=True),
        _json("Volumes", "--volumes", "Volumes of the pod.", "Pod 存储卷", array=True),
    ),
    (
        Output(
            "Output Path",
            "JsonObject",
            "The PaddleService as it is when ready.",
            "就绪后的 PaddleService",
            flag="--outputPath",
        ),
    ),
    program="elasticserving",
)

VISUALDL = Component(
    "launcher",
    "visualdl",
    "VisualDL",
    "Serves the curves of a training with VisualDL, as a Deployment and a Service.",
    "以 Deployment 和 Service 部署 VisualDL，展示训练曲线。",
    (
        _name("Deployment and the Service"),
        _namespace("Deployment"),
        _timeout(name="Timeout Minutes"),
        _action("apply", name="Action"),
        Input("PVC Name", "String", "Claim of the volume with the logs.", "日志所在共享盘的 PVC 名称"),
        Input(
            "Mount Path",
            "String",
            "Where the volume is mounted, such as /mnt/task-center/.",
            "共享盘的挂载路径，如 /mnt/task-center/",
        ),
        Input("Logdir", "String", "Folders with logs, separated by commas.", "日志目录，多个以逗号分隔"),
        _text("Model", "A model file whose graph is shown.", "要展示网络结构的模型文件"),
        _text(
            "Host", "Address it listens on in its pod; all of them by default.", "在 Pod 内监听的地址，默认监听所有地址"
        ),
        Input("Port", "Integer", "Port of the Service.", "Service 的端口", optional=True, absent=8040),
        Input("Cache Timeout", "Integer", "Seconds for which answers are cached.", "后端缓存时间（秒）", optional=True),
        _text("Language", "Language of the page: en or zh.", "页面语言：en 或 zh"),
        _text("Public Path", "URL path of the page.", "页面的 URL 路径"),
        _text("Api Only", "Whether only the API is served: true or false.", "是否只提供 API：true 或 false"),
    ),
    (Output("Url", "String", "Address of VisualDL inside the cluster.", "VisualDL 在集群内的地址"),),
)

CONFIGURE = Component(
    "launcher",
    "configure",
    "Write Config File",
    "Writes a file on the shared volume.",
    "在共享盘上写入一个文件。",
    (
        Input("path", "String", "Folder of the file, on a mounted volume.", "文件所在目录（已挂载的共享盘）"),
        Input("filename", "String", "Name of the file.", "文件名"),
        Input("content", "String", "Content of the file.", "文件内容"),
    ),
)

CONVERTER = Component(
    "launcher",
    "converter",
    "Model Converter",
    "Converts an exported model for Paddle Serving and packs it as MODEL_NAME.tar.gz.",
    "把导出的模型转换为 Paddle Serving 的格式，并打包为 MODEL_NAME.tar.gz。",
    (
        Input("mount_path", "String", "Folder of the shared volume.", "共享盘的挂载目录"),
        Input("model_name", "String", "Name of the model.", "模型名称"),
        Input("dirname", "String", "Folder with the exported model.", "导出模型所在目录"),
        Input("pdmodel", "String", "File name of the network.", "网络结构文件名"),
        Input("pdiparams", "String", "File name of the weights.", "权重文件名"),
    ),
    image="registry.baidubce.com/paddleflow-public/serving:v0.6.2",
)

UPLOADER = Component(
    "launcher",
    "uploader",
    "Model Uploader",
    "Uploads a packed model to the model store. Keys: MINIO_ACCESS_KEY and MINIO_SECRET_KEY in the environment.",
    "把打包的模型上传到模型中心。密钥取自环境变量 MINIO_ACCESS_KEY 与 MINIO_SECRET_KEY。",
    (
        Input(
            "endpoint",
            "String",
            "Address of the model store: http://…, https://… or file://…",
            "模型中心的地址：http://…、https://… 或 file://…",
        ),
        Input("model_file", "String", "The packed model, on a mounted volume.", "打包的模型文件（已挂载的共享盘）"),
        Input("model_name", "String", "Name of the model.", "模型名称"),
        Input("version", "String", "Version of the model.", "模型版本"),
    ),
    (Output("Model Uri", "String", "Where the model lies in the store.", "模型在模型中心中的地址"),),
)

LAUNCHER_SET = (SAMPLESET, SAMPLEJOB, PADDLEJOB, SERVING, VISUALDL, CONFIGURE, CONVERTER, UPLOADER)
