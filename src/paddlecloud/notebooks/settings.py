"""What an operator chooses for hub and notebooks, in the keys of Zero to JupyterHub, and what follows. Pure.

The same keys are values of the chart and, on the embedded platform, of a file for `pdc notebooks up -f`. Keys that
exist there and mean nothing here are named (`unknown`), never ignored in silence.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import msgspec

from paddlecloud.notebooks import names

Positive = Annotated[int, msgspec.Meta(ge=1)]
HOME = "/home/jovyan"
"""Where the claim of a notebook is mounted; the name of Jupyter's own images."""
SPAWNER = "paddlecloud.notebooks.hub.spawner.TenantSpawner"
LOCAL_SIGN_IN = "paddlecloud.notebooks.hub.sign_in.LocalAuthenticator"
OIDC_SIGN_IN = "paddlecloud.notebooks.hub.sign_in.OidcAuthenticator"
COOKIE_DAYS = 1.0
"""A sign-in ends after a day, and with signing out."""
RIGHTS_SECONDS = 30
"""How often a server is looked at: whether it runs, and whether its user still belongs there."""


class _Part(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    pass


class Image(_Part, frozen=True):
    name: str = names.NOTEBOOK_IMAGE
    tag: str = ""
    pull_policy: str = ""

    @property
    def reference(self) -> str:
        return f"{self.name}:{self.tag}" if self.tag else self.name


class Amounts(_Part, frozen=True):
    limit: float | str | None = None
    guarantee: float | str | None = None


class Dynamic(_Part, frozen=True):
    storage_class: str = ""


class Storage(_Part, frozen=True):
    capacity: str = "10Gi"
    home_mount_path: str = HOME
    dynamic: Dynamic = Dynamic()


class SingleUser(_Part, frozen=True):
    image: Image = Image()
    cpu: Amounts = Amounts(guarantee=0.1)
    memory: Amounts = Amounts(guarantee="512M", limit="4G")
    storage: Storage = Storage()
    start_timeout: Positive = 300
    default_url: str = "/lab"
    extra_env: dict[str, str] = {}
    node_selector: dict[str, str] = {}
    profile_list: list[dict[str, Any]] = []
    uid: int | None = None
    fs_gid: int | None = None


class Cull(_Part, frozen=True):
    enabled: bool = True
    timeout: Positive = 3600
    every: Positive = 600
    max_age: int = 0


class Hub(_Part, frozen=True):
    config: dict[str, dict[str, Any]] = {}
    """Traits of JupyterHub's own classes, by class."""


class HubSettings(_Part, frozen=True):
    hub: Hub = Hub()
    singleuser: SingleUser = SingleUser()
    cull: Cull = Cull()


class SettingsError(ValueError):
    """A value that cannot be; the text names its key."""


def parse(values: Mapping[str, Any]) -> HubSettings:
    try:
        settings = msgspec.convert(values, HubSettings)
    except msgspec.ValidationError as error:
        text, _, place = str(error).partition(" - at `$.")
        raise SettingsError(f"{place.rstrip('`') or 'values'}: {text}") from error
    if not settings.singleuser.storage.home_mount_path.startswith("/"):
        raise SettingsError("singleuser.storage.homeMountPath: it is an absolute path")
    return settings


def unknown(values: Mapping[str, Any]) -> list[str]:
    """Keys that mean nothing here, with their place: "singleuser.lifecycleHooks"."""
    return sorted(_unknown(values, HubSettings, ""))


def _unknown(values: Mapping[str, Any], kind: type[msgspec.Struct], place: str) -> Iterator[str]:
    known = {one.encode_name: one.type for one in msgspec.structs.fields(kind)}
    for key, value in values.items():
        inner = known.get(key)
        if inner is None:
            yield f"{place}{key}"
        elif isinstance(inner, type) and issubclass(inner, msgspec.Struct) and isinstance(value, Mapping):
            yield from _unknown(value, inner, f"{place}{key}.")


Traits = dict[str, dict[str, Any]]
"""By class of JupyterHub, then by trait."""


def traits(settings: HubSettings, *, python: str, local: bool, namespace: str = names.NAMESPACE) -> Traits:
    """The configuration of JupyterHub. `python` runs the culler; `local` is the embedded platform, with users of its
    own and pods that are processes of one person. `namespace` is the hub's; notebooks are in others."""
    single, home = settings.singleuser, settings.singleuser.storage.home_mount_path
    spawner: dict[str, Any] = {
        "image": single.image.reference,
        "cmd": ["jupyterhub-singleuser", *(["--allow-root"] if local else [])],
        "default_url": single.default_url,
        "start_timeout": single.start_timeout,
        "http_timeout": max(120, math.ceil(single.start_timeout / 2)),
        "poll_interval": RIGHTS_SECONDS,
        "pod_name_template": "jupyter-{user_server}",
        "pvc_name_template": names.CLAIM_PREFIX + "{user_server}",
        "storage_pvc_ensure": True,
        "storage_capacity": single.storage.capacity,
        "storage_access_modes": ["ReadWriteOnce"],
        "volumes": [{"name": "home", "persistentVolumeClaim": {"claimName": "{pvc_name}"}}],
        "volume_mounts": [{"name": "home", "mountPath": home}],
        "working_dir": home,
        "notebook_dir": home,
        "environment": {"HOME": home, "PADDLECLOUD_HOME_CLAIM": f"{{pvc_name}}:{home}", **single.extra_env},
        "node_selector": single.node_selector,
        "profile_list": single.profile_list,
        "delete_pvc": False,
        "remember_pvc_name": False,
        "enable_user_namespaces": False,
    }
    amounts = {"cpu": single.cpu, "mem": single.memory}
    for name, amount in amounts.items():
        spawner |= {
            f"{name}_{what}": value
            for what, value in (("limit", amount.limit), ("guarantee", amount.guarantee))
            if value is not None
        }
    if single.storage.dynamic.storage_class:
        spawner["storage_class"] = single.storage.dynamic.storage_class
    if single.image.pull_policy:
        spawner["image_pull_policy"] = single.image.pull_policy
    if not local:
        spawner |= {"uid": single.uid or 1000, "fs_gid": single.fs_gid or 100, "allow_privilege_escalation": False}
    made: Traits = {
        "JupyterHub": {
            "spawner_class": SPAWNER,
            "authenticator_class": LOCAL_SIGN_IN if local else OIDC_SIGN_IN,
            "bind_url": f"http://:{names.PUBLIC_PORT}",
            "hub_bind_url": f"http://0.0.0.0:{names.HUB_PORT}",
            "hub_connect_url": f"http://{names.HUB}.{namespace}:{names.HUB_PORT}",
            "db_url": "sqlite:////srv/jupyterhub/jupyterhub.sqlite",
            "cleanup_servers": False,
            "cleanup_proxy": False,
            "cookie_max_age_days": COOKIE_DAYS,
            "tornado_settings": {"slow_spawn_timeout": 3},
        },
        "ConfigurableHTTPProxy": {"should_start": False, "api_url": f"http://{names.PROXY_API}:{names.API_PORT}"},
        "Authenticator": {"allow_all": True, "refresh_pre_spawn": True},
        "KubeSpawner": spawner,
    }
    if settings.cull.enabled:
        _add_culler(made["JupyterHub"], settings.cull, python)
    for name, given in settings.hub.config.items():
        made.setdefault(name, {}).update(given)
    return made


def _add_culler(hub: dict[str, Any], cull: Cull, python: str) -> None:
    """As Zero to JupyterHub does it: a service of the hub with the rights that it needs."""
    command = [python, "-m", "jupyterhub_idle_culler", f"--timeout={cull.timeout}", f"--cull-every={cull.every}"]
    if cull.max_age:
        command.append(f"--max-age={cull.max_age}")
    hub["services"] = [{"name": "jupyterhub-idle-culler", "command": command}]
    scopes = ["list:users", "read:users:activity", "read:servers", "delete:servers"]
    hub["load_roles"] = [{"name": "jupyterhub-idle-culler", "scopes": scopes, "services": ["jupyterhub-idle-culler"]}]
