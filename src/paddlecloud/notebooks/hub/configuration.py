"""The settings of the operator become traits of JupyterHub: its configuration file is two lines that call this."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import msgspec

from paddlecloud.notebooks import names
from paddlecloud.notebooks.settings import parse, traits

LOCAL = "PADDLECLOUD_NOTEBOOKS_LOCAL"
"""Set on the embedded platform: people sign in with passwords of their own."""


def configure(config: Any) -> None:
    """`config` is that of JupyterHub. Secrets come from the environment: CONFIGPROXY_AUTH_TOKEN, JPY_COOKIE_SECRET."""
    values = msgspec.json.decode(Path(names.SETTINGS).read_bytes())
    local, namespace = bool(os.environ.get(LOCAL)), os.environ["POD_NAMESPACE"]
    for kind, given in traits(parse(values), python=sys.executable, local=local, namespace=namespace).items():
        for trait, value in given.items():
            setattr(config[kind], trait, value)
