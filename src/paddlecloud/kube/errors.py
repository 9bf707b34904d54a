"""Errors of the Kubernetes API, one class per Status reason.

Both sides use them: the client raises what a server answered, the embedded API server raises what it will answer.
`code` and `reason` are what programs match on; `message` is for people and says what to do next where it can.
"""

from __future__ import annotations

from typing import Any, ClassVar


class ApiError(Exception):
    """A request refused with a `Status`. Subclasses fix code and reason; unknown reasons stay `ApiError`."""

    code: int = 500
    reason: str = "InternalError"
    describes: ClassVar[bool] = False
    """Whether a Status of this reason always has `details`, be they empty: clients look into them without a check."""
    _by_reason: ClassVar[dict[str, type[ApiError]]] = {}
    _by_code: ClassVar[dict[int, type[ApiError]]] = {}

    def __init__(
        self,
        message: str,
        *,
        details: dict[str, Any] | None = None,
        code: int | None = None,
        reason: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.details = details
        self.retry_after = retry_after
        if code is not None:
            self.code = code
        if reason is not None:
            self.reason = reason

    def __init_subclass__(cls) -> None:
        ApiError._by_reason[cls.reason] = cls
        ApiError._by_code.setdefault(cls.code, cls)

    def status(self) -> dict[str, Any]:
        """The `Status` object a server answers with."""
        body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        }
        details = dict(self.details or {})
        if self.retry_after is not None:
            details["retryAfterSeconds"] = self.retry_after
        if details or self.describes:
            body["details"] = details
        return body

    @staticmethod
    def from_status(code: int, body: Any) -> ApiError:
        """The typed error for an answer; `body` may be a Status object or whatever a proxy put in its place."""
        if isinstance(body, dict) and body.get("kind") == "Status":
            reason = str(body.get("reason") or "")
            details = body.get("details") if isinstance(body.get("details"), dict) else None
            message = str(body.get("message") or reason or f"HTTP {code}")
        else:
            reason, details, message = "", None, str(body or f"HTTP {code}")
        cls = ApiError._by_reason.get(reason) or ApiError._by_code.get(code) or ApiError
        retry_after = (details or {}).get("retryAfterSeconds")
        error = cls(message, details=details, code=code, reason=reason or cls.reason, retry_after=retry_after)
        if isinstance(error, Expired) and isinstance(body, dict):
            error.resume = str((body.get("metadata") or {}).get("continue") or "")
        return error


class BadRequest(ApiError):
    code, reason = 400, "BadRequest"


class Unauthorized(ApiError):
    code, reason = 401, "Unauthorized"


class Forbidden(ApiError):
    code, reason, describes = 403, "Forbidden", True


class NotFound(ApiError):
    code, reason, describes = 404, "NotFound", True


class MethodNotAllowed(ApiError):
    code, reason, describes = 405, "MethodNotAllowed", True


class NotAcceptable(ApiError):
    code, reason = 406, "NotAcceptable"


class Conflict(ApiError):
    """The object changed since it was read, or a field is owned by another manager: read again and retry."""

    code, reason, describes = 409, "Conflict", True


class AlreadyExists(ApiError):
    code, reason, describes = 409, "AlreadyExists", True


class Expired(ApiError):
    """The resourceVersion asked for has been compacted away: list again."""

    code, reason = 410, "Expired"
    resume = ""
    """A continue token for the rest of a list whose own has expired."""

    def status(self) -> dict[str, Any]:
        return {**super().status(), "metadata": {"continue": self.resume} if self.resume else {}}


class Gone(ApiError):
    code, reason = 410, "Gone"


class RequestEntityTooLarge(ApiError):
    code, reason = 413, "RequestEntityTooLarge"


class UnsupportedMediaType(ApiError):
    code, reason = 415, "UnsupportedMediaType"


class Invalid(ApiError):
    """Well-formed but not acceptable; `details.causes` lists the fields."""

    code, reason, describes = 422, "Invalid", True


class TooManyRequests(ApiError):
    code, reason, describes = 429, "TooManyRequests", True


class InternalError(ApiError):
    code, reason, describes = 500, "InternalError", True


class ServiceUnavailable(ApiError):
    code, reason = 503, "ServiceUnavailable"


class Timeout(ApiError):
    code, reason, describes = 504, "Timeout", True


class Unreachable(ApiError):
    """No answer at all: connection refused, TLS failure, name not found. Never sent by a server."""

    code, reason = 0, "Unreachable"


class ConfigError(Exception):
    """No request could even be made: the kubeconfig, a key file or a credential plugin is at fault.

    `reason` is for programs; the message names the file or setting and the next step.
    """

    def __init__(self, message: str, *, reason: str = "BadConfig") -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason


def not_found(resource: str, name: str, *, group: str = "") -> NotFound:
    """`pods "x" not found`, in the words kubectl's users know."""
    full = f"{resource}.{group}" if group else resource
    return NotFound(f'{full} "{name}" not found', details=describe(name, group, resource))


def already_exists(resource: str, name: str, *, group: str = "") -> AlreadyExists:
    full = f"{resource}.{group}" if group else resource
    return AlreadyExists(f'{full} "{name}" already exists', details=describe(name, group, resource))


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def conflict(resource: str, name: str, why: str = MODIFIED, *, group: str = "") -> Conflict:
    full = f"{resource}.{group}" if group else resource
    message = f'Operation cannot be fulfilled on {full} "{name}": {why}'
    return Conflict(message, details=describe(name, group, resource))


def forbidden(resource: str, name: str, why: str, *, group: str = "") -> Forbidden:
    """`pods "x" is forbidden: …`: a policy, and not the lack of a right, is in the way."""
    full = f"{resource}.{group}" if group else resource
    return Forbidden(f'{full} "{name}" is forbidden: {why}', details=describe(name, group, resource))


def is_namespace_terminating(error: ApiError) -> bool:
    """Whether a creation was refused because its namespace is being deleted."""
    causes = (error.details or {}).get("causes") or ()
    return isinstance(error, Forbidden) and any(c.get("reason") == "NamespaceTerminating" for c in causes)


def invalid(kind: str, name: str, causes: list[tuple[str, str, str]], *, group: str = "") -> Invalid:
    """`causes` are (field, reason, message) with the reasons of Kubernetes, such as FieldValueRequired."""
    full = f"{kind}.{group}" if group else kind
    text = ", ".join(f"{field}: {message}" if field else message for field, _, message in causes)
    if len(causes) > 1:
        text = f"[{text}]"
    return Invalid(
        f'{full} "{name}" is invalid: {text}',
        details=describe(name, group, kind)
        | {"causes": [{"reason": r, "message": m, "field": f} for f, r, m in causes]},
    )


def describe(name: str, group: str, kind: str) -> dict[str, Any]:
    """What a refusal is about; what is empty is left out, as Kubernetes does."""
    return {key: value for key, value in (("name", name), ("group", group), ("kind", kind)) if value}
