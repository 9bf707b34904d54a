"""Everything of kfp-kubernetes and the settings of tasks: resources, environment, time-outs, caching."""

from kfp import dsl, kubernetes


@dsl.container_component
def work():
    return dsl.ContainerSpec(image="busybox:1.36", command=["true"])


@dsl.pipeline(name="placement")
def pipeline(claim: str = "given", node: str = "n1"):
    made = kubernetes.CreatePVC(
        pvc_name_suffix="-data", access_modes=["ReadWriteOnce"], size="50Mi", storage_class_name="standard"
    )
    task = work()
    task.set_cpu_request("1").set_cpu_limit("2").set_memory_request("1G").set_memory_limit("2Gi")
    task.set_accelerator_type("nvidia.com/gpu").set_accelerator_limit(1)
    task.set_env_variable("COLOUR", "red")
    task.set_caching_options(False)
    task.set_display_name("the work")
    kubernetes.mount_pvc(task, pvc_name=made.outputs["name"], mount_path="/data")
    kubernetes.mount_pvc(task, pvc_name=claim, mount_path="/given", sub_path="inner")
    kubernetes.use_secret_as_env(task, secret_name="pass", secret_key_to_env={"password": "PASSWORD"})
    kubernetes.use_secret_as_volume(task, secret_name="pass", mount_path="/pass", optional=True)
    kubernetes.use_config_map_as_env(task, config_map_name="words", config_map_key_to_env={"one": "ONE"})
    kubernetes.use_config_map_as_volume(task, config_map_name="words", mount_path="/words")
    kubernetes.use_field_path_as_env(task, env_name="NODE", field_path="spec.nodeName")
    kubernetes.add_node_selector(task, "disk", "ssd")
    kubernetes.add_toleration(task, key="gpu", operator="Exists", effect="NoSchedule")
    kubernetes.add_node_affinity(task, match_expressions=[{"key": "zone", "operator": "In", "values": ["a"]}])
    kubernetes.set_image_pull_secrets(task, ["registry"])
    kubernetes.set_image_pull_policy(task, "Always")
    kubernetes.add_pod_label(task, "team", "red")
    kubernetes.add_pod_annotation(task, "note", "long text")
    kubernetes.set_timeout(task, 60)
    kubernetes.empty_dir_mount(task, volume_name="scratch", mount_path="/scratch", medium="Memory", size_limit="1Gi")
    kubernetes.add_ephemeral_volume(
        task,
        volume_name="eph",
        mount_path="/eph",
        access_modes=["ReadWriteOnce"],
        size="1Gi",
        storage_class_name="standard",
    )
    kubernetes.set_security_context(task, run_as_user=1000) if hasattr(kubernetes, "set_security_context") else None
    last = kubernetes.DeletePVC(pvc_name=made.outputs["name"]).after(task)
    del last
