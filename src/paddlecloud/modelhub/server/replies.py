"""What the server answers when it refuses: a status, a reason that a program can match, and a sentence. Pure."""

from __future__ import annotations

from typing import Any, NamedTuple

from paddlecloud.api.model.reference import BadReference
from paddlecloud.kube import errors as kube
from paddlecloud.kube.server.request_limits import CallerLimitReached, NoRoom
from paddlecloud.modelhub.errors import HubError
from paddlecloud.modelhub.received import MissingFiles, WrongOffset
from paddlecloud.storage.errors import StorageError

NO_CREDENTIALS = (
    "this needs a token of Kubernetes or a read grant, as `Authorization: Bearer TOKEN`; "
    "`kubectl create token ACCOUNT` makes one"
)
_HUB = {"NotFound": 404, "AlreadyExists": 409, "MissingFiles": 409, "WrongOffset": 409, "Invalid": 400}
_STORE = {"NoSpace": 507, "Unreachable": 503, "AccessDenied": 503, "NotFound": 503}


class Answered(Exception):
    """Raised where a request is refused; becomes the answer."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status, self.reason, self.message = status, reason, message


class HubRefusal(NamedTuple):
    status: int
    body: dict[str, Any]


def refusal(error: Exception) -> HubRefusal | None:
    """The answer to a failure that was foreseen; None for all others."""
    if isinstance(error, Answered):
        return _made(error.status, error.reason, error.message)
    if isinstance(error, BadReference):
        return _made(400, "Invalid", str(error))
    if isinstance(error, CallerLimitReached):
        return _made(429, "TooManyRequests", str(error))
    if isinstance(error, NoRoom):
        return _made(503, "Unreachable", str(error))
    if isinstance(error, HubError):
        found = _made(_HUB.get(error.reason, 500), error.reason, str(error))
        if isinstance(error, MissingFiles):
            found.body["missing"] = error.digests
        if isinstance(error, WrongOffset):
            found.body["offset"] = error.offset
        return found
    if isinstance(error, StorageError):
        return _made(_STORE.get(error.reason, 500), error.reason, f"the store of models: {error}")
    if isinstance(error, kube.Unreachable):
        return _made(503, "Unreachable", f"the Kubernetes API does not answer: {error.message}")
    if isinstance(error, kube.ApiError):
        status = error.code if error.code in (400, 401, 403, 404, 409, 429) else 502
        return _made(status, error.reason, error.message)
    return None


def _made(status: int, reason: str, message: str) -> HubRefusal:
    return HubRefusal(status, {"reason": reason, "message": message})
