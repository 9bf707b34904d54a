"""The names that `__init__.py` loads when they are first used, for type checkers and editors."""

from paddlecloud import pipelines as pipelines
from paddlecloud.sdk.checking import ArgumentError as ArgumentError
from paddlecloud.sdk.core import AsyncClient as AsyncClient
from paddlecloud.sdk.core import connect_async as connect_async
from paddlecloud.sdk.embedded import EmbeddedClient as EmbeddedClient
from paddlecloud.sdk.embedded import embedded as embedded
from paddlecloud.sdk.handles import JobFailed as JobFailed
from paddlecloud.sdk.metrics import MetricsError as MetricsError
from paddlecloud.sdk.serving import NotServed as NotServed
from paddlecloud.sdk.sync import Client as Client
from paddlecloud.sdk.sync import connect as connect
from paddlecloud.sdk.sync_handles import Job as Job
from paddlecloud.sdk.sync_handles import Service as Service
from paddlecloud.sdk.training import TrainingError as TrainingError

__all__ = [
    "ArgumentError",
    "AsyncClient",
    "Client",
    "EmbeddedClient",
    "Job",
    "JobFailed",
    "MetricsError",
    "NotServed",
    "Service",
    "TrainingError",
    "__version__",
    "connect",
    "connect_async",
    "embedded",
    "pipelines",
]
__version__: str
