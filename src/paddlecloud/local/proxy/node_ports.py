"""Ports of NodePort services: given out from the range of Kubernetes, kept while the service has them."""

from __future__ import annotations

import hashlib

from paddlecloud.kube import errors
from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.builtin.offers import Offers
from paddlecloud.local.apiserver.objects.admission import WriteOptions
from paddlecloud.local.apiserver.registry import KindInfo
from paddlecloud.local.store.store import Store

SERVICES = "/services"
FIRST, LAST = 30000, 32767
SHARE = (LAST - FIRST + 1) // 2
"""Ports that the Services of one namespace have at most: the others have the rest."""
TYPES = ("NodePort", "LoadBalancer")


class NodePorts:
    """`assign` is a mutator, `confirm` a policy: a large Service is computed in a thread between the two.

    Two platforms on one machine start to search at different places, by the name of their directory.
    """

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self._offers = Offers()
        digest = hashlib.sha256(name.encode()).digest()
        self._next = FIRST + int.from_bytes(digest[:4], "big") % (LAST - FIRST + 1)

    def assign(self, info: KindInfo, obj: Object, old: Object | None) -> None:
        if info.kind != "Service" or info.resource.group:
            return
        spec = obj.get("spec")
        if not isinstance(spec, dict):
            return
        ports = [port for port in spec.get("ports") or () if isinstance(port, dict)]
        if spec.get("type") not in TYPES:
            for port in ports:
                port.pop("nodePort", None)
            return
        self._check_share(obj, old)
        had = {_identity(port): port.get("nodePort") for port in ((old or {}).get("spec") or {}).get("ports") or ()}
        taken = self._taken(but=obj["metadata"])
        for index, port in enumerate(ports):
            wanted = port.get("nodePort") or had.get(_identity(port))
            port["nodePort"] = self._check(wanted, taken, obj, index) if wanted else self._free(taken)
            if not wanted:
                self._offers.note(obj, port["nodePort"])
            taken.add(port["nodePort"])

    def confirm(self, info: KindInfo, obj: Object, old: Object | None, _: WriteOptions) -> None:
        """Refuse ports that another Service got since they were assigned; choose again where the server chose them."""
        spec = obj.get("spec") or {}
        if info.kind != "Service" or info.resource.group or spec.get("type") not in TYPES:
            return
        self._check_share(obj, old)
        taken = self._taken(but=obj["metadata"])
        offered = self._offers.taken_back(obj)
        for index, port in enumerate(spec.get("ports") or ()):
            if port["nodePort"] in offered and port["nodePort"] in taken:
                port["nodePort"] = self._free(taken | {other["nodePort"] for other in spec["ports"]})
            else:
                self._check(port["nodePort"], taken, obj, index)

    def _check_share(self, obj: Object, old: Object | None) -> None:
        """Refuse more ports than one namespace may have. A Service that has them already keeps them."""
        meta, wanted = obj["metadata"], len(obj["spec"].get("ports") or ())
        if wanted <= sum(bool(port.get("nodePort")) for port in ((old or {}).get("spec") or {}).get("ports") or ()):
            return
        if wanted + len(self._taken(but=meta, of=meta.get("namespace", ""))) > SHARE:
            why = f"Forbidden: Services of one namespace have at most {SHARE} node ports together"
            raise errors.invalid("Service", str(meta.get("name", "")), [("spec.ports", "FieldValueForbidden", why)])

    def _check(self, wanted: int, taken: set[int], obj: Object, index: int) -> int:
        if FIRST <= wanted <= LAST and wanted not in taken:
            return wanted
        why = (
            "provided port is already allocated"
            if wanted in taken
            else f"provided port is not in the valid range. The range of valid ports is {FIRST}-{LAST}"
        )
        cause = (f"spec.ports[{index}].nodePort", "FieldValueInvalid", f"Invalid value: {wanted}: {why}")
        raise errors.invalid("Service", str(obj["metadata"].get("name", "")), [cause])

    def _taken(self, *, but: Object, of: str | None = None) -> set[int]:
        """Ports of the Services that are stored, and of those on their way to it; `of` one namespace, or all."""
        mine = (but.get("namespace", ""), but.get("name", ""))
        return {
            port["nodePort"]
            for record in (*self._store.list(SERVICES), *self._store.in_flight(SERVICES))
            if (record.address.namespace, record.address.name) != mine and of in (None, record.address.namespace)
            for port in (record.object.get("spec") or {}).get("ports") or ()
            if port.get("nodePort")
        }

    def _free(self, taken: set[int]) -> int:
        for _ in range(FIRST, LAST + 1):
            port = self._next
            self._next = FIRST if port == LAST else port + 1
            if port not in taken:
                return port
        raise errors.ServiceUnavailable("every node port is in use: delete services that are no longer needed")


def _identity(port: Object) -> tuple[str, object, str]:
    return str(port.get("name", "")), port.get("port"), str(port.get("protocol", "TCP"))
