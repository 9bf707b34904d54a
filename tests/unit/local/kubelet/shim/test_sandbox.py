"""What a container sees of the machine, in every way the machine may allow it."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import PATIENCE
from paddlecloud.local.kubelet.shim.sandbox import Mount, resolve_target
from paddlecloud.local.kubelet.streams.execs import run_exec
from unit.local.kubelet.conftest import ShimHarness, output

MODES = {"root": "", "user": "root"}
if os.getuid() != 0:
    del MODES["root"]


@pytest.fixture(params=MODES)
def forbid(request: pytest.FixtureRequest) -> str:
    return MODES[request.param]


async def run(shims: ShimHarness, script: str, *, forbid: str, **fields: Any) -> tuple[dict[str, Any], str]:
    root = shims.pod_dir(forbid=forbid)
    runtime = await shims.spawn(root)
    await runtime.start(shims.container(root, script, **fields))
    record = await shims.exited(runtime)
    return record, output(root)


SIGNALS = f"""{sys.executable} -c '
import os, subprocess
child = subprocess.Popen(["sleep", "600"])
os.kill(child.pid, 9)
print("own child", child.wait())
try:
    os.kill(-1, 0)  # nothing is sent: the kernel only says whether it would be
    print("everybody")
except PermissionError:
    print("not everybody")
'"""


async def test_a_pod_signals_its_own_processes_and_not_everybody_on_the_machine(
    shims: ShimHarness, forbid: str
) -> None:
    _, text = await run(shims, SIGNALS, forbid=forbid)
    assert text == "own child -9\nnot everybody\n"


async def test_neither_does_a_program_beside_the_container(shims: ShimHarness, forbid: str) -> None:
    root = shims.pod_dir(forbid=forbid)
    runtime = await shims.spawn(root)
    await runtime.start(shims.container(root, "sleep 600"))
    await shims.running(runtime)
    _, text = await run_exec(root, "main", ("sh", "-c", SIGNALS), timeout=PATIENCE)
    assert text == "own child -9\nnot everybody\n"


async def test_volumes_appear_where_the_host_has_nothing(shims: ShimHarness, tmp_path: Path, forbid: str) -> None:
    volume = tmp_path / "volume"
    volume.mkdir()
    (volume / "f").write_text("content\n")
    targets = ("/data", "/home/work/yolo", "/mnt/data-center/x", "/var/run/secrets/deep/place")
    mounts = tuple(Mount(target, str(volume)) for target in targets)
    script = (
        "cat " + " ".join(f"{target}/f" for target in targets) + "; echo new > /data/made; ls -d /usr/bin /etc/passwd"
    )
    record, text = await run(shims, script, forbid=forbid, mounts=mounts)
    assert (record["exit_code"], text) == (0, "content\n" * 4 + "/etc/passwd\n/usr/bin\n")
    assert (volume / "made").read_text() == "new\n"
    assert not Path("/data").exists() or not Path("/data/made").exists()


async def test_a_volume_lies_on_top_of_another_and_of_the_host(shims: ShimHarness, tmp_path: Path, forbid: str) -> None:
    for name in ("outer", "inner"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    mounts = (Mount("/usr/share/deep", str(tmp_path / "inner")), Mount("/usr/share", str(tmp_path / "outer")))
    _, text = await run(shims, "ls /usr/share /usr/share/deep", forbid=forbid, mounts=mounts)
    assert text.split() == ["/usr/share:", "deep", "outer", "/usr/share/deep:", "inner"]


async def test_single_files_replace_those_of_the_host(shims: ShimHarness, tmp_path: Path, forbid: str) -> None:
    (tmp_path / "hosts").write_text("127.9.9.9 somewhere\n")
    mounts = (Mount("/etc/hosts", str(tmp_path / "hosts")), Mount("/brand/new/file", str(tmp_path / "hosts")))
    _, text = await run(shims, "getent hosts somewhere; cat /brand/new/file", forbid=forbid, mounts=mounts)
    assert text.split() == ["127.9.9.9", "somewhere"] * 2


async def test_a_file_bound_into_a_container_shows_what_is_written_to_it_later(
    shims: ShimHarness, tmp_path: Path, forbid: str
) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("127.9.9.9 first\n")
    root = shims.pod_dir(forbid=forbid)
    runtime = await shims.spawn(root)
    await runtime.start(shims.container(root, "sleep 600", mounts=(Mount("/etc/hosts", str(hosts)),)))
    await shims.running(runtime)
    with hosts.open("r+") as handle:
        handle.write("127.9.9.8 second\n")
    code, text = await run_exec(root, "main", ["getent", "hosts", "second"], timeout=PATIENCE)
    assert (code, text.split()) == (0, ["127.9.9.8", "second"])


async def test_read_only_means_it(shims: ShimHarness, tmp_path: Path, forbid: str) -> None:
    mounts = (Mount("/data", str(tmp_path), readonly=True),)
    record, text = await run(shims, "touch /data/x && echo written", forbid=forbid, mounts=mounts)
    assert (record["exit_code"], text.split()[-1]) == (1, "system")


async def test_the_pod_has_its_host_name_and_a_small_dev(shims: ShimHarness, forbid: str) -> None:
    script = "hostname; echo x > /dev/null; head -c 1 /dev/urandom | wc -c; test -e /dev/mem || echo small"
    _, text = await run(shims, script, forbid=forbid)
    assert text.split() == ["host-pod", "1", "small"]


async def test_a_missing_source_is_named(shims: ShimHarness, forbid: str) -> None:
    record, _ = await run(shims, "true", forbid=forbid, mounts=(Mount("/data", "/no/such/source"),))
    assert record["message"] == "volume for /data: /no/such/source does not exist"


async def test_another_user_is_what_was_asked_for(shims: ShimHarness, forbid: str) -> None:
    _, text = await run(shims, "id -u; id -g", forbid=forbid, uid=1234, gid=1234)
    assert text.split() == ["1234", "1234"]


async def test_a_container_is_root_unless_it_says_otherwise(shims: ShimHarness, forbid: str) -> None:
    _, text = await run(shims, "id -u", forbid=forbid)
    assert text == "0\n"


async def test_root_in_a_pod_may_give_files_away(shims: ShimHarness, tmp_path: Path, forbid: str) -> None:
    """As `kubectl cp` does through tar. Where only one identity exists it is a word without effect."""
    folder = tmp_path / "out"
    folder.mkdir()
    script = "cd /out && echo x > f && chown 1234:1234 f && tar c --owner=4321 --group=4321 f | tar x && cat f"
    record, text = await run(shims, script, forbid=forbid, mounts=(Mount("/out", str(folder)),))
    assert (record["exit_code"], text) == (0, "x\n")
    assert (folder / "f").stat().st_uid == (4321 if forbid == "" else os.getuid())


async def test_without_namespaces_programs_run_and_mounts_are_refused_with_the_reason(
    shims: ShimHarness, tmp_path: Path
) -> None:
    root = shims.pod_dir(forbid="root,user")
    runtime = await shims.spawn(root)
    await runtime.start(shims.container(root, "echo plain", mounts=(Mount("/etc/hosts", "/x", optional=True),)))
    assert (await shims.exited(runtime))["exit_code"] == 0
    assert output(root) == "plain\n"
    assert runtime.state["shim"]["mode"] == "none"
    await runtime.start(shims.container(root, "true", name="mounting", mounts=(Mount("/data", str(tmp_path)),)))
    record = await shims.exited(runtime, "mounting")
    assert record["message"].startswith("this machine allows no mount namespaces")
    assert record["message"].endswith("the container mounts /data")


async def test_without_namespaces_everything_a_container_started_still_ends_with_it(shims: ShimHarness) -> None:
    root = shims.pod_dir(forbid="root,user")
    runtime = await shims.spawn(root)
    await runtime.start(shims.container(root, "setsid sleep 600 & echo $!; sleep 0.1"))
    await shims.exited(runtime)
    pid = int(output(root))
    assert not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text()


def test_mount_points_are_found_behind_the_hosts_links(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "loop").symlink_to("loop")
    base = str(tmp_path.resolve())
    assert resolve_target(f"{base}/link/new/x") == f"{base}/real/new/x"
    assert resolve_target(f"{base}/./real/../link") == f"{base}/real"
    with pytest.raises(OSError, match="symbolic links"):
        resolve_target(f"{base}/loop/x")


@pytest.fixture
def in_tmp() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


def own_tmp(folder: Path) -> Mount:
    (folder / "own").mkdir()
    return Mount("/tmp", str(folder / "own"), optional=True)


async def test_a_volume_below_a_link_in_the_machines_tmp_lies_where_the_container_looks_for_it(
    shims: ShimHarness, in_tmp: Path, forbid: str
) -> None:
    (in_tmp / "real").mkdir()
    (in_tmp / "real" / "f").write_text("content\n")
    (in_tmp / "link").symlink_to("real")
    mounts = (own_tmp(in_tmp), Mount(f"{in_tmp}/link", f"{in_tmp}/link"))
    _, text = await run(shims, f"cat {in_tmp}/link/f", forbid=forbid, mounts=mounts)
    assert text == "content\n"


@pytest.mark.parametrize("form", ["{}", "--config={}"])
async def test_an_argument_that_the_private_tmp_hides_is_named_before_the_programs_output(
    shims: ShimHarness, in_tmp: Path, forbid: str, form: str
) -> None:
    script = in_tmp / "train.py"
    script.touch()
    argv = ("sh", "-c", "echo began", form.format(script))
    _, text = await run(shims, "", forbid=forbid, mounts=(own_tmp(in_tmp),), argv=argv)
    note, began = text.splitlines()
    assert note.startswith(f"note: {script} of this machine cannot be seen")
    assert f"--volume {in_tmp}:{in_tmp}" in note
    assert began == "began"


async def test_nothing_is_noted_of_files_that_a_volume_shows_or_that_do_not_exist(
    shims: ShimHarness, in_tmp: Path, forbid: str
) -> None:
    (in_tmp / "train.py").touch()
    mounts = (own_tmp(in_tmp), Mount(str(in_tmp), str(in_tmp)))
    argv = ("sh", "-c", "echo began", f"{in_tmp}/train.py", "/tmp/to/be/made", "/tmp")
    _, text = await run(shims, "", forbid=forbid, mounts=mounts, argv=argv)
    assert text == "began\n"


@pytest.mark.parametrize("what", ["program", "directory"])
async def test_a_start_that_the_private_tmp_prevents_says_so(
    shims: ShimHarness, in_tmp: Path, forbid: str, what: str
) -> None:
    program = in_tmp / "train.sh"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    fields = {"argv": (str(program),)} if what == "program" else {"cwd": str(in_tmp)}
    record, _ = await run(shims, "true", forbid=forbid, mounts=(own_tmp(in_tmp),), **fields)
    assert record["exit_code"] == 128
    named = program if what == "program" else in_tmp
    assert f"{named} of this machine cannot be seen in the container, whose /tmp is its own" in record["message"]
