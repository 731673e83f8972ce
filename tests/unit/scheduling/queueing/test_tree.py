"""The tree of queues: sums, limits, and shares under saturation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import pytest

from seaway.domain.amounts import Amounts
from seaway.domain.queues import Queue, children_of
from seaway.domain.tenancy import Quota, Tenant
from seaway.scheduling.queueing.lanes import FirstJob, LaneOrder
from seaway.scheduling.queueing.past_use import PastUse
from seaway.scheduling.queueing.registry import FairShare
from seaway.scheduling.queueing.tree import Owner, QueueTree, quota_key

TOTAL = 20_000
"""GPUs of the fleet, thousandths."""

JOB = {"gpus": 5}
"""A job that is small compared with any share."""


def divided(total: float, asked: Mapping[str, float], queues: Sequence[Queue]) -> dict[str, float]:
    """Divide an amount among siblings: guarantees first, then by priority, then by weight up to what each asks for.

    It fills step by step, which is slow and obvious.
    """
    given = {queue.name: min(queue.guarantee.get("gpus", 0), asked[queue.name]) for queue in queues}
    left = total - sum(given.values())
    for priority in sorted({queue.priority for queue in queues}, reverse=True):
        hungry = [queue for queue in queues if queue.priority == priority and queue.weight]
        while left > 1e-6 and (hungry := [each for each in hungry if asked[each.name] - given[each.name] > 1e-9]):
            beyond = {
                each.name: given[each.name] - min(each.guarantee.get("gpus", 0), asked[each.name]) for each in hungry
            }
            level = min(beyond[each.name] / each.weight for each in hungry)
            lowest = [each for each in hungry if beyond[each.name] / each.weight <= level + 1e-9]
            higher = [beyond[each.name] / each.weight for each in hungry if each not in lowest]
            rise = min(
                left / sum(each.weight for each in lowest),
                *((asked[each.name] - given[each.name]) / each.weight for each in lowest),
                *(next_level - level for next_level in higher),
            )
            for each in lowest:
                given[each.name] += rise * each.weight
                left -= rise * each.weight
    return given


def entitlements(queues: Sequence[Queue], asked: Mapping[str, float]) -> dict[str, float]:
    """Return what each leaf is entitled to, level by level."""
    children = children_of(queues)
    wants: dict[str, float] = {}

    def want(queue: Queue) -> float:
        below = children.get(queue.name)
        wants[queue.name] = min(
            sum(map(want, below)) if below else asked[queue.name], queue.limit.get("gpus", float("inf"))
        )
        return wants[queue.name]

    for root in children[""]:
        want(root)
    found: dict[str, float] = {}

    def divide(total: float, siblings: Sequence[Queue]) -> None:
        for name, share in divided(total, wants, siblings).items():
            if name in children:
                divide(share, children[name])
            else:
                found[name] = share

    divide(TOTAL, children[""])
    return found


def saturated(
    tree: QueueTree, leaves: Sequence[str], asked: Mapping[str, float], total: int = TOTAL, job: Amounts = JOB
) -> dict[str, int]:
    """Start one job after another in the order of the lanes, until the fleet is full; return what each leaf holds."""
    order = LaneOrder(tree, FairShare())
    for name in leaves:
        order.put((name, "default"), FirstJob((0,), job))
    held = 0
    while held + job["gpus"] <= total and (lane := order.first()):
        used = tree.use(lane[0]).held.get("gpus", 0)
        if used + job["gpus"] > asked[lane[0]] or tree.hit(Owner(*lane), job):
            order.drop(lane)
            continue
        held += job["gpus"]
        tree.hold((f"job-{held}", 1), Owner(*lane), job)
    return {name: tree.use(name).held.get("gpus", 0) for name in leaves}


@pytest.mark.parametrize("seed", range(10))
def test_lanes_are_listed_in_the_order_in_which_they_would_be_first(seed: int) -> None:
    """All lanes are listed as if each first one was dropped, and those before a job as far as its own queue."""
    random = Random(seed)
    roots = [Queue(name, weight=random.randrange(1, 4), priority=random.randrange(2)) for name in "abc"]
    leaves = [
        Queue(f"{root.name}{at}", parent=root.name, weight=random.randrange(1, 4), guarantee={"gpus": 10 * (at % 2)})
        for root in roots
        for at in range(3)
    ]
    tree = QueueTree([*roots, *leaves], {"default": {"gpus": TOTAL}})
    for at in range(20):
        tree.hold((f"job-{at}", 1), Owner(random.choice(leaves).name, random.choice("xyz")), JOB)
    order, listed = LaneOrder(tree, FairShare()), LaneOrder(tree, FairShare())
    for leaf in leaves:
        for tenant in "xyz":
            order.put((leaf.name, tenant), FirstJob((0,), JOB))
            listed.put((leaf.name, tenant), FirstJob((0,), JOB))
    dropped = []
    while lane := order.first():
        dropped.append(lane)
        order.drop(lane)
    assert list(listed.lanes()) == dropped
    for leaf in leaves:
        own = next(at for at, lane in enumerate(dropped) if lane[0] == leaf.name)
        assert set(listed.before(leaf.name, JOB)) == set(dropped[:own])


WITHOUT_WEIGHT: dict[str, Any] = {"weight": 0, "borrowing_limit": {"gpus": 0}}
"""A queue that gets nothing beyond its guarantee. The weight 0 alone makes it the last one there."""


@pytest.mark.parametrize(
    ("total", "a", "b", "shares"),
    [
        (15, {}, {}, (6, 6)),
        (12, {}, {}, (6, 6)),
        (11, {}, {}, (6, 5)),
        (8, {"weight": 1}, {"weight": 3}, (3, 5)),
        (12, {"limit": {"gpus": 5000}}, {}, (5, 6)),
        (4, {"priority": 1}, {"priority": 2}, (2, 2)),
        (6, {"priority": 1, "weight": 100}, {"priority": 2, "weight": 1}, (2, 4)),
        (3, {}, {}, (2, 1)),
    ],
)
def test_two_queues_divide_gpus(total: int, a: dict[str, Any], b: dict[str, Any], shares: tuple[int, int]) -> None:
    """Guarantees of 2 GPUs go first, then priorities, then weights, up to the limit and the 6 requested GPUs.

    These are the divisions of KAI, with two differences. The odd GPU goes to the first name, not to the older queue, as
    queues have no age. If there is less than the guarantees, only what exists is divided.
    """
    queues = [Queue(name, **{"guarantee": {"gpus": 2000}, "weight": 2, **each}) for name, each in (("a", a), ("b", b))]
    tree = QueueTree(queues, {"default": {"gpus": 1000 * total}})
    held = saturated(tree, "ab", {"a": 6000, "b": 6000}, 1000 * total, {"gpus": 1000})
    assert held == {"a": 1000 * shares[0], "b": 1000 * shares[1]}


@pytest.mark.parametrize(
    ("guarantee", "total", "asked", "fields", "gets"),
    [
        (3, 3, 2, {}, 2),
        (3, 7, 5, WITHOUT_WEIGHT, 3),
        (1.5, 2, 2, WITHOUT_WEIGHT, 1.5),
        (3, 7, 5, {"weight": 0}, 5),
        (1.5, 2, 2, {"weight": 0}, 2),
    ],
)
def test_one_queue_gets_what_it_asks_for(
    guarantee: float, total: int, asked: float, fields: dict[str, Any], gets: float
) -> None:
    """A queue alone gets what it requests. One of weight 0 gets that too, unless it must not borrow.

    In KAI, weight 0 alone means no more than the guarantee. Here GPUs are not idle while a job could use them.
    """
    tree = QueueTree([Queue("a", guarantee={"gpus": int(1000 * guarantee)}, **fields)])
    assert saturated(tree, "a", {"a": 1000 * asked}, 1000 * total, {"gpus": 500}) == {"a": 1000 * gets}


@pytest.mark.parametrize(
    ("guarantee", "held", "pool", "share"),
    [
        ({"cpu": 2000, "gpus": 5000}, {"cpu": 3000, "gpus": 7000}, {"cpu": 10_000, "gpus": 10_000}, 0.2),
        ({"cpu": 2000, "gpus": 5000}, {"cpu": 3000, "gpus": 3000}, {"cpu": 10_000, "gpus": 10_000}, 0.1),
        ({"cpu": 2000, "gpus": 5000}, {"cpu": 2000, "gpus": 5000}, {"cpu": 10_000, "gpus": 10_000}, 0.0),
        ({"cpu": 500_000}, {"cpu": 501_000}, {"cpu": 1_500_000}, 1 / 1500),
        ({"cpu": 500_000}, {"cpu": 500_001}, {"cpu": 1_500_000}, 1 / 1_500_000),
    ],
)
def test_the_dominant_share_counts_what_is_borrowed(
    guarantee: Amounts, held: Amounts, pool: Amounts, share: float
) -> None:
    """The dominant share is the largest borrowed part of the pool over all resources, and never rounded to 0."""
    tree = QueueTree([Queue("a", guarantee=guarantee)], {"default": pool})
    tree.hold(("job", 1), Owner("a", "default"), held)
    assert tree.node("a").share_beyond_guarantee() == pytest.approx(share, rel=1e-6, abs=0)


def test_past_use_is_in_proportion_to_amounts_and_recent_time() -> None:
    """Past use counts in proportion to the GPU-hours of two queues, and half as much a half-life later.

    KAI divides by the capacity over a window. Here the weights of all past time add up to 1, so a use for a short part
    of the half-life counts little, and no window ends it at once.
    """
    past = PastUse(3600)
    past.add(("a", "t"), {"gpus": 10_000}, 0, 360, 360)
    past.add(("b", "t"), {"gpus": 5000}, 0, 360, 360)
    past.advance(360, ())
    first = past.means()
    assert first["a", "t"]["gpus"] == pytest.approx(2 * first["b", "t"]["gpus"], abs=1)
    past.advance(3960, ())
    assert past.means()["a", "t"]["gpus"] == pytest.approx(first["a", "t"]["gpus"] / 2, abs=1)


def random_tree(random: Random) -> list[Queue]:
    """Return queues of up to three levels. Parents name no guarantee, so they guarantee what their children do."""
    queues: list[Queue] = []
    for top in range(random.randrange(2, 5)):
        below = random.randrange(4)
        queues += [_queue(random, f"q{top}-{at}", parent=f"q{top}") for at in range(below)]
        sums = sum(each.guarantee.get("gpus", 0) for each in queues if each.parent == f"q{top}")
        queues.append(_queue(random, f"q{top}", guarantee={"gpus": sums} if below else None))
    return queues


def _queue(random: Random, name: str, parent: str = "", guarantee: dict[str, int] | None = None) -> Queue:
    if guarantee is None:
        guarantee = {"gpus": random.choice([0, 500, 1000])}
    most = guarantee["gpus"] + random.randrange(1000, 8000)
    limit = {"gpus": most} if random.random() < 0.3 else {}
    return Queue(
        name,
        parent=parent,
        guarantee=guarantee,
        limit=limit,
        weight=random.randrange(1, 6),
        priority=random.choice([0, 0, 1]),
    )


@pytest.mark.parametrize("seed", range(30))
def test_under_saturation_each_queue_gets_its_entitlement(seed: int) -> None:
    """Whatever the tree, each queue holds its weighted max-min share within 2 %, and its guarantee."""
    random = Random(seed)
    queues = random_tree(random)
    children = children_of(queues)
    leaves = [each.name for each in queues if each.name not in children]
    asked = {name: random.choice([400.0, 3000.0, 2.0 * TOTAL]) for name in leaves}
    held = saturated(QueueTree(queues, {"default": {"gpus": TOTAL}}), leaves, asked)
    expected = entitlements(queues, asked)
    for queue in queues:
        if queue.name in held:
            assert held[queue.name] == pytest.approx(expected[queue.name], rel=0.02, abs=2 * JOB["gpus"]), queue
            guaranteed = min(queue.guarantee.get("gpus", 0), asked[queue.name])
            assert held[queue.name] >= guaranteed - JOB["gpus"], queue


@pytest.mark.parametrize("seed", range(10))
def test_sums_equal_what_attempts_hold(seed: int) -> None:
    """After any changes of attempts and queues, each queue holds the sum over its subtree; at the end nothing."""
    random = Random(seed)
    queues = random_tree(random)
    quota = Quota(limit={"gpus": 1, "jobs": 1}, user_limit={"gpus": 1})
    tenants = [Tenant("a", quotas={"default": quota}), Tenant("b")]
    tree, held = QueueTree(queues, tenants=tenants), dict[tuple[str, int], tuple[Owner, int]]()
    names = [*(each.name for each in queues), "removed"]
    for at in range(300):
        if held and random.random() < 0.4:
            gone = random.choice(list(held))
            del held[gone]
            tree.release(gone)
        else:
            key = (f"job-{at % 50}", at)  # a job can have several attempts
            owner = Owner(random.choice(names), random.choice("ab"), random.choice("uv"))
            held[key] = owner, random.randrange(1, 9)
            tree.hold(key, owner, {"gpus": held[key][1]})
        if random.random() < 0.1:
            tree.set_queues(queues, tenants)
        for each in queues:
            below = {each.name, *(child.name for child in queues if child.parent == each.name)}
            found = {key: amount for key, (owner, amount) in held.items() if owner.queue in below}
            assert tree.use(each.name).held.get("gpus", 0) == sum(found.values())
            assert tree.use(each.name).attempts == len(found)
            assert tree.use(each.name).jobs == len({job for job, _ in found})
        for user in ("", "u", "v"):
            owned = {key: n for key, (o, n) in held.items() if o.tenant == "a" and user in {"", o.user}}
            use = tree.use_lately(quota_key("default", "a", user))
            assert (use.held.get("gpus", 0), use.jobs) == (sum(owned.values()), len({job for job, _ in owned}))
        if at % 30 == 0:
            twin = tree.fork()
            quotas = [quota_key("default", "a", user) for user in ("", "u", "v")]
            for copied, own in [(twin.use(name), tree.use(name)) for name in names] + [
                (twin.use_lately(key), tree.use_lately(key)) for key in quotas
            ]:
                assert (copied.held, copied.attempts, copied.jobs) == (own.held, own.attempts, own.jobs)
            for key in held:
                twin.release(key)
            assert not any(twin.use(name).jobs or twin.use(name).held for name in names)
    for key in held:
        tree.release(key)
    assert all(not tree.use(name).held and not tree.use(name).jobs for name in names)
    assert not tree.fork().use("removed").attempts


def lending_tree(random: Random) -> list[Queue]:
    """Create a tree of three levels, in which some queues keep a part of their guarantee."""
    queues = []
    for name in ("a", "b", "c"):
        for path in (name, *(f"{name}-{child}" for child in "xy"), *(f"{name}-{two}" for two in ("x-1", "x-2", "y-1"))):
            guaranteed = random.randrange(1, 40)
            lent = {"gpus": random.randrange(guaranteed + 1)} if random.random() < 0.5 else {}
            parent = path.rpartition("-")[0]
            queues.append(Queue(path, parent=parent, guarantee={"gpus": guaranteed}, lending_limit=lent))
    return queues


def unlent(queues: Sequence[Queue], used: Mapping[str, int], own: str) -> int:
    """Return what all lenders outside a queue's path keep, each in the slow and obvious way.

    What a lender keeps covers what lenders below it keep, except on the path.
    """
    by_name = {each.name: each for each in queues}

    def above(name: str) -> list[str]:
        parent = by_name[name].parent if name in by_name else ""
        return [parent, *above(parent)] if parent else []

    lenders = [each for each in queues if each.lending_limit and each.name not in {own, *above(own)}]
    names = {each.name for each in lenders}
    outermost = [each for each in lenders if names.isdisjoint(above(each.name))]
    return sum(
        max(0, each.guarantee["gpus"] - each.lending_limit["gpus"] - used.get(each.name, 0)) for each in outermost
    )


@pytest.mark.parametrize("seed", range(10))
def test_what_lenders_keep_equals_the_sum_over_all_of_them(seed: int) -> None:
    """After any changes of attempts and queues, a job has room beside what the lenders of its pool keep."""
    random = Random(seed)
    queues = lending_tree(random)
    tree, total = QueueTree(queues, {"default": {"gpus": 150}}), 150
    names, held = [*(each.name for each in queues), "removed"], dict[tuple[str, int], tuple[str, int]]()
    for at in range(200):
        if held and random.random() < 0.4:
            gone = random.choice(list(held))
            del held[gone]
            tree.release(gone)
        else:
            key = (f"job-{at % 50}", at)
            held[key] = random.choice(names), random.randrange(1, 9)
            tree.hold(key, Owner(held[key][0], "t"), {"gpus": held[key][1]})
        if random.random() < 0.1:
            queues = lending_tree(random)
            tree.set_queues(queues, [])
        used = {name: sum(n for queue, n in held.values() if (queue + "-").startswith(name + "-")) for name in names}
        everything = sum(amount for _, amount in held.values())
        for name in names[:-1]:  # a removed queue has no pool whose capacity is known
            kept = unlent(queues, used, name)
            free = total - kept - everything
            assert tree.hit(Owner(name, "t"), {"gpus": max(0, free)}) is None or free < 0
            hit = tree.hit(Owner(name, "t"), {"gpus": max(0, free) + 1})
            assert (hit is None) == (not kept)
            assert hit is None or (hit.held, hit.limit) == (everything, total - kept)


def beside_lenders(queues: Sequence[Queue], held: Sequence[tuple[str, int]], own: str, total: int) -> int:
    """Return what is free for a queue beside what lenders keep; all if they keep nothing."""
    names = [each.name for each in queues]
    used = {name: sum(n for queue, n in held if (queue + "-").startswith(name + "-")) for name in names}
    kept = unlent(queues, used, own)
    return total - kept - sum(n for _, n in held) if kept else total


@pytest.mark.parametrize("seed", range(10))
def test_a_job_has_room_beside_lenders_now_and_once_claims_are_placed(seed: int) -> None:
    """A job fits if lenders keep their part now, and also once ending jobs are gone and winners have their places."""
    random = Random(seed)
    queues, total = lending_tree(random), 150
    names = [each.name for each in queues]
    tree = QueueTree(queues, {"default": {"gpus": total}})
    holds, ending, claims = dict[str, tuple[str, int]](), set[str](), dict[str, tuple[str, int]]()
    for at in range(120):
        job = f"job-{at}"
        queue, amount = random.choice(names), random.randrange(1, 9)
        match random.choice(("hold", "hold", "end", "release", "claim", "place")):
            case "hold":
                holds[job] = queue, amount
                tree.hold((job, 1), Owner(queue, "t"), {"gpus": amount})
            case "end" if alive := sorted(holds.keys() - ending):
                ends = random.choice(alive)
                ending.add(ends)
                tree.end((ends, 1))
            case "release" if holds:
                gone = random.choice(sorted(holds))
                tree.release((gone, 1))
                del holds[gone]
                ending.discard(gone)
            case "claim":
                claims[job] = queue, amount
                tree.claim((job, 1), Owner(queue, "t"), {"gpus": amount})
            case "place" if claims:
                winner = random.choice(sorted(claims))
                holds[winner] = claims.pop(winner)
                tree.hold((winner, 1), Owner(holds[winner][0], "t"), {"gpus": holds[winner][1]})
                tree.drop_claim(winner)
        if random.random() < 0.1:
            tree.set_queues(queues, [])
        for own, name in [("", random.choice(names)), *((each, claims[each][0]) for each in sorted(claims)[:2])]:
            later = {each: held for each, held in holds.items() if each not in ending}
            later |= {each: held for each, held in claims.items() if each != own}
            worlds = [holds, later] if claims else [holds]
            free = min(beside_lenders(queues, [*world.values()], name, total) for world in worlds)
            hit = tree.hit(Owner(name, "t"), {"gpus": max(0, free) + 1}, own)
            assert (hit is not None) == (free < total)
            assert free <= 0 or tree.hit(Owner(name, "t"), {"gpus": free}, own) is None
