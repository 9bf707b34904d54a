"""Keys of a store. They come from a Secret, by file or over the runtime's API, and go to libraries and environments.

They appear in no address, message, log, command line or `repr`. Values are trimmed: `echo key | base64` adds a newline
that no store would accept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from paddlecloud.storage.errors import Unsupported

FOLDER = Path("/etc/paddlecloud/credentials")
"""Where a pod finds the Secret of the source, a file per key."""

SHORTEST = 3
"""A key of fewer characters keeps no secret, and looking for it would eat every text."""

ENVIRONMENT = {
    "s3": ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
    "minio": ("MINIO_ACCESS_KEY", "MINIO_SECRET_KEY"),
    "bos": ("BDCLOUD_ACCESS_KEY", "BDCLOUD_SECRET_KEY"),
    "oss": ("ALICLOUD_ACCESS_KEY_ID", "ALICLOUD_ACCESS_KEY_SECRET"),
    "cos": ("COS_SECRETID", "COS_SECRETKEY"),
    "obs": ("HWCLOUD_ACCESS_KEY", "HWCLOUD_SECRET_KEY"),
    "jss": ("JSS_ACCESS_KEY", "JSS_SECRET_KEY"),
    "qingstor": ("QINGSTOR_ACCESS_KEY_ID", "QINGSTOR_SECRET_ACCESS_KEY"),
    "redis": ("", "REDIS_PASSWORD"),
    "wasb": ("AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_KEY"),
}
"""Variables in which JuiceFS looks for the keys of a store that are not in its address."""


@dataclass(frozen=True, slots=True)
class Credentials:
    access_key: str = field(default="", repr=False)
    secret_key: str = field(default="", repr=False)
    session_token: str = field(default="", repr=False)

    def __bool__(self) -> bool:
        return bool(self.access_key or self.secret_key)

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be seen anywhere."""
        return tuple(value for value in (self.secret_key, self.session_token, self.access_key) if value)

    def environment(self, scheme: str) -> dict[str, str]:
        """For programs that look for keys in their environment. Raises `Unsupported` where none are looked for."""
        if not self:
            return {}
        if scheme not in ENVIRONMENT:
            raise Unsupported(
                f"keys for {scheme} cannot be handed over without showing them: use a Secret without keys"
            )
        names = ENVIRONMENT[scheme]
        return {name: value for name, value in zip(names, (self.access_key, self.secret_key), strict=True) if name}


def from_values(values: Mapping[str, str]) -> Credentials:
    """From the keys of a Secret: access-key, secret-key, session-token. Others are not ours."""
    return Credentials(
        values.get("access-key", "").strip(),
        values.get("secret-key", "").strip(),
        values.get("session-token", "").strip(),
    )


def from_environment(scheme: str, environment: Mapping[str, str]) -> Credentials:
    """From the variables that the store's own tools read."""
    names = ENVIRONMENT.get(scheme, ENVIRONMENT["s3"])
    return Credentials(*(environment.get(name, "") for name in names))


def from_folder(folder: Path = FOLDER) -> Credentials:
    """From a mounted Secret; one that is not there has no keys."""
    values = {}
    for name in ("access-key", "secret-key", "session-token"):
        try:
            values[name] = (folder / name).read_text()
        except (FileNotFoundError, NotADirectoryError):
            continue
    return from_values(values)


def redact(text: str, credentials: Credentials) -> str:
    """A text of somebody else's (a program's output, an error) without the keys, however they got there."""
    for secret in credentials.secrets:
        if len(secret) >= SHORTEST:
            text = text.replace(secret, "…")
    return text
