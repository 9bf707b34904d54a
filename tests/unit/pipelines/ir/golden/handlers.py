"""An exit handler that reads the final status, a task that runs in spite of failures, retries."""

from kfp import dsl
from kfp.dsl import PipelineTaskFinalStatus

python = dsl.component(base_image="paddlecloud/kfp:2", install_kfp_package=False)


@python
def finish(note: str, status: PipelineTaskFinalStatus):
    print(note, status.state, status.pipeline_task_name, status.pipeline_job_resource_name, status.error_message)


@python
def work(fail: bool) -> str:
    if fail:
        raise RuntimeError("asked to fail")
    return "done"


@python
def after(text: str = "default"):
    print("after", text)


@dsl.pipeline(name="handlers")
def pipeline(fail: bool = False, note: str = "note"):
    last = finish(note=note)
    with dsl.ExitHandler(last, name="guarded"):
        worked = work(fail=fail)
        worked.set_retry(num_retries=2, backoff_duration="1s", backoff_factor=2, backoff_max_duration="120s")
        after(text=worked.output).ignore_upstream_failure()
