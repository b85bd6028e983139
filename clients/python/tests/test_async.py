"""Tests of the asyncio client where it differs from the blocking one."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING, Any

import pytest
from conftest import COMMAND, converse_async

from treelined import AsyncClient, Client, DisconnectedError, TreelinedError, types

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from pathlib import Path


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a test in debug mode, and collect the errors of the loop's exception handler."""
    asyncio.run(asyncio.wait_for(test(), 30), debug=False)


def test_pipelined_calls_take_effect_in_order(tmp_path: Path) -> None:
    async def test() -> None:
        async with AsyncClient(COMMAND, session_dir=tmp_path) as client:
            await client.create_session()
            ids = [f"m{number}" for number in range(500)]
            calls = [
                client.append_message(entry_id=own, message={"role": "user", "content": own})
                for own in ids
            ]
            results = await asyncio.gather(*calls)
            assert [result["entryId"] for result in results] == ids
            entries = (await client.get_entries())["entries"]
            assert [entry["id"] for entry in entries] == ids

    run(test)


def test_session_tree_arrives_before_the_response(tmp_path: Path) -> None:
    async def test() -> None:
        async with AsyncClient(COMMAND, session_dir=tmp_path) as client:
            await converse_async(client)
            moves: list[types.SessionTree] = []
            leaves: asyncio.Queue[str | None] = asyncio.Queue()

            async def look(_: types.SessionTree) -> None:
                leaves.put_nowait((await client.get_leaf())["leafId"])

            client.on("session_tree", moves.append)
            client.on("session_tree", look)
            await client.set_leaf(leaf_id="a1")
            assert [move["newLeafId"] for move in moves] == ["a1"]
            assert await leaves.get() == "a1"

    run(test)


def asked(
    tmp_path: Path, test: Callable[[AsyncClient], Awaitable[None]]
) -> Callable[[], Coroutine[Any, Any, None]]:
    async def with_client() -> None:
        answers: Any = ["session_before_tree", "session_before_fork"]
        async with AsyncClient(COMMAND, session_dir=tmp_path, answers=answers) as client:
            await converse_async(client)
            await test(client)

    return with_client


def test_an_answerer_can_cancel_or_summarize(tmp_path: Path) -> None:
    async def test(client: AsyncClient) -> None:
        async def answer(event: types.SessionBeforeTree) -> types.EventAnswer | None:
            preparation = event["preparation"]
            if not preparation["userWantsSummary"]:
                return {"cancel": True}
            left = [entry["id"] for entry in preparation["entriesToSummarize"]]
            return {"summary": {"summary": f"left {left}", "details": {"by": "a test"}}}

        client.answer("session_before_tree", answer)
        vetoed = await client.navigate_tree(target_id="u1")
        assert vetoed["reason"] == "cancelledByClient"
        moved = await client.navigate_tree(target_id="a1", summarize=True)
        entry: Any = moved["summaryEntry"]
        assert entry["summary"] == "left ['u2', 'a2']"
        assert entry["details"] == {"by": "a test"}

    run(asked(tmp_path, test))


# `CancelledError` is not an `Exception`. A guard that raised it, for example because it awaited a
# cancelled task, once sent no answer, so the caller's `onNoAnswer` decided.
def test_an_answerer_that_is_cancelled_by_itself_cancels(tmp_path: Path) -> None:
    async def test(client: AsyncClient) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)

        async def fail(_: types.SessionBeforeTree) -> None:
            task = asyncio.ensure_future(asyncio.sleep(60))
            task.cancel("the check was cancelled")
            await task

        client.answer("session_before_tree", fail)
        moved = await client.navigate_tree(target_id="a1", answer_timeout_ms=20_000)
        assert moved["reason"] == "cancelledByClient"
        assert "ancelled" in moved["message"]

    run(asked(tmp_path, test))


def test_without_an_opinion_the_navigation_proceeds_and_an_error_cancels_it(tmp_path: Path) -> None:
    async def test(client: AsyncClient) -> None:
        errors: list[Any] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: errors.append(context["exception"]))
        assert (await client.navigate_tree(target_id="a1"))["newLeafId"] == "a1"

        async def nothing(_: types.SessionBeforeTree) -> None: ...

        client.answer("session_before_tree", nothing)
        assert (await client.navigate_tree(target_id="a2"))["newLeafId"] == "a2"
        mistake = ValueError("a mistake")

        async def fail(_: types.SessionBeforeTree) -> None:
            raise mistake

        client.answer("session_before_tree", fail)
        moved = await client.navigate_tree(target_id="a1")
        assert (moved["reason"], moved["message"]) == ("cancelledByClient", "a mistake")
        assert errors == [mistake]

    run(asked(tmp_path, test))


def test_the_error_for_an_undeclared_answerer_names_the_remedy(
    tmp_path: Path,
) -> None:
    async def answer(_: types.SessionBeforeTree) -> None: ...

    async def test() -> None:
        async with AsyncClient(COMMAND, session_dir=tmp_path) as client:
            with pytest.raises(ValueError, match=r"answers=\{'session_before_tree': answerer\}"):
                client.answer("session_before_tree", answer)

    run(test)
    # The error of the blocking client once named the class of the other client.
    with (
        Client(COMMAND, session_dir=tmp_path) as blocking,
        pytest.raises(ValueError, match=r"use Client\(answers="),
    ):
        blocking.answer("session_before_tree", lambda *_: None)


def test_closed_waits_no_longer_than_its_timeout(tmp_path: Path) -> None:
    """Only the blocking client once had a timeout here."""

    async def test() -> None:
        async with AsyncClient(COMMAND, session_dir=tmp_path) as client:
            with pytest.raises(asyncio.TimeoutError):
                await client.closed(0.05)
            await client.list_sessions()

    run(test)


def test_a_question_is_over_for_its_answerer_after_the_timeout(tmp_path: Path) -> None:
    async def test(client: AsyncClient) -> None:
        dismissed = asyncio.Event()

        async def answer(_: types.SessionBeforeTree) -> None:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                dismissed.set()
                raise

        client.answer("session_before_tree", answer)
        # A question that is over before its answer begins has no answer.
        moved = await client.navigate_tree(
            target_id="a1", answer_timeout_ms=2000, on_no_answer="cancel"
        )
        assert moved["reason"] == "noAnswer"
        await dismissed.wait()

    run(asked(tmp_path, test))


def test_an_answerer_can_ask_for_more_time(tmp_path: Path) -> None:
    async def test(client: AsyncClient) -> None:
        async def answer(event: types.SessionBeforeTree) -> types.EventAnswer:
            more = await client.answer_event(event_id=event["eventId"], extend_ms=60_000)
            assert more["timeoutMs"] > 50_000
            # Longer than the timeout of the navigation, which is long enough for a busy machine.
            await asyncio.sleep(3.3)
            return {"cancel": True}

        client.answer("session_before_tree", answer)
        moved = await client.navigate_tree(target_id="a1", answer_timeout_ms=3000)
        assert moved["reason"] == "cancelledByClient"

    run(asked(tmp_path, test))


def test_a_cancelled_task_cancels_its_call(tmp_path: Path) -> None:
    async def test(client: AsyncClient) -> None:
        questions: asyncio.Queue[asyncio.Event] = asyncio.Queue()

        async def wait(_: object) -> None:
            over = asyncio.Event()
            questions.put_nowait(over)
            try:
                await asyncio.sleep(60)
            finally:
                over.set()

        client.answer("session_before_tree", wait)
        client.answer("session_before_fork", wait)
        calls: list[Coroutine[Any, Any, Any]] = [
            client.navigate_tree(target_id="a1"),
            client.fork_session(),
        ]
        for call in calls:
            task = asyncio.ensure_future(call)
            over = await questions.get()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await over.wait()
        assert (await client.get_leaf())["leafId"] == "a2"

    run(asked(tmp_path, test))


def test_the_death_of_the_daemon_fails_every_open_call(tmp_path: Path) -> None:
    async def test(client: AsyncClient) -> None:
        over = asyncio.Event()

        async def wait(_: types.SessionBeforeTree) -> None:
            os.kill(client.pid, signal.SIGKILL)
            try:
                await asyncio.sleep(60)
            finally:
                over.set()

        client.answer("session_before_tree", wait)
        with pytest.raises(DisconnectedError, match="by signal 9"):
            await client.navigate_tree(target_id="a1")
        await over.wait()
        with pytest.raises(DisconnectedError):
            await client.get_leaf()
        assert (await client.closed()).details["exitCode"] == -signal.SIGKILL

    run(asked(tmp_path, test))


def test_close_answers_open_calls_and_aborts_questions(tmp_path: Path) -> None:
    async def test(client: AsyncClient) -> None:
        questions: asyncio.Queue[None] = asyncio.Queue()

        async def wait(_: types.SessionBeforeTree) -> None:
            questions.put_nowait(None)
            await asyncio.sleep(60)

        client.answer("session_before_tree", wait)
        moving = asyncio.ensure_future(client.navigate_tree(target_id="a1"))
        await questions.get()
        await client.close()
        assert (await moving)["reason"] == "aborted"
        assert (await client.closed()).details["exitCode"] == 0
        with pytest.raises(TreelinedError) as caught:
            await client.get_leaf()
        assert caught.value.kind == "disconnected"

    run(asked(tmp_path, test))
