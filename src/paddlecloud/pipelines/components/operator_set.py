"""The components of `operator/`, which the manual's demo is written with: dataset, training, modelhub, serving.

Inputs and defaults are the original's. Time-outs and outputs are new and optional, so pipelines written for the
original load unchanged. The manual's text calls 8040 the default port of `serving`; the program's was always 9292.
"""

from __future__ import annotations

from paddlecloud.pipelines.components.declaration import Component, Input, Output

ENDPOINT = "http://minio-service.kubeflow:9000"
YEAR_MINUTES = 365 * 24 * 60
"""As the original: in effect no limit."""

NAMESPACE = Input(
    "Namespace",
    "String",
    "Namespace of the objects that the step creates.",
    "该步骤所创建对象的命名空间",
    default="kubeflow",
)
ACTION = Input(
    "Action",
    "String",
    "What is done to the objects: apply, create, patch or delete.",
    "对相关对象的操作：apply、create、patch 或 delete",
    default="apply",
)
TIMEOUT = Input(
    "Timeout Minutes",
    "Integer",
    "Minutes after which the step fails and removes what it started.",
    "超过该分钟数后步骤失败，并清理它启动的对象",
    optional=True,
    absent=YEAR_MINUTES,
)
MODEL_ENDPOINT = Input(
    "Endpoint",
    "String",
    "Address of the model store: an S3 server (http://… or https://…) or a folder (file://…).",
    "模型中心的地址：S3 服务（http://… 或 https://…）或目录（file://…）",
    optional=True,
    absent=ENDPOINT,
)
CLAIM = Input(
    "PVC Name",
    "String",
    "Claim of the volume that the steps share.",
    "工作流共享盘的 PVC 名称",
)

DATASET = Component(
    "operator",
    "dataset",
    "Dataset",
    "Copies sample data into the shared sample set data-center and warms its cache.",
    "把样本数据同步到共享样本集 data-center，并预热缓存。",
    (
        Input(
            "Name",
            "String",
            "Name of the data set, and its folder in data-center.",
            "样本数据的名称，也是它在 data-center 中的目录",
        ),
        NAMESPACE,
        ACTION,
        Input(
            "Partitions",
            "Integer",
            "Number of cache nodes, used when data-center does not exist yet.",
            "缓存分区数（节点数），仅在 data-center 尚不存在时使用",
            default=1,
        ),
        Input(
            "Source Uri",
            "String",
            "Where the data is, such as bos://bucket/folder/.",
            "样本数据的存储地址，如 bos://bucket/folder/",
        ),
        Input("Source Secret", "String", "Secret with the keys of the source.", "数据源访问密钥的 Secret 名称"),
        TIMEOUT,
    ),
    (Output("Dataset", "String", "Name of the data set, for the training step.", "样本数据的名称，供训练步骤使用"),),
)

TRAINING = Component(
    "operator",
    "training",
    "Training",
    "Trains a model of a Paddle suite as a PaddleJob, exports the trained weights and packs them for Paddle Serving.",
    "以 PaddleJob 训练飞桨套件的模型，导出训练得到的权重，并打包为 Paddle Serving 可用的格式。",
    (
        Input("Name", "String", "Name of the job and of the model.", "任务名称，也是模型名称"),
        NAMESPACE,
        ACTION,
        Input("Project", "String", "Paddle suite in the image: PaddleOCR.", "镜像中的飞桨套件：PaddleOCR"),
        Input("Image", "String", "Image with the code of the suite.", "包含套件代码的镜像"),
        Input(
            "Config Path",
            "String",
            "Model configuration, relative to the suite's folder.",
            "模型配置文件在套件中的相对路径",
        ),
        Input(
            "Config Changes",
            "String",
            "Changes of the configuration: KEY=VALUE, separated by commas.",
            "对配置的修改：KEY=VALUE，以逗号分隔",
            optional=True,
        ),
        Input(
            "Pretrain Model",
            "String",
            "URL of the weights that training begins with.",
            "预训练权重的 URL",
            optional=True,
        ),
        Input(
            "Dataset",
            "String",
            "Name of a data set that the dataset component prepared.",
            "由 dataset 组件准备的样本数据的名称",
        ),
        Input(
            "Train Label",
            "String",
            "Label file for training, in the data set's folder.",
            "训练集标签文件名",
            optional=True,
        ),
        Input(
            "Test Label",
            "String",
            "Label file for evaluation, in the data set's folder.",
            "测试集标签文件名",
            optional=True,
        ),
        CLAIM,
        Input("Worker Replicas", "Integer", "Number of workers.", "Worker 并行度"),
        Input("PS Replicas", "Integer", "Number of parameter servers.", "参数服务器并行度", optional=True, absent=0),
        Input("GPU Per Node", "Integer", "GPUs of each worker.", "每个 Worker 的 GPU 个数", optional=True, absent=0),
        Input(
            "Use VisualDL",
            "Boolean",
            "Serve the training's curves with VisualDL at the Service NAME-visualdl:8040; takes one worker.",
            "以 VisualDL 展示训练曲线（Service NAME-visualdl:8040）；要求只有一个 Worker",
            optional=True,
            absent=False,
        ),
        Input(
            "Save Inference",
            "Boolean",
            "Export the trained model for inference.",
            "导出推理模型",
            optional=True,
            absent=True,
        ),
        Input(
            "Need Convert",
            "Boolean",
            "Pack the exported model for Paddle Serving.",
            "打包为 Paddle Serving 的格式",
            optional=True,
            absent=True,
        ),
        TIMEOUT,
    ),
    (Output("Model Path", "String", "Path of the packed model on the shared volume.", "打包后的模型在共享盘上的路径"),),
)

MODELHUB = Component(
    "operator",
    "modelhub",
    "ModelHub",
    "Uploads the model that the training step packed to the model store.",
    "把训练步骤打包的模型上传到模型中心。",
    (
        Input("Name", "String", "Name of the step's Job.", "该步骤的 Job 名称"),
        NAMESPACE,
        ACTION,
        MODEL_ENDPOINT,
        Input("Model Name", "String", "Name of the model: the training step's name.", "模型名称，与训练步骤的名称一致"),
        Input("Model Version", "String", "Version of the model.", "模型版本", optional=True, absent="latest"),
        CLAIM,
        TIMEOUT,
    ),
    (Output("Model Uri", "String", "Where the model lies in the store.", "模型在模型中心中的地址"),),
)

SERVING = Component(
    "operator",
    "serving",
    "Serving",
    "Serves a model of the model store as a PaddleService.",
    "以 PaddleService 部署模型中心中的模型。",
    (
        Input("Name", "String", "Name of the PaddleService.", "PaddleService 的名称"),
        NAMESPACE,
        ACTION,
        Input("Image", "String", "Image with Paddle Serving.", "包含 Paddle Serving 的镜像"),
        Input("Model Name", "String", "Name of the model in the store.", "模型名称"),
        Input("Model Version", "String", "Version of the model.", "模型版本", optional=True, absent="latest"),
        MODEL_ENDPOINT,
        Input("Port", "Integer", "Port that the server listens on.", "服务监听的端口", optional=True, absent=9292),
        TIMEOUT,
    ),
    (Output("Url", "String", "Address of the service.", "服务的地址"),),
)

OPERATOR_SET = (DATASET, TRAINING, MODELHUB, SERVING)
