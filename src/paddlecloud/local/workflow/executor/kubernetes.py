"""Requests to the API server with the ServiceAccount of the pod: what `kubectl` does in Argo's executor."""

from __future__ import annotations

import http.client
import json
import os
import ssl
from typing import Any
from urllib.parse import quote, urlencode

from paddlecloud.local.workflow.executor.orders import ExecutorError

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
Object = dict[str, Any]


class ApiRefused(ExecutorError):
    """An answer of the API server; `code` is its status."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Kind:
    """Where objects of a kind are served."""

    def __init__(self, group_version: str, entry: Object) -> None:
        self.root = f"/api/{group_version}" if "/" not in group_version else f"/apis/{group_version}"
        self.plural, self.namespaced, self.name = entry["name"], bool(entry["namespaced"]), entry["kind"]

    def path(self, namespace: str, name: str = "") -> str:
        place = f"{self.root}/namespaces/{quote(namespace)}" if self.namespaced else self.root
        return f"{place}/{self.plural}/{quote(name)}" if name else f"{place}/{self.plural}"


class Server:
    def __init__(self) -> None:
        try:
            self._host, self._port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
            with open(f"{ACCOUNT}/namespace", encoding="utf-8") as file:
                self.namespace = file.read().strip()
            self._context = ssl.create_default_context(cafile=f"{ACCOUNT}/ca.crt")
        except (KeyError, OSError) as why:
            raise ExecutorError(f"the pod has no token of its ServiceAccount: {why}") from None

    def request(
        self, method: str, path: str, body: Any = None, *, kind: str = "application/json", **query: str
    ) -> Object:
        with open(f"{ACCOUNT}/token", encoding="utf-8") as file:
            headers = {"Authorization": f"Bearer {file.read().strip()}", "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = kind
        connection = http.client.HTTPSConnection(self._host, int(self._port), context=self._context, timeout=60)
        try:
            connection.request(
                method,
                f"{path}?{urlencode(query)}" if query else path,
                body=None if body is None else json.dumps(body),
                headers=headers,
            )
            answer = connection.getresponse()
            text = answer.read()
        except OSError as why:
            raise ExecutorError(f"the API server does not answer: {why}") from None
        finally:
            connection.close()
        try:
            found = json.loads(text)
        except ValueError:
            found = {}
        if answer.status >= 400:
            raise ApiRefused(answer.status, str(found.get("message") or f"{method} {path}: {answer.status}"))
        return dict(found)

    def kind_of(self, manifest: Object) -> Kind:
        version, kind = str(manifest.get("apiVersion", "")), str(manifest.get("kind", ""))
        if not version or not kind:
            raise ExecutorError("the manifest needs apiVersion and kind")
        path = f"/api/{version}" if "/" not in version else f"/apis/{version}"
        try:
            served = self.request("GET", path)["resources"]
        except ApiRefused as why:
            if why.code == 404:
                raise ExecutorError(f"no matches for kind {kind} in version {version}") from None
            raise
        for entry in served:
            if entry["kind"] == kind and "/" not in entry["name"]:
                return Kind(version, entry)
        raise ExecutorError(f"no matches for kind {kind} in version {version}")

    def kind_called(self, word: str) -> Kind:
        """As kubectl: the plural, singular, short name or kind, with `.group` after it or not."""
        name, _, group = word.lower().partition(".")
        groups = [each["preferredVersion"]["groupVersion"] for each in self.request("GET", "/apis")["groups"]]
        for version in ("v1", *groups):
            of = version.rpartition("/")[0]
            if group and of != group:
                continue
            path = f"/api/{version}" if "/" not in version else f"/apis/{version}"
            for entry in self.request("GET", path).get("resources") or ():
                names = (entry["name"], entry.get("singularName"), entry["kind"].lower(), *entry.get("shortNames", ()))
                if "/" not in entry["name"] and name in names:
                    return Kind(version, entry)
        raise ExecutorError(f"the server has no resource type {word!r}")
