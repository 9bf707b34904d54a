"""What queues may use: limits that hold always, and shares that say who goes first and who must give back.

`capability` is a limit, of a queue and of everything below it. `deserved` is what a queue may insist on: written in its
spec, or its part of its parent's by weight. Beyond it a queue borrows what nobody insists on, and may lose it again
(`reclaimable`). A parent queue is what Kueue calls a cohort.

Example: of 12 CPUs, queues of weights 1 and 2 deserve 4 and 8 while both want more; if the first wants only 2, the
second deserves 10.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from paddlecloud.kube.quantity import Amount, total
from paddlecloud.local.scheduler.decision.filters import shown
from paddlecloud.local.scheduler.state.shape import Resources, add, subtract
from paddlecloud.local.scheduler.state.snapshot import DEFAULT_QUEUE, Queue, Snapshot


class Lack(NamedTuple):
    """A queue that has no room: `wanted` more of `resource` would bring it from `used` above `limit`."""

    queue: str
    resource: str
    wanted: Amount
    used: Amount
    limit: Amount

    def __str__(self) -> str:
        name = self.resource
        return (
            f"queue {self.queue} may use {shown(name, self.limit)} {name}: {shown(name, self.used)} in use, "
            f"{shown(name, self.wanted)} wanted"
        )


def unserved(queues: Mapping[str, Queue], name: str) -> tuple[str, str] | None:
    """Why nothing of this queue is served now: a word for programs, a line for people."""
    queue = queues.get(name)
    if queue is None and name != DEFAULT_QUEUE:
        return "NoQueue", f"queue {name} does not exist"
    if queue is not None and not queue.open:
        return "QueueClosed", f"queue {name} is closed"
    return None


def chain_of(queues: Mapping[str, Queue], name: str) -> tuple[str, ...]:
    """The queue and those above it, nearest first. A circle of parents ends where it closes."""
    names = [name]
    queue = queues.get(name)
    while queue is not None and queue.parent not in ("", *names) and queue.parent in queues:
        names.append(queue.parent)
        queue = queues.get(queue.parent)
    return tuple(names)


def too_much(queues: Mapping[str, Queue], name: str, request: Resources) -> str:
    """The limit that this much would break even if nobody used anything of it, as text; empty if there is none."""
    for one in chain_of(queues, name):
        queue = queues.get(one)
        for resource, limit in (queue.capability if queue else {}).items():
            if (wanted := request.get(resource, 0)) > limit:
                return (
                    f"queue {one} may use {shown(resource, limit)} {resource}, {shown(resource, wanted)} wanted in all"
                )
    return ""


class Ledger:
    """What every queue uses in the course of a round. `demand` is what waits, by queue."""

    def __init__(self, snapshot: Snapshot, demand: Mapping[str, Resources]) -> None:
        self.queues = snapshot.queues
        self._capacity: Resources = (
            total(node.allocatable for node in snapshot.nodes.values() if node.ready) if self.queues else {}
        )
        self._chains: dict[str, tuple[str, ...]] = {}
        self._used: dict[str, dict[str, Amount]] = {}
        for name, used in snapshot.allocated.items():
            self.take(name, used)
        self._demand = demand
        self._deserved: dict[str, Resources] | None = None

    def get(self, name: str) -> Queue | None:
        found = self.queues.get(name)
        return Queue(DEFAULT_QUEUE) if found is None and name == DEFAULT_QUEUE else found

    def chain(self, name: str) -> tuple[str, ...]:
        found = self._chains.get(name)
        if found is None:
            found = self._chains[name] = chain_of(self.queues, name)
        return found

    def used(self, name: str) -> Resources:
        return self._used.get(name, {})

    def take(self, name: str, request: Resources) -> None:
        if not self.queues:
            return
        for one in self.chain(name):
            used = self._used.setdefault(one, {})
            for resource, amount in request.items():
                used[resource] = used.get(resource, 0) + amount

    def give(self, name: str, request: Resources) -> None:
        self.take(name, {resource: -amount for resource, amount in request.items()})

    def lack(self, name: str, request: Resources) -> Lack | None:
        """The nearest limit that this much more would break."""
        if not self.queues:
            return None
        for one in self.chain(name):
            used = self.used(one)
            for resource, limit in self._limits(one, name).items():
                wanted = request.get(resource, 0)
                if wanted and used.get(resource, 0) + wanted > limit:
                    return Lack(one, resource, wanted, used.get(resource, 0), limit)
        return None

    def _limits(self, name: str, asking: str) -> Resources:
        """The capability, less what queues below that are not asking have guaranteed to them and do not use."""
        queue = self.queues.get(name)
        if queue is None:
            return {}
        held = self._guaranteed_below(name, asking)
        if not held:
            return queue.capability
        return {resource: limit - held.get(resource, 0) for resource, limit in queue.capability.items()}

    def _guaranteed_below(self, name: str, asking: str) -> Resources:
        ours = self.chain(asking)
        held: Resources = {}
        for other in self.queues.values():
            if other.guarantee and other.parent == name and other.name not in ours:
                unused = subtract(other.guarantee, self.used(other.name))
                held = add(held, {r: max(0, unused[r]) for r in other.guarantee})
        return held

    # Shares

    def deserved(self, name: str) -> Resources:
        if self._deserved is None:
            self._deserved = self._divide_all()
        return self._deserved.get(name, {})

    def share(self, name: str) -> float:
        """The fullest of its deserved resources: 1 is all of it. A queue that deserves nothing comes last."""
        deserved = self.deserved(name)
        worst = 0.0
        for resource, used in self.used(name).items():
            if used and resource in deserved:
                worst = max(worst, used / deserved[resource] if deserved[resource] else float("inf"))
        return worst

    def exceeds(self, name: str, without: Resources | None = None) -> bool:
        """Whether the queue uses more of something than it deserves, also once `without` were taken from it."""
        deserved, used = self.deserved(name), self.used(name)
        gone = without or {}
        return any(used.get(r, 0) - gone.get(r, 0) > amount for r, amount in deserved.items())

    def within(self, name: str, request: Resources) -> bool:
        """Whether the queue would still be within what it deserves with this much more."""
        deserved, used = self.deserved(name), self.used(name)
        return all(used.get(r, 0) + request.get(r, 0) <= amount for r, amount in deserved.items())

    def _divide_all(self) -> dict[str, Resources]:
        children: dict[str, list[Queue]] = {}
        names = {*self.queues, *self._used, *self._demand}
        for name in sorted(names):
            queue = self.get(name)
            if queue is not None:
                chain = self.chain(name)
                children.setdefault(chain[1] if len(chain) > 1 else "", []).append(queue)
        result: dict[str, Resources] = {}
        self._divide("", self._capacity, children, result)
        return result

    def _divide(
        self, parent: str, amount: Resources, children: Mapping[str, list[Queue]], result: dict[str, Resources]
    ) -> None:
        siblings = children.get(parent, [])
        parts: dict[str, dict[str, Amount]] = {queue.name: {} for queue in siblings}
        written = total(queue.deserved or {} for queue in siblings)
        for resource, whole in amount.items():
            claims = [
                (queue.name, queue.weight, self._claim(queue, resource, children), queue.guarantee.get(resource, 0))
                for queue in siblings
                if queue.deserved is None
            ]
            for name, part in divide(max(0, whole - written.get(resource, 0)), claims).items():
                parts[name][resource] = part
        for queue in siblings:
            result[queue.name] = parts[queue.name] if queue.deserved is None else queue.deserved
            self._divide(queue.name, result[queue.name], children, result)

    def _claim(self, queue: Queue, resource: str, children: Mapping[str, list[Queue]]) -> Amount:
        """What the queue and those below it use and want, as far as it may."""
        own = self._demand.get(queue.name, {}).get(resource, 0)
        below = self._wanted_below(queue.name, resource, children)
        wanted = self.used(queue.name).get(resource, 0) + own + below
        return min(wanted, queue.capability.get(resource, wanted))

    def _wanted_below(self, name: str, resource: str, children: Mapping[str, list[Queue]]) -> Amount:
        return sum(
            self._demand.get(child.name, {}).get(resource, 0) + self._wanted_below(child.name, resource, children)
            for child in children.get(name, [])
        )


def divide(whole: Amount, claims: Iterable[tuple[str, int, Amount, Amount]]) -> dict[str, Amount]:
    """Parts of `whole` for (name, weight, wanted, guaranteed): by weight, to none more than it wants or is guaranteed.

    What one leaves over is divided among the others, again by weight.
    """
    open_ = {name: (weight, max(wanted, least)) for name, weight, wanted, least in claims}
    parts: dict[str, Amount] = {}
    left = whole
    while open_:
        weights = sum(weight for weight, _ in open_.values())
        content = {name: most for name, (weight, most) in open_.items() if most * weights <= left * weight}
        if not content:
            parts |= {name: left * weight // weights for name, (weight, _) in open_.items()}
            break
        for name, most in content.items():
            parts[name] = most
            left -= most
            del open_[name]
    return parts
