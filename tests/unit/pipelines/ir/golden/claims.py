"""A claim that the pipeline makes, uses in two steps and deletes."""

from kfp import dsl, kubernetes


@dsl.container_component
def keep(text: str):
    return dsl.ContainerSpec(image="busybox:1.36", command=["sh", "-c", 'echo "$0" > /kept/file', text])


@dsl.container_component
def show(out: dsl.OutputPath(str)):
    return dsl.ContainerSpec(image="busybox:1.36", command=["sh", "-c", 'cat /kept/file > "$0"', out])


@dsl.pipeline(name="claims")
def pipeline(text: str = "kept text", storage_class: str = "local") -> str:
    made = kubernetes.CreatePVC(
        pvc_name_suffix="-data", access_modes=["ReadWriteOnce"], size="1Mi", storage_class_name=storage_class
    )
    first = keep(text=text)
    kubernetes.mount_pvc(first, pvc_name=made.outputs["name"], mount_path="/kept")
    second = show().after(first)
    kubernetes.mount_pvc(second, pvc_name=made.outputs["name"], mount_path="/kept")
    kubernetes.DeletePVC(pvc_name=made.outputs["name"]).after(second)
    return second.outputs["out"]
