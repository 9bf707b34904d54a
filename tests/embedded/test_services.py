"""Services with real kubectl: reached by address and name, followed through a rollout without a failed request."""

from __future__ import annotations

import http.client
import socket
import threading
from collections import Counter
from typing import Any

from harness import until
from unit.local.workloads.real import WAIT, Kubectl, apply, read

SERVER = """
import http.server, os, signal, threading, time
class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        body = (os.environ["COLOUR"] + " " + os.environ["HOSTNAME"]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
class Server(http.server.ThreadingHTTPServer):
    daemon_threads = False
    request_queue_size = 128
server = Server(("0.0.0.0", 8080), Answer)
def leave(*_):
    def later():
        time.sleep(0.5)
        server.shutdown()
    threading.Thread(target=later).start()
signal.signal(signal.SIGTERM, leave)
server.serve_forever()
"""


def web(colour: str, *, replicas: int = 2) -> dict[str, Any]:
    labels = {"app": "web"}
    container = {
        "name": "main",
        "image": "python",
        "command": ["python3", "-c", SERVER],
        "env": [{"name": "COLOUR", "value": colour}],
        "ports": [{"name": "http", "containerPort": 8080}],
        "readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"terminationGracePeriodSeconds": 10, "containers": [container]},
            },
        },
    }


def service(**spec: Any) -> dict[str, Any]:
    body = {"selector": {"app": "web"}, "ports": [{"port": 8000, "targetPort": "http"}], **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": body}


def get(ip: str, port: int) -> str:
    connection = http.client.HTTPConnection(ip, port, timeout=60)
    try:
        connection.request("GET", "/")
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def answer(ip: str, port: int) -> str:
    """Nothing where nobody answers."""
    try:
        return get(ip, port)
    except OSError:
        return ""


def served(kubectl: Kubectl) -> str:
    """The Service's address, once somebody answers behind it."""
    kubectl("rollout", "status", "deployment/web", WAIT)
    ip = str(read(kubectl, "service/web")["spec"]["clusterIP"])
    kubectl("wait", "--for=jsonpath={.subsets[0].addresses[1]}", "endpoints/web", WAIT)
    until(lambda: answer(ip, 8000) != "")
    return ip


class Load:
    """Requests without pause, each on its own connection, until stopped."""

    def __init__(self, ip: str, port: int) -> None:
        self._address = (ip, port)
        self._stop = threading.Event()
        self.answers: Counter[str] = Counter()
        self.failures: list[str] = []
        self._threads = [threading.Thread(target=self._run) for _ in range(2)]

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self.answers[get(*self._address).split()[0]] += 1
            except (OSError, http.client.HTTPException) as error:
                self.failures.append(repr(error))

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(timeout=60)


def test_a_rolling_update_under_load_fails_no_request(kubectl: Kubectl) -> None:
    apply(kubectl, web("blue"), service())
    ip = served(kubectl)
    with Load(ip, 8000) as load:
        apply(kubectl, web("green"))
        kubectl("rollout", "status", "deployment/web", WAIT)
        kubectl("wait", "--for=jsonpath={.status.replicas}=2", "deployment/web", WAIT)
        until(lambda: get(ip, 8000).startswith("green"), every=0)
    assert load.failures == []
    assert load.answers["blue"] > 0
    assert load.answers["green"] > 0
    assert get(ip, 8000).startswith("green")


def test_a_service_spreads_connections_resolves_by_name_and_refuses_when_nobody_is_there(
    kubectl: Kubectl, namespace: str
) -> None:
    apply(kubectl, web("blue"), service(type="NodePort"))
    ip = served(kubectl)
    assert len({get(ip, 8000) for _ in range(4)}) == 2
    port = read(kubectl, "service/web")["spec"]["ports"][0]["nodePort"]
    assert get("127.0.0.1", port).startswith("blue")
    pod = read(kubectl, "pods")["items"][0]["metadata"]["name"]
    fetch = f"import urllib.request as u; print(u.urlopen('http://web.{namespace}:8000').read().decode())"
    assert kubectl("exec", pod, "--", "python3", "-c", fetch).stdout.startswith("blue")
    assert "127." in kubectl("get", "endpoints", "web", "--no-headers").stdout
    kubectl("scale", "deployment/web", "--replicas=0")
    kubectl("wait", "--for=delete", "pod", "--selector=app=web", WAIT)

    def refused() -> bool:
        try:
            get(ip, 8000)
        except ConnectionRefusedError:
            return True
        except (OSError, http.client.HTTPException):
            pass  # the proxy has not observed the end of the last pod yet
        return False

    until(refused)


def test_with_session_affinity_a_client_stays_with_its_pod(kubectl: Kubectl) -> None:
    apply(kubectl, web("blue"), service(sessionAffinity="ClientIP"))
    ip = served(kubectl)
    assert len({get(ip, 8000) for _ in range(6)}) == 1


def test_a_port_that_is_taken_is_reported_on_the_service_and_used_once_it_is_free(kubectl: Kubectl) -> None:
    apply(kubectl, web("blue"), service())
    ip = served(kubectl)
    with socket.socket() as squatter:
        squatter.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        squatter.bind((ip, 8001))
        squatter.listen()
        apply(kubectl, service(ports=[{"port": 8001, "targetPort": "http"}]))
        reported = f"cannot listen on {ip}:8001: another program listens there"
        until(lambda: reported in kubectl("get", "events", "--field-selector=reason=PortUnavailable").stdout)
    until(lambda: answer(ip, 8001).startswith("blue"))
