"""Folders of nodes that sets and services may name, and the folder that a set then has."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.controllers.node_folders import NodeFolders, named_by, own_folder
from paddlecloud.controllers.paddlejob import JobOptions
from paddlecloud.controllers.sampledata.sampleset import objects
from paddlecloud.controllers.sampledata.sampleset.case import SampleSetOptions
from paddlecloud.controllers.sampledata.servers import transfer
from paddlecloud.controllers.sampledata.servers.transfer import BadOptions
from paddlecloud.kube.resource import PERSISTENTVOLUMES, SAMPLESETS, STATEFULSETS, Object
from paddlecloud.platform.assembly import own_folders
from tools import original

from .test_vectors import case, settings
from .world import NAMESPACE, SampleDataCluster, condition, done, failed

CACHES = NodeFolders.for_caches({})


@pytest.mark.parametrize(
    ("path", "reported"),
    [
        ("/dev/shm/imagenet", None),
        ("/dev/shm", None),
        ("/data/imagenet/", None),
        ("/data//./imagenet", None),
        ("/etc", "not below one that the operator allows (/dev/shm, /data,"),
        ("/", "not below one"),
        ("", "must be an absolute path"),
        ("data", "must be an absolute path"),
        ("memory", "must be an absolute path"),
        ("/data/../etc", "must not contain '..'"),
        ("/data/..", "must not contain '..'"),
        ("/datalake", "not below one"),
        ("/data/.ssh", "hidden folders such as .ssh"),
        ("/data/a\nb", "printable"),
        ("/data/a,writeback", "without commas"),
        ("/data/paddlecloud-cache/victim/imagenet", "caches of sets are kept there"),
    ],
)
def test_a_folder_is_judged_by_its_words(path: str, reported: str | None) -> None:
    found = CACHES.problem(path)
    assert (found is None) if reported is None else (reported in (found or ""))


def test_the_operator_says_which_folders_may_be_named() -> None:
    allowed = NodeFolders.for_caches({"PADDLECLOUD_CACHE_ROOTS": "/ssd: /nvme "}, "/tmp", closed=("/ssd/own",))
    assert allowed.problem("/ssd/a") is None
    assert allowed.problem("/nvme/a") is None
    assert "nodeFolders.cache of the chart" in (allowed.problem("/data/a") or "")
    assert "the platform's own" in (allowed.problem("/ssd/own/a") or "")
    assert NodeFolders.for_caches({"PADDLECLOUD_CACHE_ROOTS": "/"}).problem("/etc") is None
    assert "allows (none)" in (NodeFolders.for_caches({"PADDLECLOUD_CACHE_ROOTS": ""}).problem("/dev/shm") or "")


def test_folders_are_added_to_those_that_are_allowed_already() -> None:
    allowed = NodeFolders.for_reading({"PADDLECLOUD_READ_ROOTS": "+/opt/data:/opt/more"}, "/home/me")
    assert allowed.roots == ("/models", "/home/me", "/opt/data", "/opt/more")


@pytest.mark.parametrize("given", [None, "+/opt/data", "/opt/data"])
@pytest.mark.parametrize("path", ["/home/me/.cache/set", "/elsewhere/set"])
def test_a_refusal_says_how_the_operator_allows_the_folder(path: str, given: str | None) -> None:
    environment = {} if given is None else {"PADDLECLOUD_READ_ROOTS": given}
    refusal = NodeFolders.for_reading(environment, "/home/me").problem(path) or ""
    proposed = re.search(r"PADDLECLOUD_READ_ROOTS=(\S+) pdc up", refusal)
    assert proposed
    allowed = NodeFolders.for_reading({"PADDLECLOUD_READ_ROOTS": proposed[1]}, "/home/me")
    assert allowed.problem(path) is None
    assert set(allowed.roots) >= set(NodeFolders.for_reading(environment, "/home/me").roots), "the others stay allowed"


def test_the_platforms_own_folder_is_refused_with_a_way_out() -> None:
    refusal = NodeFolders.for_reading({}, "/home/me", closed=("/home/me/platform",)).problem("/home/me/platform/x")
    assert "use a folder outside of /home/me/platform" in (refusal or "")


def test_controllers_take_the_folders_from_the_environment_they_are_given() -> None:
    environment = {"PADDLECLOUD_CACHE_ROOTS": "/ssd", "RUNTIME_IMAGE": "own:1", "PADDLECLOUD_ENDPOINTS": "a=b"}
    of_sets = SampleSetOptions.of(environment)
    assert (of_sets.image, of_sets.endpoints, of_sets.caches.roots) == ("own:1", "a=b", ("/ssd",))
    assert JobOptions.of(environment).caches.roots == ("/ssd",)
    assert SampleSetOptions.of({}) == SampleSetOptions()


def test_a_root_may_lie_in_a_hidden_folder() -> None:
    allowed = NodeFolders.for_caches({"PADDLECLOUD_CACHE_ROOTS": "/srv/.cache"})
    assert allowed.problem("/srv/.cache") is None
    assert allowed.problem("/srv/.cache/imagenet") is None
    assert "hidden folders such as .ssh" in (allowed.problem("/srv/.cache/.ssh/a") or "")
    assert "not below one" in (allowed.problem("/srv/.ssh") or "")


def test_no_folder_of_a_set_lies_in_that_of_another() -> None:
    paths = ["/data", "/data/team", "/data/team/set", "/data/set", "/data/team/set/team"]
    names = [("team", "set"), ("set", "team"), ("team", "team"), ("data", "set")]
    folders = [own_folder(path, *name) for path in paths for name in names]
    assert len(set(folders)) == len(folders)
    assert not [(a, b) for a in folders for b in folders if a != b and f"{b}/".startswith(f"{a}/")]
    assert named_by(own_folder("/data", "team", "set"), "team", "set") == "/data"
    assert named_by(own_folder("/", "team", "set"), "team", "set") == "/"
    assert named_by(own_folder("/data", "team", "set"), "team", "other") is None


# Sets


@pytest.mark.parametrize("path", ["/etc", "/", "/dev/shm/ok:/home", "/data/../root", "/data/.hidden"])
@pytest.mark.parametrize("driver", ["local", "juicefs"])
async def test_a_set_that_names_another_folder_is_refused_and_nothing_is_made(
    here: SampleDataCluster, path: str, driver: str
) -> None:
    await here.create_secret("files", name="f", storage="s", metaurl="m", bucket="b")
    spec = {"csi": {"driver": driver}, "cache": {"levels": [{"path": path}]}, "secretRef": {"name": "files"}}
    await here.create_set(**spec)
    await here.said("imagenet", "ErrorFolderNotAllowed")
    status = await here.status(SAMPLESETS, "imagenet")
    assert condition(status, "Valid")[0] == "False"
    assert status["message"].startswith("spec.cache: folder /")
    assert not status.get("phase")
    assert await here.get(PERSISTENTVOLUMES, "imagenet", None) is None
    assert await here.get(STATEFULSETS, "imagenet-runtime") is None
    await here.edit(SAMPLESETS, "imagenet", {"cache": {"levels": [{"path": "/data/imagenet"}]}})
    status = await here.phase("Ready")
    assert status["cacheDirs"] == ["/data/imagenet/paddlecloud-cache/default/imagenet"]


@pytest.mark.parametrize("uri", ["file:///etc", "file:///home/me/.ssh", "file:///home/me/platform/x"])
async def test_a_set_whose_source_is_refused_is_not_valid_and_nothing_is_made(
    here: SampleDataCluster, uri: str
) -> None:
    await here.stop_controllers()
    here.options = replace(here.options, sources=HERE, exists=lambda _: True)
    here.start_controllers()
    await here.create_set(csi={"driver": "local"}, source={"uri": uri})
    await here.said("imagenet", "ErrorFolderNotAllowed")
    status = await here.status(SAMPLESETS, "imagenet")
    assert condition(status, "Valid")[0] == "False"
    assert status["message"].startswith(f"spec.source: source {uri}: folder /")
    assert not status.get("phase")
    assert await here.get(STATEFULSETS, "imagenet-runtime") is None
    assert not here.servers.asked("sync")
    await here.edit(SAMPLESETS, "imagenet", {"source": {"uri": "file:///home/me/data"}})
    await here.phase("Ready")
    await here.stop_controllers()
    here.options = replace(here.options, sources=NodeFolders.for_reading({"PADDLECLOUD_READ_ROOTS": ""}))
    here.start_controllers()
    await here.pass_time(60)
    assert (await here.status(SAMPLESETS, "imagenet"))["phase"] == "Ready", "its data is there already"


async def test_a_source_that_does_not_exist_is_reported_before_anything_is_made_and_then_awaited(
    here: SampleDataCluster,
) -> None:
    await here.stop_controllers()
    folders: set[str] = set()
    here.options = replace(here.options, sources=HERE, exists=folders.__contains__)
    here.start_controllers()
    await here.create_set(csi={"driver": "local"}, source={"uri": "file:///home/me/typo"})
    await here.said("imagenet", "ErrorSourceNotExist")
    status = await here.status(SAMPLESETS, "imagenet")
    assert condition(status, "Valid")[0] == "False"
    assert status["message"].startswith("spec.source.uri: /home/me/typo does not exist on this machine")
    assert await here.get(STATEFULSETS, "imagenet-runtime") is None
    folders.add("/home/me/typo")
    await here.phase("Ready")
    folders.clear()
    await here.pass_time(60)
    assert (await here.status(SAMPLESETS, "imagenet"))["phase"] == "Ready", "its data is there already"


async def test_a_source_that_is_a_file_is_answered_with_its_folder(here: SampleDataCluster) -> None:
    await here.stop_controllers()
    here.options = replace(here.options, sources=HERE, exists=lambda _: True, is_file="/home/me/x.npz".__eq__)
    here.start_controllers()
    await here.create_set(csi={"driver": "local"}, source={"uri": "file:///home/me/x.npz"})
    await here.said("imagenet", "ErrorSourceIsFile")
    status = await here.status(SAMPLESETS, "imagenet")
    assert status["message"].endswith("/home/me/x.npz is a file: name the folder that holds it, file:///home/me")
    await here.edit(SAMPLESETS, "imagenet", {"source": {"uri": "file:///home/me"}})
    await here.phase("Ready")


async def test_the_cache_directory_of_mount_options_is_judged_too(here: SampleDataCluster) -> None:
    await here.create_secret("files", name="f", storage="s", metaurl="m", bucket="b")
    csi = {"driver": "juicefs", "juiceFSMountOptions": {"cache-dir": "/etc"}}
    await here.create_set(csi=csi, secretRef={"name": "files"})
    await here.said("imagenet", "ErrorFolderNotAllowed")


async def test_a_volume_whose_cache_is_a_whole_shared_folder_is_not_taken_over(here: SampleDataCluster) -> None:
    """An earlier operator let a set have all of /data: emptying that cache would delete what others keep there."""
    await here.create_secret("files", name="f", storage="s", metaurl="m", bucket="b")
    for obj in original.objects("imagenet", NAMESPACE, secret="files", cache_dir="/data"):
        if obj["kind"] == "PersistentVolume":
            await here.client.create(PERSISTENTVOLUMES, obj)
    await here.create_set(csi={"driver": "juicefs"}, secretRef={"name": "files"})
    await here.said("imagenet", "ErrorFolderNotAllowed")
    assert "delete the set and make it again" in (await here.status(SAMPLESETS, "imagenet"))["message"]


def test_a_mount_of_juicefs_caches_in_the_sets_own_folder() -> None:
    volume = objects.build_volume(case(cache={"levels": [{"path": "/dev/shm/a:/data/b"}]}))
    options = volume["spec"]["csi"]["volumeAttributes"]["mountOptions"]
    own = "paddlecloud-cache/paddle-system/imagenet"
    assert f"cache-dir=/dev/shm/a/{own}:/data/b/{own}" in options.split(",")


def test_a_cache_server_has_no_privileges_but_those_it_needs() -> None:
    spec = objects.build_template(case())["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}
    assert spec["containers"][0]["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "privileged": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"], "add": ["CHOWN", "DAC_OVERRIDE", "FOWNER"]},
    }


# Folders on one machine


def test_an_account_whose_home_is_the_root_folder_does_not_open_the_whole_machine() -> None:
    assert own_folders(Path("/home/me"), Path("/work")) == ("/home/me", "/work", "/tmp", "/var/tmp")
    reading = NodeFolders.for_reading({}, *own_folders(Path("/"), Path("/")))
    assert reading.problem("/tmp/data") is None
    assert "not below one" in (reading.problem("/etc/ssl/private") or "")


HERE = NodeFolders.for_reading({}, "/home/me", "/tmp", closed=("/home/me/platform",))


@pytest.mark.parametrize(
    ("source", "reported"),
    [
        ("file:///home/me/data", None),
        ("file:////home/me/data", None),
        ("file:///tmp/data/", "/tmp of their own"),
        ("file:///tmp", "/tmp of their own"),
        ("s3://bucket/etc", None),
        ("file:///etc/shadow", "not below one"),
        ("file:///home/me/.ssh/", "hidden"),
        ("file:///home/me/../you", "'..'"),
        ("file:///home/me/platform/samplesets/victim", "platform's own"),
    ],
)
def test_a_source_of_this_machine_is_below_an_allowed_folder(source: str, reported: str | None) -> None:
    def build() -> dict[str, Any]:
        return transfer.sync_options(settings(), source=source, sources=HERE)

    if reported is None:
        assert build()["source"].rstrip("/") == source.rstrip("/")
    else:
        with pytest.raises(BadOptions, match=reported):
            build()
    on_a_cluster = transfer.sync_options(settings(), source=source)  # there it is the pod's own file
    assert on_a_cluster["source"].rstrip("/") == source.rstrip("/")


@pytest.mark.parametrize(
    ("source", "no_sync", "goes"),
    [
        ("", False, True),
        ("file:///tmp/data", False, True),
        ("file:///tmp/data/part/", False, True),
        ("file:///tmp/database", False, False),
        ("", True, False),
    ],
)
def test_of_the_machines_tmp_a_job_reads_the_sets_own_source_alone(source: str, no_sync: bool, goes: bool) -> None:
    """The folder is mounted for the import; a set that imports nothing has no such mount."""
    mounted = settings(source={"uri": "file:///tmp/data/"}, noSync=no_sync)
    if goes:
        assert transfer.sync_options(mounted, source=source, sources=HERE)["source"].startswith("file:///tmp/data")
    else:
        with pytest.raises(BadOptions, match=r"copy the data to a folder outside of /tmp"):
            transfer.sync_options(mounted, source=source, sources=HERE)


@pytest.mark.parametrize(
    ("sources", "flags"),
    [
        (None, []),
        (NodeFolders.for_reading({"PADDLECLOUD_READ_ROOTS": ""}, closed=("/own",)), ["Roots=", "Closed=/own"]),
        (NodeFolders.for_reading({"PADDLECLOUD_READ_ROOTS": "/a:/b"}), ["Roots=/a", "Roots=/b"]),
    ],
)
def test_a_cache_server_gets_the_folders_of_the_operator(sources: NodeFolders | None, flags: list[str]) -> None:
    """No folder at all is another rule than no rule."""
    of_a_set = case()
    of_a_set = replace(of_a_set, options=replace(of_a_set.options, sources=sources))
    command = objects.build_template(of_a_set)["spec"]["containers"][0]["command"]
    assert [word for word in command if word.startswith("--source")] == [f"--source{flag}" for flag in flags]


def test_files_of_this_machine_are_never_deleted_by_a_sync() -> None:
    options: dict[str, Any] = {"delete-src": True}
    with pytest.raises(BadOptions, match="never deleted"):
        transfer.sync_options(settings(), source="file:///home/me/x", options=options, sources=HERE)
    assert transfer.sync_options(settings(), source="s3://bucket/x", options=options, sources=HERE)["delete-src"]


async def test_cache_servers_of_this_machine_get_the_rule_and_no_folder_of_it(here: SampleDataCluster) -> None:
    here.options = SampleSetOptions(image="runtime", local_root="/var/lib/sets", sources=HERE, exists=lambda _: True)
    await here.stop_controllers()
    here.start_controllers()
    await here.create_set(source={"uri": "file:///home/me/data"})
    await here.phase("Ready")
    stateful_set = await here.get(STATEFULSETS, "imagenet-runtime")
    assert stateful_set is not None
    pod = stateful_set["spec"]["template"]["spec"]
    assert not [v for v in pod["volumes"] if (v.get("hostPath") or {}).get("path", "").startswith("/home")]
    assert "--sourceRoots=/home/me" in pod["containers"][0]["command"]
    assert "--sourceClosed=/home/me/platform" in pod["containers"][0]["command"]


@pytest.mark.parametrize(("left", "named"), [("s3://other/data/", "s3://other/data/"), ("", "an unknown source")])
async def test_data_of_a_deleted_set_is_not_mixed_with_that_of_another_source(
    here: SampleDataCluster, left: str, named: str
) -> None:
    """The set waits, says what to do, and goes on when the data is gone."""
    there: list[str] = [left]
    await here.stop_controllers()
    here.options = replace(here.options, retained=lambda namespace, name: there[0] if there else None)
    here.start_controllers()
    await here.create_set()
    await here.said("imagenet", "ErrorDataRetained")
    status = await here.status(SAMPLESETS, "imagenet")
    value, message = condition(status, "Valid")
    assert (value, message) == ("False", status["message"])
    assert named in message
    assert "pdc sampleset rm-data imagenet" in message
    assert "noSync" in message
    assert await here.get(PERSISTENTVOLUMES, "imagenet", None) is None
    there.clear()
    await here.phase("Ready")


@pytest.mark.parametrize(
    ("left", "spec"),
    [
        ("bos://bucket.endpoint/imagenet/", {}),
        ("s3://other/data", {"noSync": True}),
    ],
)
async def test_data_of_a_deleted_set_is_taken_over_from_the_same_source_and_without_an_import(
    here: SampleDataCluster, left: str, spec: Object
) -> None:
    await here.stop_controllers()
    here.options = replace(here.options, retained=lambda namespace, name: left)
    here.start_controllers()
    await here.create_set(**spec)
    await here.phase("Ready")


async def test_a_set_that_has_begun_keeps_its_data_whatever_its_source_was(here: SampleDataCluster) -> None:
    """Sets of earlier releases have no note of it; and a failed import may have left files of a mistaken source."""
    here.servers.ends["sync"] = failed("NotFound: played")
    await here.create_set()
    await here.phase("SyncFailed")
    await here.stop_controllers()
    here.options = replace(here.options, retained=lambda namespace, name: "")
    here.servers.ends["sync"] = done()
    here.start_controllers()
    await here.phase("Ready")
