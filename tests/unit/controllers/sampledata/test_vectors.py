"""What mounts and cache servers are asked to do, as vectors: specs in, exact options and paths out."""

from __future__ import annotations

import re
from typing import Any

import pytest

from paddlecloud.api.sampleset import SampleSetSettings, SampleSetStatus, decode, normalise, validate
from paddlecloud.controllers.sampledata import names
from paddlecloud.controllers.sampledata.sampleset import cache_status, objects
from paddlecloud.controllers.sampledata.sampleset.case import Observed, SampleSetCase, SampleSetOptions
from paddlecloud.controllers.sampledata.sampleset.pod_and_volume_views import cache_server_of
from paddlecloud.controllers.sampledata.servers import transfer
from paddlecloud.controllers.sampledata.servers.responses import DiskFigures, Figures
from paddlecloud.controllers.sampledata.servers.transfer import BadOptions
from paddlecloud.kube.resource import Object
from paddlecloud.kube.sizes import binary_size

SOURCE = {"uri": "bos://b.ep/p"}
LEVELS = [
    {"mediumType": "MEM", "path": "/dev/shm/a:/dev/shm/b", "cacheSize": 150},
    {"mediumType": "SSD", "path": "/data/c", "cacheSize": 150},
]


def sample_set(name: str = "imagenet", **spec: Any) -> Object:
    meta = {"name": name, "namespace": "paddle-system", "uid": "u", "resourceVersion": "1"}
    kind = {"apiVersion": "batch.paddlepaddle.org/v1alpha1", "kind": "SampleSet"}
    return {**kind, "metadata": meta, "spec": {"source": SOURCE, "secretRef": {"name": "s"}, **spec}}


def settings(name: str = "imagenet", **spec: Any) -> SampleSetSettings:
    return normalise(decode(sample_set(name, **spec))).settings


def case(name: str = "imagenet", *, driver: str = "juicefs", **spec: Any) -> SampleSetCase:
    obj = sample_set(name, **{"csi": {"driver": driver}, **spec})
    options = SampleSetOptions(image="runtime:1", local_root="/var/lib/sets")
    return SampleSetCase(obj, normalise(decode(obj)).settings, SampleSetStatus(), Observed(), 0.0, options)


def test_without_any_option_the_cache_is_unlimited_and_in_memory() -> None:
    assert transfer.mount_options(settings()) == {"cache-size": "1073741824", "cache-dir": "/dev/shm/imagenet"}


def test_levels_decide_over_cache_directories_and_size() -> None:
    asked = {"cache-size": 307200, "open-cache": 7200, "writeback": True, "free-space-ratio": "0.2"}
    found = transfer.mount_options(settings(cache={"levels": LEVELS}, csi={"juiceFSMountOptions": asked}))
    text = set(transfer.mount_option_text(found).split(","))
    assert text == {
        "cache-dir=/dev/shm/a:/dev/shm/b:/data/c",
        "cache-size=300",
        "open-cache=7200",
        "writeback",
        "free-space-ratio=0.2",
    }


def test_a_cache_directory_of_the_users_gets_a_folder_of_the_set() -> None:
    found = transfer.mount_options(settings(csi={"juiceFSMountOptions": {"cache-dir": "/data/c"}}))
    assert found["cache-dir"] == "/data/c/imagenet"


@pytest.mark.parametrize(("ratio", "fits"), [("1.0", False), ("abc", False), ("0", True)])
def test_a_free_space_ratio_lies_from_zero_to_below_one(ratio: str, fits: bool) -> None:
    spec = {"csi": {"juiceFSMountOptions": {"free-space-ratio": ratio}}}
    assert validate(decode(sample_set(**spec))) is not fits


def test_every_cache_directory_is_mounted_and_so_is_the_data() -> None:
    paths = ["/dev/shm/imagenet", "/data/imagenet", "/dev/ssd/imagenet"]
    pod = objects.build_template(case(cache={"levels": [{"path": ":".join(paths)}]}))["spec"]
    (container,) = pod["containers"]
    folders = [volume["hostPath"]["path"] for volume in pod["volumes"] if "hostPath" in volume]
    assert folders == [f"{path}/paddlecloud-cache/paddle-system/imagenet" for path in paths]
    assert len(pod["volumes"]) == len(container["volumeMounts"]) == 6  # and the data, the server's keys and its /tmp
    assert container["command"] == [
        "nuwa",
        "server",
        "--driver=juicefs",
        "--cacheDirs=/cache/dev-shm-imagenet",
        "--cacheDirs=/cache/data-imagenet",
        "--cacheDirs=/cache/dev-ssd-imagenet",
        "--cacheLevels=,0,/cache/dev-shm-imagenet:/cache/data-imagenet:/cache/dev-ssd-imagenet",
        "--dataDir=/mnt/imagenet",
        "--keys=/var/run/paddlecloud/keys",
    ]
    assert container["ports"] == [{"name": "runtime", "containerPort": 7716}]


@pytest.mark.parametrize("path", ["/Data/Cache_1/x.y", "/", "/a/b/", "/" + "long/" * 30])
def test_any_directory_has_a_legal_and_distinct_volume_name(path: str) -> None:
    name = names.volume_name(path)
    assert len(name) <= 63
    assert name.strip("-") == name == name.lower()
    assert name != names.volume_name(path + "z")


@pytest.mark.parametrize(
    ("source", "destination", "expected"),
    [
        ("bos://b.ep/p", "", ("bos://b.ep/p", "file:///mnt/S")),
        ("bos://b.ep/p/", "train", ("bos://b.ep/p/", "file:///mnt/S/train/")),
        ("bos://b.ep/p", "/train/", ("bos://b.ep/p/", "file:///mnt/S/train/")),
        ("file:///tmp/d", "", ("file:///tmp/d", "file:///mnt/S")),
    ],
)
def test_both_ends_of_an_import_are_directories_or_neither(
    source: str, destination: str, expected: tuple[str, str]
) -> None:
    found = transfer.sync_options(settings("S", source={}), source=source, destination=destination)
    assert (found["source"], found["destination"]) == expected


@pytest.mark.parametrize(("source", "why"), [("https://x/y", "https"), ("bucket/path", "SCHEME"), ("", "empty")])
def test_a_source_that_cannot_be_read_is_an_error_that_says_why(source: str, why: str) -> None:
    with pytest.raises(BadOptions, match=why):
        transfer.sync_options(settings("S", source={}), source=source)


def test_keys_travel_beside_the_source_trimmed_and_never_in_it() -> None:
    secret = {"metadata": {"name": "s"}, "data": {"access-key": "YQo=", "secret-key": "cwo=", "tls.crt": "/w=="}}
    values = transfer.secret_values(secret)
    assert transfer.credentials(values) == {"access-key": "a", "secret-key": "s"}
    assert transfer.credentials({"access-key": "", "name": "x"}) == {}


def test_cache_directories_to_clear_are_named_as_on_the_node_or_as_in_the_server() -> None:
    directories = ["/dev/shm/i-0", "/dev/shm/i-1"]
    asked = ["/dev/shm/i-0/train", "/cache/dev-shm-i-1", "/dev/shm/i-0/"]
    assert transfer.clear_paths(asked, directories) == [
        "/cache/dev-shm-i-0/train",
        "/cache/dev-shm-i-1/*",
        "/cache/dev-shm-i-0/*",
    ]
    assert transfer.clear_paths([], directories) == ["/cache/dev-shm-i-0/*", "/cache/dev-shm-i-1/*"]


@pytest.mark.parametrize("path", ["/etc", "/dev/shm/i-01", "/dev/shm/i-0/../x", "i-0"])
def test_nothing_outside_the_cache_directories_is_cleared(path: str) -> None:
    with pytest.raises(BadOptions):
        transfer.clear_paths([path], ["/dev/shm/i-0"])


def test_paths_to_remove_are_inside_the_set() -> None:
    assert [transfer.data_path("imagenet", p) for p in ("/train", "val/n1")] == [
        "/mnt/imagenet/train",
        "/mnt/imagenet/val/n1",
    ]


def test_what_two_servers_cached_is_added_and_never_more_than_there_is() -> None:
    gib = 1 << 30
    each = Figures(total_bytes=4 * gib, cached_bytes=3 * gib, disk_bytes=10 * gib, disk_used_bytes=gib)
    found = cache_status.total({"a": each, "b": each}, {"c": "away"})
    assert (found.cached_size, found.disk_size, found.disk_usage_rate) == ("4.0 GiB", "20 GiB", "10.0%")
    assert found.error_massage == "c: away"


def test_a_disk_that_two_servers_share_is_counted_once() -> None:
    gib = 1 << 30
    shared, own = (
        DiskFigures(id="m-1", size=10 * gib, used=gib, available=9 * gib),
        DiskFigures(size=gib, available=gib),
    )
    each = Figures(disk_bytes=11 * gib, disk_avail_bytes=10 * gib, disks=(shared, own))
    found = cache_status.total({"a": each, "b": each}, {})
    assert (found.disk_size, found.disk_avail) == ("12 GiB", "11 GiB")


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (9, "9 B"), (200, "200 B"), (4096, "4.0 KiB"), (60817408, "58 MiB"), (1 << 40, "1.0 TiB")],
)
def test_sizes_are_written_as_people_know_them(count: int, text: str) -> None:
    assert binary_size(count) == text


def test_servers_have_the_names_by_which_older_parts_call_them() -> None:
    assert f"http://{names.runtime_pod('S', 3)}.{names.service('S')}:{names.PORT}" == (
        "http://S-runtime-3.S-runtime-service:7716"
    )
    made = objects.build_stateful_set(case())["spec"]
    assert made["serviceName"] == objects.build_service(case())["metadata"]["name"] == "imagenet-runtime-service"
    assert objects.build_service(case())["spec"]["ports"] == [{"name": "service", "port": 7716, "targetPort": 7716}]


def test_an_id_is_the_same_for_the_same_request_only() -> None:
    assert names.job_id("u", "sync", {"a": 1}) == names.job_id("u", "sync", {"a": 1})
    assert names.job_id("u", "sync", {"a": 1}) != names.job_id("u", "sync", {"a": 2})
    assert names.job_id("v", "sync", {"a": 1}) != names.job_id("u", "sync", {"a": 1})


def test_a_name_taken_elsewhere_gets_one_that_fits_into_a_label() -> None:
    assert names.unique("team", "imagenet") == "team.imagenet"
    long = names.unique("n" * 60, "s" * 55)
    assert len(names.ownership("juicefs", long).partition("/")[2]) <= 63


def test_two_sets_never_share_a_name_or_a_handle() -> None:
    long = "n" * 63
    cut = names.unique(long, "set")
    sets = [
        *(("team", "x-data"), ("team-x", "data"), ("team-x-data", "data"), ("t", "eam-x-data")),
        *((long, "set"), (long, "set-2"), ("n" * 62, "n-set"), tuple(cut.split("."))),
    ]
    found = [names.unique(namespace, name) for namespace, name in sets]
    # The last would be the name of the cut one, but no set's name begins with a digit.
    assert len(set(found[:-1])) == len(found) - 1
    assert found[-1] == cut
    assert any("must be lower-case" in str(problem) for problem in validate(decode(sample_set(sets[-1][1]))))
    subdomain = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
    assert all(re.fullmatch(subdomain, name) for name in found)


def test_the_volume_is_the_one_older_controllers_make() -> None:
    volume = objects.build_volume(case())
    assert volume["metadata"]["name"] == "imagenet"
    assert volume["metadata"]["labels"]["paddlepaddle.org/juicefs-imagenet"] == "true"
    spec = volume["spec"]
    assert spec["persistentVolumeReclaimPolicy"] == "Retain"
    assert spec["csi"]["driver"] == "csi.juicefs.com"
    assert spec["csi"]["volumeHandle"] == "paddle-system.imagenet"
    assert spec["csi"]["nodePublishSecretRef"] == {"name": "s", "namespace": "paddle-system"}
    claim = objects.build_claim(case())["spec"]
    assert claim["selector"] == {"matchLabels": {"paddlepaddle.org/juicefs-imagenet": "true"}}
    assert claim["storageClassName"] == spec["storageClassName"] == "paddle-operator"


def test_virtual_nodes_of_one_machine_have_caches_of_their_own() -> None:
    pod = objects.build_template(case(driver="local"))["spec"]
    cache, data, *_ = pod["containers"][0]["volumeMounts"]
    assert cache["subPathExpr"] == "$(NODE_NAME)"
    assert "subPathExpr" not in data
    assert pod["volumes"][0]["hostPath"]["path"] == "/var/lib/sets/paddle-system/imagenet/cache"


def test_servers_keep_off_each_others_nodes_and_take_the_users_wishes() -> None:
    wish = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": []}]}}
    pod = objects.build_template(case(nodeAffinity=wish, tolerations=[{"operator": "Exists"}]))["spec"]
    (apart,) = pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert apart["topologyKey"] == "kubernetes.io/hostname"
    assert pod["affinity"]["nodeAffinity"] == wish
    assert pod["tolerations"] == [{"operator": "Exists"}]


def test_what_is_said_about_a_server_does_not_change_with_every_try() -> None:
    container = "6b51c6c7c4b31332a20a560125b2a4ddc0900d0f0db550d0c80c08503f400615"
    waiting = {"reason": "CreateContainerError", "message": f'failed to generate container "{container}" spec'}
    status = {"phase": "Pending", "containerStatuses": [{"state": {"waiting": waiting}}]}
    owner = {"kind": "StatefulSet", "name": "imagenet-runtime", "uid": "s", "controller": True}
    meta = {"name": "imagenet-runtime-0", "uid": "u", "ownerReferences": [owner]}
    found = cache_server_of({"metadata": meta, "spec": {}, "status": status}, "imagenet", "s")
    assert found is not None
    assert found.trouble == 'CreateContainerError: failed to generate container "…" spec'


@pytest.mark.parametrize(
    ("message", "said"),
    [("", ""), ('image "r": installing juicefs', 'ContainerCreating: image "r": installing juicefs')],
)
def test_a_server_whose_image_is_being_built_says_so(message: str, said: str) -> None:
    waiting = {"reason": "ContainerCreating", **({"message": message} if message else {})}
    status = {"phase": "Pending", "containerStatuses": [{"state": {"waiting": waiting}}]}
    owner = {"kind": "StatefulSet", "name": "imagenet-runtime", "uid": "s", "controller": True}
    meta = {"name": "imagenet-runtime-0", "uid": "u", "ownerReferences": [owner]}
    found = cache_server_of({"metadata": meta, "spec": {}, "status": status}, "imagenet", "s")
    assert found is not None
    assert found.trouble == said
