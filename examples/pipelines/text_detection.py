"""The manual's text-detection pipeline, written for kfp 2: data, training, model store, service.

    pip install kfp kfp-kubernetes paddlecloud
    python text_detection.py

compiles it to text_detection.yaml. `kfp.Client(host=...)` of kfp 2 submits that file.
"""

from kfp import compiler, dsl
from kfp import kubernetes as volumes

from paddlecloud.pipelines import dataset, modelhub, serving, training

MODEL = "ppocr-det"


@dsl.pipeline(name="text-detection")
def text_detection(epochs: int = 10, gpus: int = 1):
    claim = volumes.CreatePVC(
        pvc_name_suffix="-text-detection",
        access_modes=["ReadWriteMany"],
        size="10Gi",
        storage_class_name="task-center",
    )
    samples = dataset(
        name="icdar2015",
        source_uri="bos://paddleflow-public.hkg.bcebos.com/icdar2015/",
        source_secret="none",
    )
    trained = training(
        name=MODEL,
        dataset=samples.outputs["dataset"],
        project="PaddleOCR",
        worker_replicas=1,
        gpu_per_node=gpus,
        use_visualdl=True,
        train_label="train_icdar2015_label.txt",
        test_label="test_icdar2015_label.txt",
        config_path="configs/det/det_mv3_db.yml",
        config_changes=f"Global.epoch_num={epochs}",
        pvc_name=claim.outputs["name"],
        image="registry.baidubce.com/paddleflow-public/paddleocr:2.1.3-gpu-cuda10.2-cudnn7",
    )
    stored = modelhub(name=MODEL, model_name=MODEL, pvc_name=claim.outputs["name"])
    stored.after(trained)
    served = serving(
        name=MODEL,
        model_name=MODEL,
        image="registry.baidubce.com/paddleflow-public/serving:v0.6.2",
    )
    served.after(stored)
    for task in (samples, trained, stored, served):
        task.set_caching_options(False)  # each acts on the cluster, which a cached result would not


if __name__ == "__main__":
    compiler.Compiler().compile(text_detection, "text_detection.yaml")
