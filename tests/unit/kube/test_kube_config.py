"""Kubeconfig files, in-cluster accounts and credential plugins: who we are and where the server is."""

from __future__ import annotations

import base64
import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from paddlecloud.kube.config import in_cluster, load, proxy_for
from paddlecloud.kube.credentials import Credential, ExecPlugin, TokenFile
from paddlecloud.kube.errors import ConfigError


def kubeconfig(
    *,
    cluster: dict[str, Any] | None = None,
    user: dict[str, Any] | None = None,
    context: dict[str, Any] | None = None,
    name: str = "here",
    current: str | None = None,
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name if current is None else current,
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}.example:6443/", **(cluster or {})}}],
        "users": [{"name": name, "user": user or {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, **(context or {})}}],
    }


def write(path: Path, document: object) -> str:
    path.write_text(yaml.safe_dump(document))
    return str(path)


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_the_current_context_gives_server_namespace_and_token(tmp_path: Path) -> None:
    path = write(tmp_path / "c", kubeconfig(user={"token": "t0ken"}, context={"namespace": "team"}))
    config = load(path, environ={})
    assert (config.server, config.namespace, config.context) == ("https://here.example:6443", "team", "here")
    assert config.source.peek() == Credential("Bearer t0ken")
    assert "t0ken" not in repr(config)


def test_a_file_without_end_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"/dev/zero has more than 16 MiB"):
        load(write(tmp_path / "c", kubeconfig(cluster={"certificate-authority": "/dev/zero"})), environ={})
    source = load(write(tmp_path / "c", kubeconfig(user={"tokenFile": "/dev/zero"})), environ={}).source
    with pytest.raises(ConfigError, match=r"token file /dev/zero has more than 16 MiB"):
        source.fetch()


@pytest.mark.parametrize("token", ["a\r\nX-Remote-User: admin", "a\0b", "ü"])
def test_a_token_that_would_end_its_header_is_refused(tmp_path: Path, token: str) -> None:
    with pytest.raises(ConfigError, match="a line break or another character that no token has"):
        load(write(tmp_path / "c", kubeconfig(user={"token": token})), environ={})
    (tmp_path / "token").write_text(token)
    with pytest.raises(ConfigError, match="a line break or another character that no token has"):
        TokenFile(str(tmp_path / "token")).fetch()


def test_without_a_namespace_it_is_default(tmp_path: Path) -> None:
    assert load(write(tmp_path / "c", kubeconfig()), environ={}).namespace == "default"


def test_files_of_the_list_are_merged_and_the_first_to_say_something_wins(tmp_path: Path) -> None:
    first = write(tmp_path / "1", kubeconfig(name="a", current=""))
    second = write(tmp_path / "2", {**kubeconfig(name="b"), "current-context": "b"})
    third = write(tmp_path / "3", kubeconfig(name="b", cluster={"server": "https://imposter"}, current="a"))
    missing = str(tmp_path / "missing")
    env = {"KUBECONFIG": os.pathsep.join([first, missing, second, third])}
    assert load(environ=env).server == "https://b.example:6443"
    assert load(context="a", environ=env).server == "https://a.example:6443"


def test_without_anything_said_the_file_in_the_home_directory_counts(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    write(tmp_path / ".kube" / "config", kubeconfig(name="home"))
    assert load(environ={"HOME": str(tmp_path)}).context == "home"


def test_certificates_come_inline_or_from_files_next_to_the_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("CA")
    (tmp_path / "key").write_text("KEY")
    path = write(
        tmp_path / "c",
        kubeconfig(
            cluster={"certificate-authority": "ca.crt", "tls-server-name": "kubernetes"},
            user={"client-certificate-data": b64("CERT"), "client-key": "key"},
        ),
    )
    config = load(path, environ={})
    assert (config.ca, config.server_name) == (b"CA", "kubernetes")
    assert config.source.peek() == Credential(None, b"CERT", b"KEY")


def test_basic_auth_and_impersonation(tmp_path: Path) -> None:
    user = {"username": "u", "password": "p", "as": "jane", "as-groups": ["a", "b"]}
    config = load(write(tmp_path / "c", kubeconfig(user=user)), environ={})
    assert config.source.peek() == Credential(f"Basic {b64('u:p')}")
    assert config.headers == [
        ("Impersonate-User", "jane"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
    ]


MISTAKES: dict[str, tuple[object, str, str]] = {
    "not YAML": ("{unclosed", "Malformed", "not valid YAML"),
    "not a mapping": ("- a", "Malformed", "not a mapping"),
    "entries without names": ({"clusters": [{}]}, "Malformed", "named entries"),
    "no current context": (kubeconfig(current=""), "UnknownContext", r"--context \(known: here\)"),
    "unknown context": (kubeconfig(current="there"), "UnknownContext", r"no context 'there'.*known: here"),
    "context without cluster": (kubeconfig(context={"cluster": "x"}), "Malformed", "cluster 'x'"),
    "context without user": (kubeconfig(context={"user": "x"}), "Malformed", "user 'x'"),
    "bad base64": (kubeconfig(user={"client-key-data": "?"}), "Malformed", "client-key-data.*base64"),
    "missing file": (kubeconfig(cluster={"certificate-authority": "nope"}), "MissingFile", "nope"),
    "certificate without key": (kubeconfig(user={"client-certificate-data": b64("C")}), "BadConfig", "without its key"),
    "removed provider": (kubeconfig(user={"auth-provider": {"name": "gcp"}}), "Unsupported", "exec plugin"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_with_its_place_and_the_next_step(tmp_path: Path, mistake: str) -> None:
    content, reason, message = MISTAKES[mistake]
    path = tmp_path / "config"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    with pytest.raises(ConfigError, match=message) as caught:
        load(str(path), environ={})
    assert caught.value.reason == reason


def test_no_configuration_at_all_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="pdc up") as caught:
        load(environ={"HOME": str(tmp_path)})
    assert caught.value.reason == "NoKubeconfig"
    with pytest.raises(ConfigError, match="does not exist"):
        load(str(tmp_path / "nope"), environ={})


def test_inside_a_pod_the_service_account_is_used(tmp_path: Path) -> None:
    for name, content in {"token": "sa-token\n", "ca.crt": "CA", "namespace": "team\n"}.items():
        (tmp_path / name).write_text(content)
    env = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443", "HOME": str(tmp_path)}
    config = in_cluster(environ=env, directory=str(tmp_path))
    assert (config.server, config.namespace, config.ca) == ("https://[fd00::1]:6443", "team", b"CA")
    assert config.source.fetch() == Credential("Bearer sa-token")
    with pytest.raises(ConfigError, match="not inside a cluster"):
        in_cluster(environ={})


def test_a_token_file_is_read_again_every_minute_and_survives_its_rotation(tmp_path: Path) -> None:
    path, now = tmp_path / "token", [1000.0]
    path.write_text("one")
    source = TokenFile(str(path), now=lambda: now[0])
    assert source.peek() is None
    assert source.fetch().authorization == "Bearer one"
    path.write_text("two")
    assert source.peek() == Credential("Bearer one")
    now[0] += 61
    assert source.peek() is None
    assert source.fetch().authorization == "Bearer two"
    path.unlink()
    assert source.fetch().authorization == "Bearer two"
    path.write_text("three")
    assert source.reject()
    assert source.peek() == Credential("Bearer three")
    assert not source.reject(), "the same token again cannot help"
    with pytest.raises(ConfigError, match="token file"):
        TokenFile(str(tmp_path / "none")).fetch()


def plugin(tmp_path: Path, body: str, **spec: Any) -> ExecPlugin:
    """A credential plugin in Python that counts its runs in a file."""
    script = tmp_path / "plugin.py"
    script.write_text(
        f"import json, os, sys, pathlib\nruns = pathlib.Path({str(tmp_path / 'runs')!r})\n"
        f"n = int(runs.read_text()) + 1 if runs.exists() else 1\nruns.write_text(str(n))\n{body}\n"
    )
    spec = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": [str(script)],
        "env": [{"name": "EXTRA", "value": "yes"}],
        **spec,
    }
    return ExecPlugin(spec, cluster={"server": "https://x"}, environ=dict(os.environ), now=lambda: 0.0)


PRINT = (
    """print(json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": %s}))"""
)


def test_a_plugin_is_run_once_until_its_token_expires_or_is_refused(tmp_path: Path) -> None:
    source = plugin(
        tmp_path, PRINT % '{"token": f"t{n}-" + os.environ["EXTRA"], "expirationTimestamp": "1970-01-01T00:01:00Z"}'
    )
    now = [0.0]
    source._now = lambda: now[0]
    assert source.peek() is None
    assert source.fetch() == Credential("Bearer t1-yes")
    assert source.peek() == Credential("Bearer t1-yes")
    now[0] = 55  # a token that is about to expire is not used
    assert source.peek() is None
    assert source.fetch() == Credential("Bearer t2-yes")
    assert source.reject()
    now[0] = 0
    assert source.peek() is None


def test_a_plugin_may_give_a_certificate_and_learns_about_the_cluster(tmp_path: Path) -> None:
    body = 'info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])\n' + PRINT % (
        '{"clientCertificateData": info["spec"]["cluster"]["server"], "clientKeyData": "K"}'
    )
    assert plugin(tmp_path, body, provideClusterInfo=True).fetch() == Credential(None, b"https://x", b"K")


@pytest.mark.parametrize(
    ("body", "spec", "message"),
    [
        ("sys.exit('no session, log in first')", {}, "exited with 1.*log in first"),
        ("print('hello')", {}, "did not print an ExecCredential"),
        (PRINT % '{"token": "t"}', {"interactiveMode": "Always"}, "no terminal to ask on"),
        (PRINT % "{}", {}, "neither a token"),
        (PRINT % '{"token": "t"}', {"apiVersion": "client.authentication.k8s.io/v1beta1"}, "asks for"),
        ("", {"command": "/no/such/program", "installHint": "pip install it"}, "not found; pip install it"),
    ],
)
def test_a_plugin_that_fails_says_why(tmp_path: Path, body: str, spec: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        plugin(tmp_path, body, **spec).fetch()


@pytest.mark.parametrize(
    ("mode", "terminal", "asks"),
    [("Never", True, False), ("IfAvailable", True, True), ("IfAvailable", False, False), ("Always", True, True)],
)
def test_a_plugin_may_ask_only_at_a_terminal(tmp_path: Path, mode: str, terminal: bool, asks: bool) -> None:
    body = 'info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])\n' + PRINT % (
        '{"token": str(info["spec"]["interactive"])}'
    )
    source = plugin(tmp_path, body, interactiveMode=mode)
    source._at_a_terminal = lambda: terminal
    assert source.fetch() == Credential(f"Bearer {asks}")


def test_a_plugin_shows_at_a_terminal_where_to_log_in(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = plugin(tmp_path, "print('open https://login', file=sys.stderr)\n" + PRINT % '{"token": "t"}')
    source._at_a_terminal = lambda: True
    source.fetch()
    assert "open https://login" in capfd.readouterr().err


def test_a_plugin_named_by_a_relative_path_is_found_beside_the_kubeconfig(tmp_path: Path) -> None:
    script = tmp_path / "bin" / "plugin"
    script.parent.mkdir()
    answer = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "t"}}
    script.write_text(f"#!/bin/sh\necho '{json.dumps(answer)}'\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    spec = {"command": "./bin/plugin", "apiVersion": "client.authentication.k8s.io/v1"}
    path = write(tmp_path / "c", kubeconfig(user={"exec": spec}))
    assert load(path, environ=dict(os.environ)).source.fetch() == Credential("Bearer t")


@pytest.mark.parametrize(
    ("server", "environ", "proxy"),
    [
        ("https://a.example", {"HTTPS_PROXY": "http://p:1"}, "http://p:1"),
        ("https://a.example", {"https_proxy": "http://p:1", "NO_PROXY": "b.example,.example"}, None),
        ("https://a.example", {"https_proxy": "http://p:1", "no_proxy": "ample"}, "http://p:1"),
        ("https://a.example", {"https_proxy": "http://p:1", "no_proxy": "*"}, None),
        ("https://127.0.0.1:6443", {"HTTPS_PROXY": "http://p:1"}, None),
        ("https://localhost", {"HTTPS_PROXY": "http://p:1"}, None),
        ("http://a.example", {"HTTPS_PROXY": "http://p:1"}, None),
        ("https://a.example", {}, None),
    ],
)
def test_the_environments_proxy_is_used_but_never_for_this_machine(
    server: str, environ: dict[str, str], proxy: str | None
) -> None:
    assert proxy_for(server, environ) == proxy


@pytest.mark.parametrize(
    ("header", "token"), [("Bearer t0ken", "t0ken"), ("bearer t0ken", "t0ken"), ("Basic dTpw", ""), (None, "")]
)
def test_only_a_bearer_header_has_a_token(header: str | None, token: str) -> None:
    assert Credential(header).token == token
