"""Secrets, config maps, claims that exist, environment and labels in one step that prints what it finds."""

from kfp import dsl, kubernetes

SCRIPT = (
    'mkdir -p "$(dirname "$0")"; '
    'echo "$COLOUR $PASSWORD $WORD $TEAM $(cat /pass/password) $(cat /words/one) $(cat /kept/file)" > "$0"; '
    'echo scratch > /scratch/x && cat /scratch/x >> "$0"'
)


@dsl.container_component
def show(out: dsl.OutputPath(str)):
    return dsl.ContainerSpec(image="busybox:1.36", command=["sh", "-c", SCRIPT, out])


@dsl.container_component
def keep(text: str):
    return dsl.ContainerSpec(image="busybox:1.36", command=["sh", "-c", 'echo "$0" > /kept/file', text])


@dsl.pipeline(name="mounts")
def pipeline(secret: str = "pass", claim: str = "kept") -> str:
    first = keep(text="kept text")
    kubernetes.mount_pvc(first, pvc_name=claim, mount_path="/kept")
    task = show().after(first)
    task.set_env_variable("COLOUR", "red")
    kubernetes.mount_pvc(task, pvc_name=claim, mount_path="/kept")
    kubernetes.use_secret_as_env(task, secret_name=secret, secret_key_to_env={"password": "PASSWORD"})
    kubernetes.use_secret_as_volume(task, secret_name=secret, mount_path="/pass")
    kubernetes.use_config_map_as_env(task, config_map_name="words", config_map_key_to_env={"one": "WORD"})
    kubernetes.use_config_map_as_volume(task, config_map_name="words", mount_path="/words")
    kubernetes.add_pod_label(task, "team", "blue")
    kubernetes.use_field_path_as_env(task, env_name="TEAM", field_path="metadata.labels['team']")
    kubernetes.empty_dir_mount(task, volume_name="scratch", mount_path="/scratch")
    kubernetes.set_image_pull_secrets(task, ["registry"])
    kubernetes.set_timeout(task, 100)
    return task.outputs["out"]
