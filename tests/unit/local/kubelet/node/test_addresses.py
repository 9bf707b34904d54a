"""Pod addresses: unique, stable over restarts, given again as late as possible."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.local import loopback
from paddlecloud.local.kubelet.node.addresses import Addresses, AddressesExhausted

SMALL = ipaddress.IPv4Network("127.64.0.0/29")


def test_every_data_directory_has_its_range_away_from_localhost_and_services() -> None:
    for name in ("/home/a/.paddlecloud", "/tmp/b"):
        network = loopback.network_for(name, loopback.PODS)
        assert network == loopback.network_for(name, loopback.PODS)
        assert 64 <= network.network_address.packed[1] <= 95


def test_platforms_that_share_a_network_begin_at_different_addresses_in_it() -> None:
    names = [f"/tmp/pytest-{number}" for number in range(640)]
    networks = [loopback.network_for(name, loopback.PODS) for name in names]
    starts = [loopback.start_in(network, name) for name, network in zip(names, networks, strict=True)]
    first = {Addresses(network, start=start).allocate() for network, start in zip(networks, starts, strict=True)}
    assert len(set(networks)) == len(loopback.PODS)
    assert len(first) > 620, "of 640 hardly two begin at the same address"


def test_the_range_is_gone_through_from_its_start_to_the_addresses_before_it() -> None:
    addresses = Addresses(SMALL, start=4)
    assert [addresses.allocate() for _ in range(6)] == [f"127.64.0.{last}" for last in (5, 6, 1, 2, 3, 4)]


@given(st.lists(st.sampled_from(["allocate", "release"]), max_size=40))
def test_no_address_is_held_twice(steps: list[str]) -> None:
    addresses = Addresses(SMALL)
    held: list[str] = []
    for step in steps:
        if step == "allocate" and len(held) < 6:
            held.append(addresses.allocate())
        elif step == "release" and held:
            addresses.release(held.pop(0))
        assert len(held) == len(set(held))


def test_a_released_address_is_given_again_only_after_all_others() -> None:
    addresses = Addresses(SMALL)
    first = addresses.allocate()
    addresses.release(first)
    assert [addresses.allocate() for _ in range(6)][-1] == first


def test_addresses_of_pods_found_at_start_are_kept() -> None:
    addresses = Addresses(SMALL, in_use=["127.64.0.1", "127.64.0.3", "127.99.0.1"])
    assert {addresses.allocate() for _ in range(4)}.isdisjoint({"127.64.0.1", "127.64.0.3"})
    with pytest.raises(AddressesExhausted):
        addresses.allocate()
