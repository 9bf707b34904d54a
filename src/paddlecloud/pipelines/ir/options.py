"""What the administrator decides about all pipelines."""

from __future__ import annotations

import msgspec


class PipelineOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The defaults suit Argo with an artifact repository on S3, as the embedded platform has one."""

    store: str = "s3"
    """The kind of Argo's artifact repository: the field of an artifact that takes a `key` (s3, gcs, oss, azure)."""
    bucket: str = ""
    """Of that repository, for the URIs of artifacts; Argo itself needs only their keys."""
    prefix: str = "pipelines"
    """Keys of artifacts begin with it."""
    cache: bool = True
    """Whether steps that allow it are answered from earlier runs."""
