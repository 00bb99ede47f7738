"""How many calls may be under way at an endpoint: never more than its window, and nobody is forgotten."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest
from aiohttp import ClientSession, UnixConnector, web
from gateway_rig import (
    AUTH,
    URL,
    FakeClock,
    Seen,
    completion,
    in_turn,
    json_reply,
    make_route,
    request_body,
    rig,
    upstream,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.gateway.contract import Endpoint
from orchestrator.gateway.server import GatewayServer
from orchestrator.gateway.window import START, Ending, Place, Window


class HeldClock(FakeClock):
    """Sleeps end when the test lets time pass."""

    def __init__(self) -> None:
        super().__init__()
        self._passed = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        until = self.now + seconds
        while self.now < until:
            await self._passed.wait()

    async def advance(self, seconds: float) -> None:
        self.now += seconds
        self._passed.set()
        self._passed = asyncio.Event()
        await settle()


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def fill(window: Window) -> list[Place]:
    """All places that are free."""
    places = []
    while place := window.try_enter():
        places.append(place)
    return places


def round_of(window: Window, ending: Ending) -> int:
    """A round of calls that fill the window and all end so; how many they were."""
    places = fill(window)
    for place in places:
        window.leave(place, ending)
    return len(places)


def test_a_window_doubles_each_round_until_the_first_429_and_then_grows_by_one() -> None:
    window = Window("up", FakeClock())
    assert round_of(window, "answered") == START
    # The last calls of a round do not fill the window any more, which has grown meanwhile.
    assert window.size > START
    before = window.size
    round_of(window, "limited")
    assert window.size == before // 2
    sizes = [window.size]
    for _ in range(6):
        for place in fill(window):
            window.leave(place, "answered")
        sizes.append(window.size)
    assert all(later - earlier in (0, 1) for earlier, later in pairwise(sizes))
    assert sizes[-1] > sizes[0]


def test_one_round_trip_halves_once() -> None:
    window = Window("up", FakeClock())
    places = fill(window)
    for place in places:
        window.leave(place, "limited")
    assert (window.size, window.limited) == (START / 2, len(places))
    round_of(window, "limited")
    round_of(window, "limited")
    assert window.size == 1
    assert round_of(window, "limited") == 1


def test_a_window_that_is_not_filled_does_not_grow() -> None:
    window = Window("up", FakeClock())
    for _ in range(50):
        place = window.try_enter()
        assert place is not None
        window.leave(place, "answered")
    assert window.size == START


def test_a_cap_holds_from_the_start() -> None:
    window = Window("up", FakeClock(), 2)
    for _ in range(5):
        assert round_of(window, "answered") == 2
    assert window.report().largest == 2


def test_those_who_wait_come_in_by_age_and_a_retried_call_keeps_its_own() -> None:
    async def run() -> None:
        window = Window("up", HeldClock(), 1)
        old, held = window.ticket(), window.try_enter()
        assert held is not None
        entered: list[int] = []

        async def call(ticket: int) -> None:
            place = await window.enter(ticket)
            entered.append(ticket)
            await asyncio.sleep(0)
            window.leave(place, "answered")

        tickets = [window.ticket() for _ in range(3)]
        tasks = [asyncio.create_task(call(ticket)) for ticket in tickets]
        await settle()
        tasks.append(asyncio.create_task(call(old)))
        await settle()
        window.leave(held, "other")
        await asyncio.gather(*tasks)
        assert entered == [old, *tickets]

    asyncio.run(run())


@pytest.mark.parametrize("cancelled_first", [True, False])
def test_a_call_cancelled_in_the_instant_of_its_turn_takes_no_place(cancelled_first: bool) -> None:
    async def run() -> None:
        window = Window("up", HeldClock(), 1)
        held = window.try_enter()
        assert held is not None
        gone, next_one = (asyncio.create_task(window.enter(window.ticket())) for _ in range(2))
        await settle()
        if cancelled_first:
            gone.cancel()
            window.leave(held, "other")
        else:
            window.leave(held, "other")
            gone.cancel()
        await settle()
        assert (gone.cancelled(), window.under_way) == (True, 1)
        window.leave(next_one.result(), "other")
        assert window.under_way == 0

    asyncio.run(run())


def test_a_block_holds_for_all_until_its_end_and_the_longer_one_counts() -> None:
    async def run() -> None:
        clock = HeldClock()
        window = Window("up", clock)
        window.block(5)
        assert window.try_enter() is None
        waiting = asyncio.create_task(window.enter(window.ticket()))
        await settle()
        window.block(9)
        window.block(1)
        await clock.advance(5)
        assert not waiting.done()
        await clock.advance(4)
        assert waiting.done()
        window.leave(waiting.result(), "answered")
        assert window.under_way == 0

    asyncio.run(run())


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["enter", "enter", "enter", "answered", "limited", "other", "cancel", "block", "time"]
        ),
        st.integers(0, 9),
    ),
    max_size=60,
)


class Calls:
    """Calls that wait, hold a place or have given it back, one task each."""

    def __init__(self, cap: int | None) -> None:
        self.clock = HeldClock()
        self.window = Window("up", self.clock, cap)
        self.tasks: list[asyncio.Task[Place]] = []

    @property
    def waiting(self) -> list[asyncio.Task[Place]]:
        return [task for task in self.tasks if not task.done()]

    @property
    def holding(self) -> list[asyncio.Task[Place]]:
        return [task for task in self.tasks if task.done() and not task.cancelled()]

    def give_back(self, task: asyncio.Task[Place], ending: Ending) -> None:
        self.tasks.remove(task)
        self.window.leave(task.result(), ending)

    async def step(self, what: str, number: int) -> None:
        """One event. Every second one comes in the same instant as what follows it."""
        if what == "enter":
            self.tasks.append(asyncio.create_task(self.window.enter(self.window.ticket())))
        elif what == "cancel":
            for task in self.tasks[number : number + 1]:
                task.cancel()
        elif what == "block":
            self.window.block(number)
        elif what == "time":
            await self.clock.advance(number)
        else:
            for task in self.holding[:1]:
                self.give_back(task, cast(Ending, what))
        if number % 2:
            await settle()

    async def to_the_end(self) -> None:
        """Answers come and time passes until nobody waits; each round lets somebody in."""
        await settle()
        while before := len(self.waiting):
            for task in self.holding:
                self.give_back(task, "answered")
            await self.clock.advance(10)
            assert len(self.waiting) < before
        for task in self.holding:
            self.give_back(task, "other")
        self.window.close()


@settings(max_examples=150)
@given(steps=STEPS, cap=st.none() | st.integers(1, 5))
def test_never_more_than_the_window_and_nobody_starves(steps: list[tuple[str, int]], cap: int | None) -> None:
    async def run() -> None:
        calls = Calls(cap)
        window = calls.window
        for what, number in steps:
            before = window.under_way
            await calls.step(what, number)
            assert window.size >= 1
            # A halving takes no place away from who has one.
            assert window.under_way <= max(before, window.size)
        await calls.to_the_end()
        assert window.under_way == 0

    asyncio.run(run())


def test_a_stated_wait_holds_for_other_cells_too(tmp_path: Path) -> None:
    """The second cell's call is sent when the first one's wait is over, and both say that they waited."""

    async def run() -> None:
        clock = HeldClock()
        events: list[tuple[str, str]] = []
        server = GatewayServer(lambda event, cell: events.append((cell, event)), clock)
        limited = json_reply({"error": {"message": "slow"}}, 429, {"Retry-After": "30"})
        routes = []
        for name in ("a", "b"):
            (tmp_path / name).mkdir()
            routes.append(make_route(tmp_path / name, cell_id=name))
        seen: list[Seen] = []

        async def post(number: int) -> int:
            connector = UnixConnector(str(routes[number].socket))
            async with ClientSession(connector=connector) as client:
                response = await client.post(URL, json=request_body(), headers=AUTH)
                return response.status

        async with upstream(in_turn(limited, json_reply(completion())), seen) as url:
            server.add_endpoint(Endpoint(name="up", base_url=url, key="k"))
            for route in routes:
                await server.open_cell(route)
            first = asyncio.create_task(post(0))
            while ("a", "wait_start") not in events:
                await asyncio.sleep(0.005)
            second = asyncio.create_task(post(1))
            while ("b", "wait_start") not in events:
                await asyncio.sleep(0.005)
            assert len(seen) == 1
            await clock.advance(30)
            assert await asyncio.gather(first, second) == [200, 200]
            assert len(seen) == 3
            assert sorted(events) == sorted(
                (cell, event) for cell in ("a", "b") for event in ("wait_start", "wait_end")
            )
            [report] = server.windows()
            assert (report.endpoint, report.rate_limited, report.waited_s) == ("up", 1, 60.0)
            await server.close()

    asyncio.run(run())


def test_no_more_calls_reach_the_endpoint_than_its_cap_and_the_rest_waits(tmp_path: Path) -> None:
    async def run() -> None:
        now = most = 0
        arrived = asyncio.Semaphore(0)
        go = asyncio.Event()

        async def slow(request: web.Request) -> web.StreamResponse:
            nonlocal now, most
            now += 1
            most = max(most, now)
            arrived.release()
            await go.wait()
            now -= 1
            return web.json_response(completion())

        async with rig(tmp_path, slow, concurrency=2) as gateway:
            posts = [asyncio.create_task(gateway.post(request_body())) for _ in range(6)]
            await arrived.acquire()
            await arrived.acquire()
            while gateway.events != ["wait_start"]:
                await asyncio.sleep(0.005)
            go.set()
            assert [status for status, _ in await asyncio.gather(*posts)] == [200] * 6
            assert most == 2
            assert gateway.events == ["wait_start", "wait_end"]
            calls = await gateway.close()
            assert sum(bool(call.waits) for call in calls) == 4

    asyncio.run(run())


def test_a_call_that_is_given_up_leaves_its_place(tmp_path: Path) -> None:
    """Both while it waits and while its answer is on its way."""

    async def run() -> None:
        arrived = asyncio.Event()

        async def hang(request: web.Request) -> web.StreamResponse:
            arrived.set()
            await asyncio.Event().wait()
            raise AssertionError

        handler = in_turn(hang, json_reply(completion()))
        async with rig(tmp_path, handler, concurrency=1) as gateway:
            first = asyncio.create_task(gateway.post(request_body()))
            await arrived.wait()
            second = asyncio.create_task(gateway.post(request_body()))
            while "wait_start" not in gateway.events:
                await asyncio.sleep(0.005)
            second.cancel()
            while "wait_end" not in gateway.events:
                await asyncio.sleep(0.005)
            first.cancel()
            assert (await asyncio.wait_for(gateway.post(request_body()), 60))[0] == 200
            calls = await gateway.close()
            assert sorted(str(call.error) for call in calls) == ["None", "client_gone", "client_gone"]

    asyncio.run(run())
