"""Service addresses: every ClusterIP service gets its own loopback address, which the proxy listens on."""

from __future__ import annotations

import ipaddress
from collections import ChainMap

from paddlecloud.kube import errors
from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.builtin.offers import Offers
from paddlecloud.local.apiserver.objects.admission import WriteOptions
from paddlecloud.local.apiserver.registry import KindInfo
from paddlecloud.local.store.log import Op
from paddlecloud.local.store.record import Record
from paddlecloud.local.store.store import Store
from paddlecloud.local.store.watch import Change

COLLECTION = "/services"
_RESERVED = 10  # addresses at the start that are not given out; the first is the API server's own


class ClusterIPs:
    """`assign` is a mutator, `confirm` a policy: a large Service is computed in a thread between the two.

    Addresses in use follow the store; the next free one is found from where the last search ended.

    Nothing is reserved: an address is taken by the write that stores it, so a dry run or a refused write takes none.
    """

    def __init__(self, store: Store, network: ipaddress.IPv4Network, *, start: int) -> None:
        self._store = store
        self._used: dict[str, str] = {}
        self._offers = Offers()
        self._network = network
        self._next = start + _RESERVED
        for record in store.list(COLLECTION):
            self._note(record)
        store.subscribe(self._on_change)

    def _on_change(self, change: Change) -> None:
        if change.record.address.collection != COLLECTION:
            return
        if change.op is Op.DELETE or not _address_in(change.record):
            self._used = {ip: key for ip, key in self._used.items() if key != change.record.address.key()}
        else:
            self._note(change.record)

    def _note(self, record: Record) -> None:
        if address := _address_in(record):
            self._used[address] = record.address.key()

    def _taken(self) -> ChainMap[str, str]:
        """Addresses of the services that are stored, and of those on their way to it."""
        coming = self._store.in_flight(COLLECTION)
        return ChainMap({_address_in(record): record.address.key() for record in coming}, self._used)

    def assign(self, info: KindInfo, obj: Object, old: Object | None) -> None:
        if info.kind != "Service" or info.resource.group:
            return
        spec = obj.get("spec")
        if not isinstance(spec, dict):
            return
        earlier = (old or {}).get("spec", {})
        if spec.get("type") == "ExternalName":
            _give_up_address(spec, earlier)
            return
        before = earlier.get("clusterIP")
        if before and not spec.get("clusterIP"):
            spec["clusterIP"] = before
        chosen = spec.get("clusterIP")
        if not chosen:
            spec["clusterIP"] = self._free()
            self._offers.note(obj, spec["clusterIP"])
        elif chosen not in ("None", before):
            self._check(str(chosen), obj["metadata"])
        spec["clusterIPs"] = [spec["clusterIP"]]
        spec.setdefault("ipFamilies", ["IPv4"])
        spec.setdefault("ipFamilyPolicy", "SingleStack")
        spec.setdefault("internalTrafficPolicy", "Cluster")

    def confirm(self, info: KindInfo, obj: Object, old: Object | None, _: WriteOptions) -> None:
        """Refuse an address that another Service got since it was assigned; choose again where the server chose it."""
        if info.kind != "Service" or info.resource.group:
            return
        spec = obj.get("spec") or {}
        chosen = spec.get("clusterIP")
        if chosen in self._offers.taken_back(obj):
            if chosen in self._taken():
                spec["clusterIP"] = self._free()
                spec["clusterIPs"] = [spec["clusterIP"]]
        elif chosen and chosen not in ("None", (old or {}).get("spec", {}).get("clusterIP")):
            self._check(str(chosen), obj["metadata"])

    def _check(self, chosen: str, meta: Object) -> None:
        """The proxy listens at a Service's address: it must be one of ours, and nobody else's."""
        try:
            inside = ipaddress.ip_address(chosen) in self._network
        except ValueError:
            return  # validation refuses it in better words
        if inside and chosen not in self._taken():
            return
        why = (
            "provided IP is already allocated"
            if inside
            else f"the provided IP ({chosen}) is not in the valid range. The range of valid IPs is {self._network}"
        )
        text = f'Invalid value: ["{chosen}"]: failed to allocate IP {chosen}: {why}'
        cause = ("spec.clusterIPs", "FieldValueInvalid", text)
        raise errors.invalid("Service", str(meta.get("name", "")), [cause])

    def _free(self) -> str:
        size = self._network.num_addresses - 1  # the last address is a broadcast
        taken = self._taken()
        for _ in range(_RESERVED, size):
            text = str(self._network[self._next])
            self._next = _RESERVED if self._next + 1 >= size else self._next + 1
            if text not in taken:
                return text
        raise errors.ServiceUnavailable("every service address is in use: delete services that are no longer needed")


def _give_up_address(spec: Object, before: Object) -> None:
    """What the server chose goes when a Service becomes an ExternalName, unless its author changed it as well: that is
    refused (dropTypeDependentFields in kubernetes/pkg/registry/core/service)."""
    for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if field in spec and spec[field] == before.get(field):
            del spec[field]


def _address_in(record: Record) -> str:
    address = record.object.get("spec", {}).get("clusterIP") or ""
    return "" if address == "None" else str(address)
