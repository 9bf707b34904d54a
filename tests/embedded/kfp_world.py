"""kfp's own clients against the platform's pipelines API: programs in their own environments, answers as JSON.

A program has `client`, the arguments of the test as `given`, and prints what it found with `show`.
"""

from __future__ import annotations

import json
import ssl
import subprocess
import textwrap
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple

from harness import Kubectl
from paddlecloud.platform import endpoint
from tools import kfp

_BEGIN = """
import json, logging, sys, warnings
warnings.simplefilter("ignore")
logging.disable(logging.INFO)
import kfp, kfp_server_api
from kfp import dsl, compiler
given = json.loads(sys.argv[1])
def connect(token=given["token"], namespace="kubeflow"):
    return kfp.Client(host=given["host"], existing_token=token, namespace=namespace)
def show(value):
    sys.stdout.write("\\n" + json.dumps(value) + "\\n")
def refusal(call):
    try:
        call()
    except kfp_server_api.ApiException as error:
        body = json.loads(error.body)
        return [error.status, body["code"], body["message"]]
client = connect()
"""

SECONDS = 110


class PipelinesAddress(NamedTuple):
    url: str
    admin: str
    """The administrator's token."""
    home: Path
    kubernetes: str
    authority: Path

    def run(self, generation: int, program: str, **given: Any) -> Any:
        """What the program showed last."""
        words = {"host": self.url, "token": self.admin, "generation": generation, **given}
        done = subprocess.run(
            [str(kfp.python(generation)), "-c", _BEGIN + textwrap.dedent(program), json.dumps(words)],
            capture_output=True, text=True, timeout=SECONDS, cwd=self.home,
            env={"HOME": str(self.home), "PATH": "/usr/bin:/bin"},
        )  # fmt: skip
        assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        return json.loads(done.stdout.rstrip().rpartition("\n")[2])

    def pods_of(self, prefix: str) -> list[str]:
        """Names of pods in the default namespace that begin so."""
        request = urllib.request.Request(
            f"{self.kubernetes}/api/v1/namespaces/kubeflow/pods", headers={"Authorization": f"Bearer {self.admin}"}
        )
        trusted = ssl.create_default_context(cafile=str(self.authority))
        with urllib.request.urlopen(request, context=trusted) as answer:
            items = json.load(answer)["items"]
        return [pod["metadata"]["name"] for pod in items if pod["metadata"]["name"].startswith(prefix)]


def pipelines_address(data: Path, home: Path) -> PipelinesAddress:
    found = endpoint.find(data)
    assert found is not None
    return PipelinesAddress(
        found.pipelines_url,
        (data / "pki" / "admin.token").read_text().strip(),
        home,
        found.url,
        data / "pki" / "ca.crt",
    )


def tenant_token(kubectl: Kubectl, namespace: str, role: str = "edit") -> str:
    """Of an account that holds `role` in this namespace, and nothing elsewhere."""
    kubectl("create", "serviceaccount", "tenant")
    kubectl("create", "rolebinding", "tenant", f"--clusterrole={role}", f"--serviceaccount={namespace}:tenant")
    return kubectl("create", "token", "tenant").stdout.strip()
