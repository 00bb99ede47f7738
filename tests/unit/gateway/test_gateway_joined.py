"""A key that an endpoint streams in pieces, for the CLI to join, does not arrive."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest
from gateway_rig import AUTH, KEY, URL, chunk, event, request_body, rig, stream_events, stream_reply
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.gateway.joined import JoinedScrubber, KeySentError
from orchestrator.gateway.scrub import MIN_SECRET, Scrubber
from orchestrator.gateway.sse import event_data, split_events
from orchestrator.gateway.wires.chat import ChatWire

Delta = Callable[[str], dict[str, Any]]


def arguments(text: str) -> dict[str, Any]:
    return {"tool_calls": [{"index": 0, "function": {"arguments": text}}]}


DELTAS: dict[str, Delta] = {
    "content": lambda text: {"content": text},
    "refusal": lambda text: {"refusal": text},
    "reasoning": lambda text: {"reasoning": text},
    "reasoning_content": lambda text: {"reasoning_content": text},
    "arguments": arguments,
    "parts": lambda text: {"content": [{"type": "text", "text": text}]},
}
FORMS = {
    "plain": KEY,
    "url": quote(KEY, safe=""),
    "json": KEY.replace("/", "\\/"),
    "hex": KEY.encode().hex(),
    **{f"base64 {n}": base64.b64encode(b"u" * n + KEY.encode()).decode() for n in range(3)},
    "base64 url": base64.urlsafe_b64encode(KEY.encode()).decode(),
}


def guard() -> JoinedScrubber:
    return JoinedScrubber(Scrubber([KEY]), ChatWire().texts)


def passed(pieces: Iterable[bytes]) -> tuple[list[bytes], bool]:
    """What passes of each piece, with what is held at the end; whether the key was found."""
    scrub = guard()
    out: list[bytes] = []
    try:
        out.extend(scrub.feed(piece) for piece in pieces)
        out.append(scrub.rest())
    except KeySentError:
        return out, True
    return out, False


def texts(stream: bytes) -> Iterator[tuple[tuple[str, ...], str]]:
    for one in split_events(stream):
        data = event_data(one)
        if data and data != b"[DONE]":
            yield from ChatWire().texts(json.loads(data))


def joined(stream: bytes) -> dict[tuple[str, ...], str]:
    """The texts as a CLI joins them."""
    found: dict[tuple[str, ...], str] = {}
    for place, text in texts(stream):
        found[place] = found.get(place, "") + text
    return found


def assert_kept_back(pieces: list[bytes], secret: str) -> None:
    """All but the first 7 characters of the secret's own core, which its neighbours do not change."""
    out, found = passed(pieces)
    assert found
    shown = "".join(joined(b"".join(out)).values())
    assert all(secret[at : at + MIN_SECRET] not in shown for at in range(4, len(secret) - MIN_SECRET - 4))


@pytest.mark.parametrize("name", DELTAS)
@pytest.mark.parametrize("form", FORMS)
def test_key_split_in_two_anywhere(name: str, form: str) -> None:
    secret, delta = FORMS[form], DELTAS[name]
    for at in range(1, len(secret)):
        before, after = f"it is {secret[:at]}", f"{secret[at:]} indeed"
        assert_kept_back([event(chunk(delta(text))) for text in (before, after)], secret)


@pytest.mark.parametrize("name", DELTAS)
@pytest.mark.parametrize("form", FORMS)
def test_key_in_single_characters(name: str, form: str) -> None:
    secret = FORMS[form]
    assert_kept_back([event(chunk(DELTAS[name](char))) for char in f"it is {secret} indeed"], secret)


def test_key_written_with_escapes_of_json() -> None:
    """The bytes of the stream do not hold it even where one event does."""
    escaped = "".join(f"\\u{ord(char):04x}" for char in KEY)
    line = event(chunk({"content": "@"})).replace(b"@", escaped.encode())
    assert passed([line]) == ([], True)
    not_utf8 = line.replace(b'"build7"', b'"build\xff"')
    assert passed([not_utf8]) == ([], True)


def test_key_interleaved_with_other_texts() -> None:
    pieces: list[bytes] = []
    for char in KEY:
        other = chunk({"content": "thinking", "reasoning": "hm"})
        second = {"tool_calls": [{"index": 1, "function": {"arguments": "{}"}}]}
        pieces += [event(chunk(arguments(char))), event(other), event(chunk(second)), b": keep-alive\n\n"]
    assert_kept_back(pieces, KEY)


def test_choices_are_joined_each_by_itself() -> None:
    def of(index: int, text: str) -> bytes:
        choice = {"index": index, "delta": {"content": text}, "finish_reason": None}
        return event(chunk({}, choices=[choice]))

    halves = [of(0, KEY[:12]), of(1, KEY[12:])]
    out, found = passed(halves)
    assert not found
    assert b"".join(out) == b"".join(halves)
    assert_kept_back([of(index, char) for char in KEY for index in (1, 0)], KEY)


def test_beginning_of_a_key_passes_once_it_goes_on_otherwise() -> None:
    first, meanwhile = event(chunk({"content": f"a {KEY[:20]}"})), b": keep-alive\n\n"
    last = event(chunk({"content": "no key"}))
    assert passed([first, meanwhile, last])[0] == [b"", b"", first + meanwhile + last, b""]


def test_events_before_the_held_one_pass_at_once() -> None:
    before, held = event(chunk({"content": "a"})), event(chunk({"content": KEY[:MIN_SECRET]}))
    out, found = passed([before + held])
    assert (out, found) == ([before, held], False)


def test_other_texts_wait_only_for_what_is_held() -> None:
    """Fewer than MIN_SECRET characters hold nothing, and a text that went on holds no longer."""
    pieces = [event(chunk({"content": text})) for text in (KEY[: MIN_SECRET - 1], "x", KEY[:9], "y", "z")]
    out, _ = passed(pieces)
    assert out == [pieces[0], pieces[1], b"", pieces[2] + pieces[3], pieces[4], b""]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_lines_end_in_any_way_and_in_any_piece(end: bytes) -> None:
    for text in (KEY, KEY[:-1] + "?"):
        stream = b"".join(event(chunk({"content": char})) for char in text).replace(b"\n", end)
        for size in (1, 2, 3, 50, 4096):
            out, found = passed([stream[at : at + size] for at in range(0, len(stream), size)])
            assert found == (text == KEY)
            assert found or b"".join(out) == stream
            assert b"".join(out).count(b"}]}") <= MIN_SECRET or not found


def test_carriage_return_that_ends_a_piece_ends_a_line() -> None:
    """Else its event would pass, unread, with the beginning of the next one."""
    first = event(chunk({"content": KEY[:5]})).replace(b"\n", b"\r")
    last = event(chunk({"content": KEY[5:]})).replace(b"\n\n", b"\r")
    out, found = passed([first, last, b": next"])
    assert found
    assert b"".join(out) == first + last[:-2]


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_last_event_without_its_end(end: bytes) -> None:
    first, last = event(chunk({"content": KEY[:10]})), event(chunk({"content": KEY[10:]})).rstrip()
    lines = b"data: " + last.removeprefix(b"data: ").replace(b", ", b",\ndata: ")
    for ending in (last, lines):
        out, found = passed([first, ending + end])
        assert found
        assert b"".join(out) == b""


def test_data_over_several_lines() -> None:
    lines = json.dumps(chunk({"content": KEY[10:]}), indent=0).replace("\n", "\ndata: ")
    first = event(chunk({"content": KEY[:10]}))
    assert passed([first, f"data: {lines}\n\n".encode()]) == ([b""], True)
    # Not held by an event before it: then its own end is missing.
    first = event(chunk({"content": KEY[:5]}))
    lines = json.dumps(chunk({"content": KEY[5:]}), indent=0).replace("\n", "\ndata: ")
    out, found = passed([first, f"data: {lines}\n".encode(), b"\n"])
    assert found
    assert KEY[5:15].encode() not in b"".join(out)


def test_piece_of_a_line_never_is_its_whole_json() -> None:
    """A client may read a last line that lacks its end."""
    first, last = event(chunk({"content": KEY[:5]})), event(chunk({"content": KEY[5:]}))
    for cut in range(1, len(last)):
        out, found = passed([first, last[:cut], last[cut:]])
        assert found
        with pytest.raises(ValueError, match=r"Expecting|Unterminated|Invalid"):
            json.loads(b"".join(out)[len(first) :].removeprefix(b"data:") or b"-")


@given(
    st.lists(st.one_of(st.sampled_from([KEY[:8], KEY[:20], KEY[8:], KEY[1:], "\n"]), st.text(max_size=5))),
    st.lists(st.integers(1, 300), min_size=1, max_size=20),
)
def test_streams_without_a_key_are_the_same_bytes(said: list[str], sizes: list[int]) -> None:
    if KEY in "".join(said):
        return
    stream = b"".join(event(chunk({"content": text})) for text in said) + b"data: [DONE]\n\n"
    pieces: list[bytes] = []
    at = 0
    while at < len(stream):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(stream[at : at + size])
        at += size
    out, found = passed(pieces)
    assert not found
    assert b"".join(out) == stream


# ---- through the gateway ----


async def read(response: aiohttp.ClientResponse) -> tuple[bytes, bool]:
    """What arrives, and whether it broke off."""
    shown = b""
    try:
        async for data in response.content.iter_any():
            shown += data
    except aiohttp.ClientPayloadError:
        return shown, True
    return shown, False


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("asks", [True, False])
@pytest.mark.parametrize("content_type", ["text/event-stream", "text/plain"])
def test_call_ends_as_cut_and_says_why(tmp_path: Path, asks: bool, content_type: str, together: bool) -> None:
    """The same bytes pass whether the events come one by one or in one piece."""
    basic = base64.b64encode(f"user:{KEY}".encode()).decode()
    said = [*"The key is ", *KEY, *basic]
    deltas = [event(chunk({"content": text})) for text in said]

    async def answer(request: aiohttp.web.Request) -> aiohttp.web.StreamResponse:
        response = aiohttp.web.StreamResponse(headers={"Content-Type": content_type})
        await response.prepare(request)
        for delta in [b"".join(deltas)] if together else deltas:
            await response.write(delta)
        return response

    async def run() -> None:
        async with rig(tmp_path, answer, max_calls=1) as gateway:
            options = {"stream_options": {"include_usage": True}} if asks else {}
            body = request_body(stream=True, **options)
            async with gateway.client.post(URL, json=body, headers=AUTH) as response:
                shown, broke_off = await read(response)
            assert broke_off
            assert "".join(joined(shown).values()) == f"The key is {KEY[: MIN_SECRET - 1]}"
            (call,) = await gateway.close()
            assert call.error == "gateway"
            assert call.error_detail is not None
            assert "the endpoint sent its own key" in call.error_detail
            assert call.first_byte is not None
            (wire,) = gateway.wire()
            assert wire.response == shown.decode()
            stored = gateway.route.calls_path.read_bytes() + gzip.decompress(
                gateway.route.wire_path.read_bytes()
            )
            assert KEY[:MIN_SECRET].encode() not in stored

    asyncio.run(run())


@pytest.mark.parametrize("asks", [True, False])
@pytest.mark.parametrize("cut", [True, False])
def test_held_end_of_a_stream_arrives(tmp_path: Path, asks: bool, cut: bool) -> None:
    first, *others = stream_events(usage=False)
    events = [first, event(chunk({"content": KEY[:20]})), *([] if cut else others[-2:])]

    async def run() -> None:
        async with rig(tmp_path, stream_reply(events, cut=cut)) as gateway:
            options = {"stream_options": {"include_usage": True}} if asks else {}
            async with gateway.client.post(
                URL, json=request_body(stream=True, **options), headers=AUTH
            ) as response:
                shown, broke_off = await read(response)
            assert broke_off == cut
            assert shown == b"".join(events)
            (call,) = await gateway.close()
            assert call.error == ("stream_cut" if cut else None)

    asyncio.run(run())
