"""What makes a SampleSet impossible to serve, as far as it can be seen without looking at the cluster."""

from __future__ import annotations

import re
from collections.abc import Iterator

from paddlecloud.api.fields import folder_address_problem
from paddlecloud.api.problems import TOO_LONG, Problem, declared_problems, invalid, required
from paddlecloud.api.sampleset.spec import ADDRESS_FORM, MAX_NAME, Csi, SampleSet, SampleSetSpec

SCHEMES = (
    *("b2", "bos", "ceph", "cos", "eos", "file", "gs", "hdfs", "ibmcos", "jss", "ks3", "minio", "mss", "nos", "obs"),
    *("oos", "oss", "qingstor", "qiniu", "redis", "s3", "scs", "scw", "space", "speedy", "swift", "tikv", "ufile"),
    *("wasabi", "wasb", "webdav"),
)
ARCHIVES = (".tar", ".tar.gz", ".tgz", ".zip")


def validate(sample_set: SampleSet) -> list[Problem]:
    """Everything wrong with the set that can be seen without looking at the cluster."""
    if sample_set.spec is None:
        return [required("spec", "say which data to cache")]
    spec = sample_set.spec
    problems = declared_problems(spec, "spec")
    problems += _name(sample_set.name)
    uri = (spec.source.uri if spec.source else None) or ""
    if not spec.no_sync and not uri:
        problems.append(required("spec.source.uri", "say where the data comes from, or set spec.noSync"))
    elif uri and (text := uri_problem(uri)):
        problems.append(invalid("spec.source.uri", uri, text))
    if spec.csi:
        problems += _csi(spec, spec.csi)
    return problems


def uri_problem(uri: str) -> str | None:
    """Why a source cannot be read, or None. Web addresses must point at an archive: they cannot be listed."""
    if uri.startswith("/"):
        return f"{ADDRESS_FORM}; did you mean file://{uri}?"
    if uri.count("://") != 1:
        return ADDRESS_FORM
    scheme, _, rest = uri.partition("://")
    if scheme == "file":
        return folder_address_problem(uri)
    if not rest.strip("/"):
        return f"{ADDRESS_FORM}: this one names no bucket or host"
    if scheme in ("http", "https"):
        return None if rest.split("?")[0].endswith(ARCHIVES) else f"{scheme} sources must end in {', '.join(ARCHIVES)}"
    if scheme in SCHEMES:
        return None
    return f"scheme {scheme} is unknown: use http or https for an archive, or one of {', '.join(SCHEMES)}"


def _name(name: str) -> Iterator[Problem]:
    if len(name) > MAX_NAME:
        yield Problem("metadata.name", TOO_LONG, f"Too long: may not be more than {MAX_NAME} characters")
    if name and not re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", name):
        yield invalid("metadata.name", name, "must be lower-case letters, digits and dashes, beginning with a letter")


def _csi(spec: SampleSetSpec, csi: Csi) -> Iterator[Problem]:
    if csi.driver == "juicefs" and not (spec.secret_ref and spec.secret_ref.name):
        yield required("spec.secretRef.name", "the juicefs engine needs the Secret of its file system")
    ratio = csi.juicefs_mount_options.free_space_ratio if csi.juicefs_mount_options else None
    if ratio is not None:
        try:
            fits = 0 <= float(ratio) < 1
        except ValueError:
            fits = False
        if not fits:
            field = "spec.csi.juiceFSMountOptions.free-space-ratio"
            yield invalid(field, ratio, "must be a number from 0 to below 1")
