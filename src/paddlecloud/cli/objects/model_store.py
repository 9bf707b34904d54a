"""Which store `pdc model` uses, and what its failures are on the command line."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from paddlecloud.api.model.reference import BadReference
from paddlecloud.cli.failures import BY_REASON, ERROR, FORBIDDEN, CliError, InputError, UsageError
from paddlecloud.cli.failures import attempting as asking
from paddlecloud.cli.session import Session
from paddlecloud.modelhub.errors import HubError
from paddlecloud.modelhub.names import STORE_FOLDER, STORE_VARIABLE
from paddlecloud.modelhub.names import VARIABLE as HUB
from paddlecloud.storage.errors import StorageError

if TYPE_CHECKING:
    from paddlecloud.sdk.model_transfer import Place


def place_of(session: Session) -> Place:
    """The store of --store or of the environment, the hub of the environment, or the embedded platform's store."""
    from paddlecloud.cli.objects import embedded
    from paddlecloud.sdk.model_transfer import Place, find_hub
    from paddlecloud.storage.stores import open_store

    address = str(session.args.store or os.environ.get(STORE_VARIABLE) or "").rstrip("/")
    if not address and (hub := find_hub(session.api.config)) is not None:
        return Place(session.api.client, session.namespace, None, "", _right_away, hub)
    if not address and not embedded.is_embedded(session):
        raise UsageError(
            "say where the files of models are",
            why="this is no embedded platform, which has a folder for them",
            next=f"{HUB}=http(s)://HOST of the cluster's model hub; or --store s3://BUCKET/PREFIX, or "
            f"{STORE_VARIABLE}, with the keys of the bucket in the environment",
        )
    store = open_store(address or f"file://{embedded.data_of(session) / STORE_FOLDER}")
    return Place(session.api.client, session.namespace, store, address, _right_away)


async def _right_away(work: Callable[[], Any]) -> Any:
    return work()


@contextmanager
def attempting(what: str, *, next: str = "pdc model ls") -> Iterator[None]:
    """Failures of stores, of names and of the API server in the words of the command line."""
    try:
        with asking(what):
            yield
    except BadReference as error:
        raise InputError(f"cannot {what}", why=str(error), next="pdc model --help") from error
    except (HubError, StorageError) as error:
        code = FORBIDDEN if error.reason == "AccessDenied" else BY_REASON.get(error.reason, ERROR)
        raise CliError(f"cannot {what}", why=str(error), next=next, exit_code=code, reason=error.reason) from error
