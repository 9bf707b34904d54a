"""PaddleCloud: PaddlePaddle end to end on Kubernetes, and on one machine with the same API.

    import paddlecloud as pc

    client = pc.connect()                          # the cluster of your kubeconfig
    job = client.jobs.run("train.py", workers=4)
    for line in job.logs(follow=True):
        print(line)

`pc.embedded()` brings up a platform of one's own. Importing this package costs nothing: what it offers is loaded when
it is first used (docs/sdk.md).
"""

from __future__ import annotations

__version__ = "0.1.0"

_PUBLIC = {  # __init__.pyi says the same to type checkers
    "AsyncClient": "paddlecloud.sdk.core",
    "connect_async": "paddlecloud.sdk.core",
    "EmbeddedClient": "paddlecloud.sdk.embedded",
    "embedded": "paddlecloud.sdk.embedded",
    "ArgumentError": "paddlecloud.sdk.checking",
    "JobFailed": "paddlecloud.sdk.handles",
    "MetricsError": "paddlecloud.sdk.metrics",
    "NotServed": "paddlecloud.sdk.serving",
    "TrainingError": "paddlecloud.sdk.training",
    "Client": "paddlecloud.sdk.sync",
    "Job": "paddlecloud.sdk.sync_handles",
    "Service": "paddlecloud.sdk.sync_handles",
    "connect": "paddlecloud.sdk.sync",
    "pipelines": "paddlecloud",  # a package: imported, not looked up
}

__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str) -> object:
    from importlib import import_module

    if _PUBLIC.get(name) == __name__:
        return import_module(f"{__name__}.{name}")
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
