"""What has to be looked up for a set beyond what the caches hold: only what a rule will use. Pure."""

from __future__ import annotations

from paddlecloud.api.sampleset import Secret
from paddlecloud.controllers import grants
from paddlecloud.controllers.sampledata.sampleset.case import SampleSetCase
from paddlecloud.controllers.sampledata.servers import transfer

_USING_SECRETS = ("", "Mount", "Syncing", "SyncFailed")
"""Phases that read Secrets: before the set is bound and around an import."""


def secrets(case: SampleSetCase) -> list[Secret]:
    """Those of other namespaces in every phase: their grant may be withdrawn."""
    needed = case.phase in _USING_SECRETS
    return [secret for secret in case.secrets if needed or grants.is_foreign(secret, case.settings.namespace)]


def source_folder(case: SampleSetCase) -> str:
    """The folder of this machine that is still to be imported, if the set may read it; else empty."""
    source, allowed = case.settings.uri, case.options.sources
    if not case.imports or allowed is None or not source.startswith("file://"):
        return ""
    if transfer.source_problem(source, allowed):
        return ""  # whether it exists is not for those to know who may not read it
    return transfer.folder_of(source)


def needs_retained(case: SampleSetCase) -> bool:
    """A new set is to be imported into the folder of its name, where a deleted one may have left its data.

    Not asked of a set that has begun: the data there is its own.
    """
    return case.driver == "local" and case.imports and not case.phase and case.observed.volume is None


def needs_last_warning(case: SampleSetCase) -> bool:
    """Server 0 is awaited, and its pod may say why it does not start."""
    return case.phase == "Bound" and not any(server.ready for server in case.observed.cache_servers)


def needs_clearing(case: SampleSetCase) -> bool:
    """Servers may be on their way out, whose caches are emptied first."""
    return case.phase in ("PartialReady", "Ready")
