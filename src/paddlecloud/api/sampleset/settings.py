"""What a SampleSet means: every default filled in. `normalise` never fails and never judges."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, cast

import msgspec

from paddlecloud.api.fields import SecretReference
from paddlecloud.api.problems import encode
from paddlecloud.api.sampleset.spec import CacheLevel, Csi, MountOptions, SampleSet, SampleSetSpec, SourceSpec


class Secret(NamedTuple):
    name: str
    namespace: str


class LevelSettings(msgspec.Struct, frozen=True, kw_only=True):
    medium: Literal["MEM", "SSD", "HDD", ""]
    paths: tuple[str, ...]
    size_mib: int


class SampleSetSettings(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    namespace: str
    partitions: int
    uri: str
    source_secret: Secret | None
    secret: Secret | None
    no_sync: bool
    driver: Literal["juicefs", "local", ""]
    """Empty: the controller chooses by what the cluster has."""
    mount_options: dict[str, str | bool]
    levels: tuple[LevelSettings, ...]
    node_affinity: dict[str, Any] | None
    tolerations: tuple[dict[str, Any], ...]


class Normalised(NamedTuple):
    settings: SampleSetSettings
    warnings: list[str]


def normalise(sample_set: SampleSet) -> Normalised:
    """The meaning of a set, and sentences for people about what was not taken literally."""
    spec = sample_set.spec or SampleSetSpec()
    source = spec.source or SourceSpec()
    csi = spec.csi or Csi()
    warnings: list[str] = []
    settings = SampleSetSettings(
        name=sample_set.name,
        namespace=sample_set.namespace,
        partitions=max(1, spec.partitions or 1),
        uri=(source.uri or "").strip(),
        source_secret=_secret(source.secret_ref, spec.secret_ref, sample_set.namespace),
        secret=_secret(spec.secret_ref, None, sample_set.namespace),
        no_sync=bool(spec.no_sync),
        driver=cast(Any, csi.driver) if csi.driver in ("juicefs", "local") else "",
        mount_options=_mount_options(csi.juicefs_mount_options, warnings),
        levels=tuple(_level(level) for level in (spec.cache.levels if spec.cache and spec.cache.levels else ())),
        node_affinity=spec.node_affinity,
        tolerations=tuple(spec.tolerations or ()),
    )
    return Normalised(settings, warnings)


def _secret(ref: SecretReference | None, fallback: SecretReference | None, namespace: str) -> Secret | None:
    """Name and namespace fall back one by one, as upstream does it."""
    ref, fallback = ref or SecretReference(), fallback or SecretReference()
    name = ref.name or fallback.name
    return Secret(name, ref.namespace or fallback.namespace or namespace) if name else None


def _mount_options(options: MountOptions | None, warnings: list[str]) -> dict[str, str | bool]:
    """What was set, in today's JuiceFS names; zero values mean "not set", as they always did."""
    found: dict[str, str | bool] = {}
    for name, value in encode(options or MountOptions()).items():
        if value in (0, "", False):
            continue
        if name == "sub-dir":
            warnings.append("mount option sub-dir is passed on as subdir, its name in current JuiceFS")
            name = "subdir"
        found[name] = value if value is True else str(value).strip()
    return found


def _level(level: CacheLevel) -> LevelSettings:
    medium = level.medium_type
    return LevelSettings(
        medium=cast(Any, medium) if medium in ("MEM", "SSD", "HDD") else "",
        paths=tuple(path.strip() for path in (level.path or "").split(":") if path.strip()),
        size_mib=level.cache_size or 0,
    )
