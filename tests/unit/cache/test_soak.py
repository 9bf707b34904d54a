"""A hundred thousand real files through the server, killed in the middle of everything."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from harness import until
from unit.cache.nuwa import Nuwa

FILES = 100_000
FOLDERS = 200


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_large_set_survives_kills_and_its_figures_stay_cheap(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for folder in range(FOLDERS):
        (source / f"{folder:03}").mkdir(parents=True)
    for number in range(FILES):
        (source / f"{number % FOLDERS:03}" / f"{number:06}.jpg").write_bytes(b"%08d" % number * 16)
    server = Nuwa(tmp_path).start()
    server.put("sync", "sync", {"source": f"file://{source}", "destination": f"file://{server.data}", "threads": 4})
    for share in (0.2, 0.5, 0.8):
        until(lambda share=share: server.get("sync")["progress"]["files"] > share * FILES, timeout=600)
        server.stop(signal.SIGKILL)
        server.start()
    job = server.wait("sync", timeout=900)
    assert job["state"] == "Succeeded", job
    assert job["progress"]["files"] == FILES
    until(lambda: server.status()["totalFiles"] == FILES)
    assert server.status()["totalBytes"] == 128 * FILES

    server.put("warm", "warmup")
    until(lambda: server.get("warm")["progress"]["files"] > 0.3 * FILES, timeout=600)
    server.stop(signal.SIGKILL)
    server.start()
    job = server.wait("warm", timeout=900)
    assert job["coverage"] == {"planned": FILES, "cached": FILES, "missing": []}
    until(lambda: server.status()["cachedFiles"] == FILES)

    before = cpu_seconds(server.process.pid)
    for _ in range(10):
        began = time.monotonic()
        assert server.status()["cachedFiles"] == FILES
        until(lambda began=began: time.monotonic() - began > 1.0)  # figures are a second old at most
    assert cpu_seconds(server.process.pid) - before < 0.5, "figures are walked for, not kept"
    server.stop()


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100
