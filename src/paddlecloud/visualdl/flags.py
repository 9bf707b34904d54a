"""VisualDL's flags: what `pdc visualdl` and the pipeline component take, checked before a pod is made of them.

VisualDL itself ends with a message in its pod's log for a wrong public path, and ignores a language it does not know.
"""

from __future__ import annotations

from dataclasses import dataclass

PORT = 8040
PUBLIC_PATH = "/app"
EVERYWHERE = "0.0.0.0"  # noqa: S104 - of the pod: its Service must reach it
LANGUAGES = ("en", "zh")


class FlagError(ValueError):
    """A value that VisualDL would refuse or ignore; the text begins with the flag."""


@dataclass(frozen=True, kw_only=True)
class Flags:
    logdirs: tuple[str, ...]
    model: str = ""
    host: str = EVERYWHERE
    port: int = PORT
    cache_timeout: float | None = None
    language: str = ""
    public_path: str = ""
    api_only: bool = False

    @property
    def path(self) -> str:
        """Where the page, or with `api_only` the API, begins."""
        if self.public_path:
            return self.public_path.rstrip("/")
        return "" if self.api_only else PUBLIC_PATH

    @property
    def is_private(self) -> bool:
        """Whether VisualDL listens on its pod's own loopback alone, where only a port-forward arrives."""
        return self.host == "localhost" or self.host.startswith("127.")

    def arguments(self) -> list[str]:
        """As VisualDL writes them: with hyphens, and `--api-only` without a value."""
        given = ["--logdir", *self.logdirs, "--host", self.host, "--port", str(self.port)]
        for flag, value in (("--model", self.model), ("--language", self.language)):
            given += [flag, value] if value else []
        if self.public_path:
            given += ["--public-path", self.public_path]
        if self.cache_timeout is not None:
            given += ["--cache-timeout", f"{self.cache_timeout:g}"]
        return [*given, "--api-only"] if self.api_only else given


def check(flags: Flags) -> None:
    """Raises `FlagError`."""
    if not flags.logdirs:
        raise FlagError("--logdir: name at least one folder")
    for folder in (*flags.logdirs, flags.model):
        if folder.startswith("-"):
            raise FlagError(f"{folder!r} would be read as a flag of VisualDL; write ./{folder}")
    if not 0 < flags.port < 1 << 16:
        raise FlagError(f"--port: {flags.port} is no port; a number from 1 to 65535")
    if not flags.host or flags.host.startswith("-") or any(letter.isspace() for letter in flags.host):
        raise FlagError(f"--host: {flags.host!r} is no address")
    if flags.language and flags.language not in LANGUAGES:
        raise FlagError(f"--language: VisualDL has {' and '.join(LANGUAGES)}, not {flags.language!r}")
    if flags.cache_timeout is not None and not 0 <= flags.cache_timeout < 1e9:
        raise FlagError(f"--cache-timeout: {flags.cache_timeout:g} is not a number of seconds")
    if flags.public_path and not flags.public_path.startswith("/"):
        raise FlagError(f"--public-path: {flags.public_path!r} does not begin with /")
    if flags.public_path and not flags.public_path.strip("/") and not flags.api_only:
        raise FlagError("--public-path: VisualDL's page cannot be at /; only its API can (--api-only)")
