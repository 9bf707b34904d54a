"""`make demo`: the embedded platform at work, from nothing to cached data, two trained models and a served one.

Everything is done by the commands a user would type; each is shown before it runs. The platform lives in .cache/demo
and is stopped at the end; its objects and logs stay for `pdc up --data .cache/demo`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parent.parent
DATA = ROOT / ".cache" / "demo"
PICTURES = 2560
SAMPLES = """\
apiVersion: batch.paddlepaddle.org/v1alpha1
kind: SampleSet
metadata: {{name: digits}}
spec: {{source: {{uri: "file://{folder}"}}}}
"""
JOBS = (
    ("digits", "examples/digits/train.yaml", "two workers read it there, data parallel, Paddle 3.3"),
    ("wide-ande-deep", "examples/manual/wide-and-deep.yaml", "the manual's first example: 2 servers + 2 workers"),
)
PATIENCE = 900  # seconds for one job; the first run also builds the Paddle environments


def say(text: str) -> None:
    bold = ("\x1b[1m", "\x1b[0m") if sys.stdout.isatty() and not os.environ.get("NO_COLOR") else ("", "")
    print(f"\n{bold[0]}{text}{bold[1]}", flush=True)


class Shell:
    """Runs commands in view. kubectl where there is one, pdc (which takes the same commands) where there is none."""

    def __init__(self) -> None:
        self.env = {**os.environ, "KUBECONFIG": str(DATA / "kubeconfig")}
        self._pdc = [sys.executable, "-m", "paddlecloud.cli.main"]
        self._kubectl = [shutil.which("kubectl")] if shutil.which("kubectl") else self._pdc
        self.kubectl_name = "kubectl" if shutil.which("kubectl") else "pdc"

    def pdc(self, *args: str, check: bool = True) -> int:
        return self._run("pdc", [*self._pdc, *args], check=check)

    def kubectl(self, *args: str, check: bool = True) -> int:
        return self._run(self.kubectl_name, [*self._kubectl, *args], check=check)

    def _run(self, name: str, command: list[str], *, check: bool) -> int:
        words = command[3:] if command[:3] == self._pdc else command[1:]
        shown = " ".join([name, *(os.path.relpath(w, ROOT) if w.startswith(str(ROOT)) else w for w in words)])
        print(f"$ {shown}", flush=True)
        done = subprocess.run(command, env=self.env, cwd=ROOT, check=False)
        if check and done.returncode != 0:
            sys.exit(f"`{shown}` exited {done.returncode}; see {DATA / 'platform.log'}")
        return done.returncode

    def read(self, *args: str) -> dict[str, object]:
        done = subprocess.run([*self._kubectl, *args, "-o", "json"], env=self.env, capture_output=True, check=True)
        found: dict[str, object] = json.loads(done.stdout)
        return found


def watch(shell: Shell, job: str) -> str:
    """Follow a job to its end, one line per change."""
    began, last = time.monotonic(), ""
    while time.monotonic() - began < PATIENCE:
        status = shell.read("get", "paddlejob", job).get("status") or {}
        assert isinstance(status, dict)
        roles = " ".join(f"{role} {status[role].get('ready', '')}" for role in ("ps", "worker") if role in status)
        line = f"{status.get('phase', 'Pending')}  {roles}  {status.get('message', '')}".rstrip()
        if line != last:
            print(f"  {time.monotonic() - began:5.1f} s  {line}", flush=True)
            last = line
        if status.get("phase") in ("Completed", "Failed"):
            return str(status["phase"])
        time.sleep(0.3)
    return "TimedOut"


def cache(shell: Shell) -> None:
    """Generated pictures become a SampleSet: imported, and cached on the node that will train with them."""
    folder = ROOT / "build" / "demo-pictures"  # no folder of the platform, which sets may not read
    sys.path.insert(0, str(ROOT / "examples" / "programs"))
    from digits import write

    write(folder, PICTURES, seed=1000)
    (DATA / "samples.yaml").write_text(SAMPLES.format(folder=folder))
    shell.kubectl("apply", "-f", str(DATA / "samples.yaml"))
    shell.pdc("wait", "sampleset/digits", "--for=condition=Ready", f"--timeout={PATIENCE}s")
    shell.pdc("samplejob", "warmup", "digits")
    shell.kubectl("get", "sampleset")


SEVEN = ("11111", "00001", "00010", "00100", "01000", "01000", "01000")
SIDE, LEFT, TOP = 16, 3, 1


def drawn() -> list[list[float]]:
    """A seven as the training programs draw it: two pixels for one, on 16 x 16."""
    rows = [[0.0] * SIDE for _ in range(SIDE)]
    for y in range(2 * len(SEVEN)):
        for x in range(2 * len(SEVEN[0])):
            rows[TOP + y][LEFT + x] = float(SEVEN[y // 2][x // 2])
    return rows


def ask(url: str) -> int:
    """What the served model takes the drawing for."""
    body = json.dumps({"feed": [{"image": [drawn()]}]}).encode()
    request = urllib.request.Request(f"{url}/digits/prediction", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        (scores,) = next(iter(json.load(answer)["result"].values()))
    return max(range(10), key=scores.__getitem__)


def serve(shell: Shell) -> bool:
    shell.kubectl("delete", "pds", "digits", "--ignore-not-found")
    shell.kubectl("apply", "-f", "examples/digits/serve.yaml")
    shell.pdc("wait", "pds/digits", "--for=condition=Ready", "--timeout=300s")
    shell.kubectl("get", "pds")
    status = shell.read("get", "pds", "digits")["status"]
    assert isinstance(status, dict)
    print("  asking it what this is:")
    for row in drawn():
        print("    " + "".join(" #"[int(dot)] * 2 for dot in row).rstrip())
    began = time.monotonic()
    number = ask(status["url"])
    print(f"  {status['url']}/digits/prediction says: {number}   ({(time.monotonic() - began) * 1000:.0f} ms)")
    return number == 7


def main() -> int:
    shell = Shell()
    say("1. The platform: a Kubernetes API, a scheduler and a kubelet in one process, no container engine, no root")
    try:
        shell.pdc("up", "--data", str(DATA))
        shell.kubectl("get", "nodes", "-o", "wide")
        say(f"2. {PICTURES:,} pictures become a SampleSet: imported once, cached on the node that trains with them")
        cache(shell)
        for number, (job, path, what) in enumerate(JOBS, start=3):
            say(f"{number}. {what}")
            shell.kubectl("delete", "paddlejob", job, "--ignore-not-found")
            shell.kubectl("apply", "-f", path)
            print("  the first run builds the image's environment (Paddle, some hundred MB); later runs reuse it")
            phase = watch(shell, job)
            shell.kubectl("logs", f"{job}-worker-0", "--tail=6", check=False)
            if phase != "Completed":
                sys.exit(f"{job} ended as {phase}; `pdc up --data {DATA}` and `pdc describe pdj/{job}` tell more")
        say(f"{len(JOBS) + 3}. The model of the first job behind a URL, scaled with its load, down to zero")
        answered = serve(shell)
        say("What happened")
        shell.kubectl("get", "samplesets,paddlejobs,pods")
        shell.kubectl("get", "sampleset", "digits", "-o", "jsonpath=reads of the pictures: {.status.reads}{'\\n'}")
    finally:
        shell.pdc("down", "--data", str(DATA), "-y")
    say("Where to look next")
    print(f"  pdc up --data {DATA.relative_to(ROOT)}          bring it back, objects and logs included")
    print("  pdc describe pdj/wide-ande-deep    why a job is as it is")
    print("  pdc serve FOLDER                   a model of your own behind a URL")
    print("  examples/manual/                   every YAML of the manual")
    print("  docs/walkthrough.md                one PaddleJob, from apply to Completed, file by file")
    return 0 if answered else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print(f"\ninterrupted; `pdc up --data {os.path.relpath(DATA)}` brings the platform back", file=sys.stderr)
        sys.exit(130)
