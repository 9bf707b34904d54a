"""What `make test-cluster` runs: CI's choice, or the full tier in parts that can each be repeated alone.

    python -m cluster.tier core [PART …]      the tests marked `core`, on one cluster
    python -m cluster.tier core --lanes 2     the same on two clusters at a time, which is what `.ci/run` runs
    python -m cluster.tier full [PART …]      all parts, or the named ones, each on a cluster of its own
    python -m cluster.tier full --lanes 2     two parts at a time: they mostly wait for pods

A part takes at most 25 minutes on two cores, the building of engines not counted. Every test file for a cluster
belongs to exactly one part (`test_tier.py`). A part that is green is noted in `seen.yaml` with its commit and date;
docs/full-tier.md shows that.
"""

from __future__ import annotations

import argparse
import datetime
import fcntl
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as xml
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any, NamedTuple

import yaml

from e2e import programs, record
from tools import commit

from .harness.cluster import ADDONS
from .harness.engines import BASE
from .harness.lanes import Lane, open_lanes
from .harness.layout import Layout

ROOT = Path(__file__).parents[2]
SEEN = Path(__file__).with_name("seen.yaml")
PAGE = ROOT / "docs" / "full-tier.md"
FOLDERS = ("tests/cluster", "tests/scenarios", "tests/conformance")
REQUIRED = "argo,audit,busybox,cluster,juicefs,kfp-backend,knative,nodes,redis,s3,stores,tekton,volcano"
"""What a test on the fixture may not be skipped for: `PDC_REQUIRE` of `tests/harness.py`."""
EVERYWHERE = ("volcano", "knative", "juicefs", "argo")
"""Add-ons of CI's cluster and of that of every part that does not say otherwise."""


class Part(NamedTuple):
    about: str
    files: tuple[str, ...]
    """Globs below the root of the repository."""
    starts_clusters: bool = False
    """Its tests bring up clusters themselves: none may be running."""
    env: Mapping[str, str] = {}
    """More of it than in CI."""
    conformance: bool = False
    """Kubernetes' own suite instead of pytest: it brings up an embedded platform and keeps its own record."""
    addons: tuple[str, ...] = EVERYWHERE


CORE = (("engines", "jobs"), ("workflows", "data", "serving", "api"))
"""Parts that have tests marked `core`. When these run on two clusters, each has one share, of about the same length."""
REQUESTS = 10_000
"""Generated requests that both API servers judge here; CI has half of them."""


PARTS = {
    "lifecycle": Part(
        "clusters come and go, and nothing is left of them",
        ("tests/cluster/test_lifecycle.py",),
        starts_clusters=True,
    ),
    "api": Part(
        "the conformance suite, the documented differences and generated requests, judged by kube-apiserver",
        ("tests/conformance/test_*.py", "tests/cluster/test_differences.py", "tests/cluster/test_verdicts.py"),
        env={"PDC_VERDICTS": str(REQUESTS)},
    ),
    "e2e": Part(
        "Kubernetes' own conformance suite on the embedded platform; skipped are the refused areas of "
        "[conformance.md](conformance.md)",
        (),
        conformance=True,
    ),
    "clients": Part(
        "clients of others, in Go and Python (list below)",
        ("tests/scenarios/test_client*.py",),
    ),
    "engines": Part(
        "the fixture itself: nodes, images, Volcano, Knative, JuiceFS CSI, our controllers under the chart",
        (
            "tests/cluster/test_base.py", "tests/cluster/test_nodes.py", "tests/cluster/test_own_image.py",
            "tests/cluster/test_stand_ins.py",
            "tests/cluster/test_volcano.py", "tests/cluster/test_knative.py", "tests/cluster/test_juicefs.py",
            "tests/cluster/test_operators.py", "tests/cluster/test_harness_*.py", "tests/cluster/test_tier.py",
        ),
    ),
    "jobs": Part(
        "PaddleJob: modes, policies, gangs, reports, curves, the manual's and Kubeflow's YAML, pdc",
        (
            "tests/scenarios/test_paddlejob.py", "tests/scenarios/test_paddlejob_[glmprs]*.py",
            "tests/scenarios/test_kubeflow_paddlejob.py", "tests/scenarios/test_manual_yaml.py",
            "tests/scenarios/test_pdc.py", "tests/scenarios/test_visualdl.py",
        ),
    ),
    "faults": Part(
        "PaddleJob when pods, nodes and the API server fail",
        (
            "tests/scenarios/test_paddlejob_chaos.py", "tests/scenarios/test_paddlejob_nodes.py",
            "tests/cluster/test_outage.py",
        ),
    ),
    "data": Part(
        "SampleSet and SampleJob on JuiceFS CSI",
        (
            "tests/scenarios/test_sampleset.py", "tests/scenarios/test_tenant*.py", "tests/cluster/test_sampleset*.py",
            "tests/cluster/test_manual_data.py",
        ),
    ),
    "serving": Part(
        "PaddleService on Knative and without, the manual's services, models by name, their versions, the suites",
        (
            "tests/cluster/test_paddleservice.py", "tests/cluster/test_manual_services.py",
            "tests/cluster/test_model_*.py", "tests/scenarios/test_model*.py",
        ),
    ),
    "workflows": Part(
        "Argo: its controller, artifacts, its command line, its examples; the manual's pipeline; pipelines of kfp 2",
        ("tests/cluster/test_argo.py", "tests/scenarios/test_pipeline*.py"),
    ),
    "kfp": Part(
        "the real backend of Kubeflow Pipelines: both kfp clients, our components, files that kfp 2 compiled",
        ("tests/scenarios/test_kfp_backend.py",),
        addons=("volcano", "argo", "kfp"),
    ),
    "tekton": Part(
        "Tekton builds an image of a suite in a pod, pushes it, and a node pulls it",
        ("tests/cluster/test_tekton.py",),
        addons=("tekton", "tekton-triggers"),
    ),
    "chart": Part(
        "the Helm chart: installed, upgraded, rolled back, side by side, its rights, its dashboard; plain manifests",
        (
            "tests/cluster/test_chart*.py", "tests/cluster/test_dashboard.py",
            "tests/cluster/test_engine_discovery.py", "tests/cluster/test_plain_manifests.py",
        ),
    ),
}  # fmt: skip


class Client(NamedTuple):
    """A client of others, and where it is run."""

    name: str
    embedded: str
    cluster: str
    word: str = ""
    """What names it in both files; its name, unless it says otherwise."""


_PYTHON = ("tests/scenarios/test_clients_python.py",) * 2
CLIENTS = (
    Client("client-go and the apiextensions client", *("tests/scenarios/test_client_go.py",) * 2, word="client-go"),
    *(Client(name, *_PYTHON) for name in ("kr8s", "lightkube", "pykube-ng", "kubernetes_asyncio", "kopf")),
    Client("helm", "tests/conformance/test_helm.py", "tests/conformance/test_helm.py"),
    Client("argo", "tests/embedded/test_argo_cli.py", "tests/cluster/test_argo.py"),
)


def files_of(part: Part) -> list[str]:
    return sorted(str(path.relative_to(ROOT)) for glob in part.files for path in ROOT.glob(glob))


# --- running ---


def run_core(names: Sequence[str], lanes: int) -> int:
    """The tests marked `core` of these parts; of all parts those that start clusters themselves come first, alone.

    With two lanes the others share two clusters at the same time.
    """
    _prepare(EVERYWHERE)
    if names:
        return _run_core_on_one_cluster(names)
    if status := _pytest("-m", "core", *files_of(PARTS["lifecycle"])):
        return status
    if lanes == 1:
        return _run_core_on_one_cluster([name for share in CORE for name in share])
    with open_lanes(len(CORE)) as opened, ThreadPoolExecutor(len(CORE)) as pool:
        return max(pool.map(_run_core_in_lane, opened, CORE))


def _run_core_in_lane(lane: Lane, names: Sequence[str]) -> int:
    status, output = _run_in_lane(f"core{lane.number}", lane, "core", *names)
    print(output, flush=True)
    return status


def _run_core_on_one_cluster(names: Sequence[str]) -> int:
    """Tests of the API alone run beside the others: they share nothing but the API server, and the others mostly wait
    for pods."""
    others = [file for name in names if name != "api" for file in files_of(PARTS[name])]
    beside = files_of(PARTS["api"]) if "api" in names else []
    with _cluster(EVERYWHERE) as env, tempfile.TemporaryFile() as output:
        started = [
            _started("pytest", "-m", "core", "--durations=20", *files, output=where, **env)
            for files, where in ((beside, output), (others, None))
            if files
        ]
        statuses = [each.wait() for each in started]
        output.seek(0)
        print(output.read().decode(errors="replace"), flush=True)
    return max(statuses)


def run_part(name: str) -> int:
    part = PARTS[name]
    report = ROOT / ".cache" / "full-tier" / f"{name}.xml"
    report.parent.mkdir(parents=True, exist_ok=True)
    # xunit1 alone has properties of tests, such as the number of requests that were generated.
    arguments = ["-o", "junit_family=xunit1", f"--junitxml={report}", *files_of(part)]
    if part.conformance:
        programs.find_or_build(print)
    else:
        _prepare(part.addons)
    began = time.monotonic()  # what is built once does not count
    if part.conformance:
        status = _python("e2e", PYTHONPATH=str(ROOT / "tests"))
    else:
        with nullcontext({}) if part.starts_clusters else _cluster(part.addons) as env:
            status = _pytest(*arguments, **part.env, **env)
    print(f"part {name}: exit {status} after {time.monotonic() - began:.0f} s", flush=True)
    if status == 0:
        counts = conformance_counts(record.load(record.EMBEDDED)) if part.conformance else pytest_counts(report)
        note(name, counts, seconds=time.monotonic() - began)
    return status


def run_parts(names: Sequence[str], lanes: int) -> list[str]:
    """Which of them are not green. Those that start clusters themselves look for what is left of them anywhere on the
    machine, so nothing runs beside them."""
    failed = [name for name in names if PARTS[name].starts_clusters and run_part(name)]
    others = [name for name in names if not PARTS[name].starts_clusters]
    if lanes == 1:
        return failed + [name for name in others if run_part(name)]
    _prepare(sorted({addon for name in others for addon in PARTS[name].addons}))
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    for name in sorted(others, key=_expected_minutes, reverse=True):
        waiting.put(name)

    def work(lane: Lane) -> None:
        while True:
            try:
                name = waiting.get_nowait()
            except queue.Empty:
                return
            if _run_part_in_lane(name, lane):
                failed.append(name)

    with open_lanes(lanes) as opened:
        workers = [threading.Thread(target=work, args=(lane,)) for lane in opened]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    return failed


def _expected_minutes(name: str) -> float:
    """The longest begin: a short one at the end keeps one lane waiting for less."""
    return float(load_seen().get(name, {}).get("minutes", 25))


def _run_part_in_lane(name: str, lane: Lane) -> int:
    status, output = _run_in_lane(name, lane, "full", name)
    lines = output.splitlines()
    print("\n".join(lines[-40:] if status else [line for line in lines if line.startswith("part ")]), flush=True)
    return status


def _run_in_lane(label: str, lane: Lane, *words: str) -> tuple[int, str]:
    """The exit status of this module with these words, and what it wrote."""
    output = ROOT / ".cache" / "full-tier" / f"{label}.log"
    output.parent.mkdir(parents=True, exist_ok=True)
    print(f"{' '.join(words)} begins in lane {lane.number}: {output.relative_to(ROOT)}", flush=True)
    command = [*lane.prefix, sys.executable, "-m", "cluster.tier", *words]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "tests"), **lane.environment}
    with output.open("wb") as log:
        status = subprocess.run(command, cwd=ROOT, env=env, stdout=log, stderr=log, check=False).returncode
    return status, output.read_text(errors="replace")


def _prepare(addons: Sequence[str]) -> None:
    """No cluster runs, and its engines are built: that takes minutes, once, more than the time limit of any test."""
    _harness("down")
    if os.geteuid() == 0:  # without root nothing can be started, which is what the tests then say
        _harness("build", *BASE, *(ADDONS[name][0] for name in addons))


@contextmanager
def _cluster(addons: Sequence[str]) -> Iterator[dict[str, str]]:
    """With these add-ons, for as long as the context is open; the environment of tests on it."""
    _harness("up", "--nodes", "3", *(word for name in addons for word in ("--with", name)))
    try:
        required = f"{os.environ.get('PDC_REQUIRE', '')},{REQUIRED}"
        yield {"PDC_KUBECONFIG": str(Layout.default().kubeconfig), "PDC_REQUIRE": required, "PDC_DISPOSABLE": "1"}
    finally:
        _harness("down")


def _pytest(*arguments: str, **env: str) -> int:
    return _python("pytest", *arguments, **env)


def _python(module: str, *arguments: str, **env: str) -> int:
    with _started(module, *arguments, **env) as program:
        return program.wait()


def _started(module: str, *arguments: str, output: IO[bytes] | None = None, **env: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", module, *arguments]
    cluster = {"PDC_CLUSTER": "1"} if module == "pytest" else {}
    return subprocess.Popen(command, cwd=ROOT, env={**os.environ, **cluster, **env}, stdout=output, stderr=output)


def _harness(*arguments: str) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    done = subprocess.run([sys.executable, "-m", "cluster.harness", *arguments], cwd=ROOT, env=env, check=False)
    if done.returncode:
        sys.exit(done.returncode)  # it has said why


# --- what was seen green, and where ---


def note(name: str, counts: Mapping[str, int], *, seconds: float) -> None:
    """Keep that a part was green: on which commit, when, with how many tests; and show it in the docs."""
    today, minutes = datetime.date.today().isoformat(), round(seconds / 60, 1)
    with SEEN.open("a") as locked:
        fcntl.flock(locked, fcntl.LOCK_EX)  # a part in another lane may end at the same time
        seen = load_seen()
        seen[name] = {"commit": commit.name(), "date": today, "minutes": minutes, **counts}
        SEEN.write_text(yaml.safe_dump(seen, sort_keys=True), encoding="utf-8")
        PAGE.write_text(render(seen), encoding="utf-8")


def pytest_counts(report: Path) -> dict[str, int]:
    """Of pytest's report: tests, and the generated requests that a test counted by itself."""
    suite = xml.parse(report).getroot().find("testsuite")
    assert suite is not None, "pytest writes one suite"
    skipped = int(suite.get("skipped", 0))
    requests = sum(int(each.get("value", 0)) for each in suite.iter("property") if each.get("name") == "requests")
    counts = {"passed": int(suite.get("tests", 0)) - skipped, "skipped": skipped}
    return {**counts, "requests": requests} if requests else counts


def conformance_counts(kept: record.Record) -> dict[str, int]:
    states = list(kept.states.values())
    return {"passed": states.count("passed"), "skipped": states.count("refused")}


def load_seen() -> dict[str, dict[str, Any]]:
    return yaml.safe_load(SEEN.read_text(encoding="utf-8")) or {} if SEEN.exists() else {}


def render(seen: Mapping[str, Mapping[str, Any]]) -> str:
    lines = [
        "<!-- Written by `make test-cluster` (tests/cluster/tier.py); a part that is green enters its row. -->",
        "",
        "# The full tier, part by part",
        "",
        "CI runs `make test` and the tests marked `core` on two real clusters at a time (`make test-cluster TIER=core "
        "LANES=2`; without `LANES` on one).",
        "All that is for a cluster is the full tier: `make test-cluster` runs it part by part,",
        "`make test-cluster PART=NAME` one part, `make test-cluster LANES=2` two at a time, each on a cluster of its",
        "own.",
        "A `+` behind a commit means that there were changes on top of it.",
        "",
        "| Part | What it shows | Last green on | When | Tests | Minutes |",
        "|---|---|---|---|---|---|",
    ]
    for name, part in PARTS.items():
        row = seen.get(name)
        cells = ["never", "–", "–", "–"]
        if row is not None:
            cells = [f"`{row['commit']}`", row["date"], _tests(row), str(row["minutes"])]
        lines.append(f"| {name} | {part.about} | " + " | ".join(cells) + " |")
    lines += [
        "",
        "## Clients of others",
        "",
        "Each is run as its users run it, on the embedded platform in `make test` and on the cluster in a part.",
        "",
        "| Client | Embedded platform | Cluster | Part |",
        "|---|---|---|---|",
        *(
            f"| {client.name} | `{client.embedded}` | `{client.cluster}` | {part_of(client.cluster)} |"
            for client in CLIENTS
        ),
    ]
    return "\n".join(lines) + "\n"


def _tests(row: Mapping[str, Any]) -> str:
    skipped = [f"{row['skipped']} skipped"] if row["skipped"] else []
    requests = [f"{row['requests']:,} generated requests"] if "requests" in row else []
    return ", ".join([f"{row['passed']} passed", *skipped, *requests])


def part_of(file: str) -> str:
    return next(name for name, part in PARTS.items() if file in files_of(part))


def main() -> int:
    parser = argparse.ArgumentParser(prog="cluster.tier", description="Tests on a real Kubernetes on this machine.")
    parser.add_argument("tier", choices=["core", "full"])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; default: all")
    parser.add_argument("--lanes", type=int, default=1, help="clusters at the same time; each needs some 6 GiB")
    chosen = parser.parse_args()
    if unknown := set(chosen.parts) - set(PARTS):
        parser.error(f"no part is called {', '.join(sorted(unknown))}, only {', '.join(PARTS)}")
    if chosen.tier == "core":
        if without := set(chosen.parts) - {name for share in CORE for name in share}:
            parser.error(f"no tests of {', '.join(sorted(without))} are marked `core`, or not on a cluster of others")
        return run_core(chosen.parts, chosen.lanes)
    failed = run_parts(chosen.parts or list(PARTS), chosen.lanes)
    if failed:
        print(f"not green: {', '.join(failed)}; repeat with `make test-cluster PART=NAME`")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
