"""Threads that work off jobs: their order, what ends them, and that the main thread hears signals."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from orchestrator.run.workers import Workers


def test_jobs_begin_in_their_order_and_one_that_is_put_back_comes_last() -> None:
    begun: list[str] = []

    def do(job: str) -> None:
        begun.append(job)
        if begun.count(job) == 1 and job == "a":
            workers.again(job)

    workers = Workers(do, "test")
    workers.run(["a", "b", "c"], 1)
    assert begun == ["a", "b", "c", "a"]
    assert not workers.left
    assert not workers.interrupted


def test_as_many_are_under_way_as_were_asked_for_and_no_more_than_there_are() -> None:
    together = threading.Barrier(3, timeout=10)
    names = set[str]()

    def do(_: int) -> None:
        together.wait()
        names.add(threading.current_thread().name)

    Workers(do, "test").run(range(6), 3)
    assert len(names) == 3
    assert all(name.startswith("test") for name in names)
    assert threading.current_thread().name not in names
    Workers(do, "test").run([], 3)


def test_the_first_error_ends_all_and_is_raised_in_the_main_thread() -> None:
    done: list[int] = []
    failed = threading.Event()

    def do(job: int) -> None:
        if job == 1:
            failed.set()
            raise ValueError("the first")
        failed.wait(10)
        if workers.stopping.wait(10):
            done.append(job)
        raise ValueError("a later one")

    workers = Workers(do, "test")
    with pytest.raises(ValueError, match="the first"):
        workers.run(range(5), 2)
    assert done == [0]
    assert list(workers.left) == [2, 3, 4]
    assert not workers.interrupted


def test_a_reason_to_stop_that_a_job_tells_lets_it_end() -> None:
    done: list[int] = []

    def do(job: int) -> None:
        workers.fail(ValueError("told"))
        workers.fail(ValueError("told later"))
        done.append(job)

    workers = Workers(do, "test")
    with pytest.raises(ValueError, match=r"told$"):
        workers.run(range(3), 1)
    assert done == [0]


def test_nothing_begins_that_may_not() -> None:
    done: list[int] = []
    workers = Workers(done.append, "test", lambda: len(done) < 2)
    workers.run(range(5), 1)
    assert done == [0, 1]
    assert len(workers.left) == 3
    assert not workers.interrupted


def test_a_signal_handler_can_stop_it_while_jobs_are_under_way() -> None:
    done: list[int] = []

    def do(job: int) -> None:
        signal.raise_signal(signal.SIGUSR1)
        assert workers.stopping.wait(10), "the main thread did not hear the signal"
        done.append(job)

    workers = Workers(do, "test")
    before = signal.signal(signal.SIGUSR1, lambda *_: workers.stop())
    try:
        workers.run(range(3), 1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert done == [0]
    assert workers.interrupted


def test_an_interrupt_of_the_main_thread_lets_what_is_under_way_end_and_begins_no_more() -> None:
    done: list[int] = []

    def do(job: int) -> None:
        time.sleep(0.05)
        signal.raise_signal(signal.SIGINT)
        assert workers.stopping.wait(10), "the workers were not stopped"
        done.append(job)

    workers = Workers(do, "test")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            workers.run(range(3), 1)
    finally:
        signal.signal(signal.SIGINT, before)
    assert done == [0]
