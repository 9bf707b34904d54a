"""The components of `suite/`: what workflows of Paddle's model suites are written with (`pdc suite init`).

They have no originals. The pipeline's author writes the suite's own command lines; a component runs them where the data
and the shared volume are mounted, as a PaddleJob, and reads a value from the log, such as a metric.
"""

from __future__ import annotations

from paddlecloud.pipelines.components.declaration import Component, Input, Output
from paddlecloud.pipelines.components.operator_set import ACTION, CLAIM, NAMESPACE, TIMEOUT

DATA = "/data"
"""Where programs find the samples."""

PROGRAM = Component(
    "suite",
    "program",
    "Suite Program",
    "Runs a command in the image of a suite as a PaddleJob, and reads a value from its log.",
    "在套件镜像中以 PaddleJob 运行一条命令，并从日志中读取一个值。",
    (
        Input("Name", "String", "Name of the PaddleJob.", "PaddleJob 的名称"),
        NAMESPACE,
        ACTION,
        Input("Image", "String", "Image with the code of the suite.", "包含套件代码的镜像"),
        Input("Command", "String", "What bash runs.", "由 bash 运行的命令"),
        CLAIM,
        Input(
            "Config",
            "String",
            "Content of a file that the command finds at $CONFIG.",
            "文件内容，命令中以 $CONFIG 引用该文件",
            optional=True,
        ),
        Input(
            "SampleSet",
            "String",
            f"Set of samples that is mounted at {DATA}.",
            f"挂载到 {DATA} 的样本集",
            optional=True,
        ),
        Input("Workers", "Integer", "Number of workers.", "Worker 并行度", optional=True, absent=1),
        Input("GPU Per Node", "Integer", "GPUs of each worker.", "每个 Worker 的 GPU 个数", optional=True, absent=0),
        Input(
            "Account",
            "String",
            "Account of the pods, for commands that ask the API server.",
            "Pod 的服务账号，供需要访问 API 服务器的命令使用",
            optional=True,
        ),
        Input(
            "Pattern",
            "String",
            "Regular expression with one group: what it matches last in the log is the value.",
            "含一个分组的正则表达式：日志中最后一次匹配的内容即为该值",
            optional=True,
        ),
        TIMEOUT,
    ),
    (Output("Value", "String", "What the pattern matched last.", "正则表达式最后一次匹配的内容"),),
)

MODEL_SERVICE = Component(
    "suite",
    "model_service",
    "Model Service",
    "Serves a version of a model with this project's inference server, as a PaddleService.",
    "用本项目的推理服务器把模型的一个版本部署为 PaddleService。",
    (
        Input("Name", "String", "Name of the PaddleService.", "PaddleService 的名称"),
        NAMESPACE,
        ACTION,
        Input("Model", "String", "NAME:VERSION or NAME@ALIAS.", "NAME:VERSION 或 NAME@ALIAS"),
        TIMEOUT,
    ),
    (Output("Url", "String", "Address of the service.", "服务的地址"),),
)

SUITE_SET = (PROGRAM, MODEL_SERVICE)
