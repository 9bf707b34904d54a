"""SPDY framing and connections: what is encoded is decoded, however it is cut; what breaks the rules is refused."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import PATIENCE
from paddlecloud.kube.errors import InternalError
from paddlecloud.local.apiserver.streaming import backlog, port_forward, spdy
from paddlecloud.local.apiserver.streaming.port_forward import Forwarder
from paddlecloud.local.apiserver.streaming.spdy_connection import LARGEST, MAX_STREAMS, Connection, Stream

texts = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=20)
headers = st.dictionaries(texts.map(str.lower), texts, max_size=5)
streams = st.integers(1, 2**31 - 1)
_flags = st.booleans()
frames = st.one_of(
    st.tuples(streams, _flags, st.binary(max_size=300)).map(lambda t: spdy.Frame(None, t[0], t[1], data=t[2])),
    st.tuples(streams, _flags, headers).map(lambda t: spdy.Frame(spdy.SYN_STREAM, t[0], t[1], headers=t[2])),
    st.tuples(streams, _flags, headers).map(lambda t: spdy.Frame(spdy.SYN_REPLY, t[0], t[1], headers=t[2])),
    st.tuples(streams, st.integers(1, 11)).map(lambda t: spdy.Frame(spdy.RST_STREAM, t[0], value=t[1])),
    st.integers(0, 2**32 - 1).map(lambda number: spdy.Frame(spdy.PING, 0, value=number)),
    st.tuples(streams, st.integers(0, 2)).map(lambda t: spdy.Frame(spdy.GOAWAY, t[0], value=t[1])),
)


def encode(encoder: spdy.Encoder, frame: spdy.Frame) -> bytes:
    if frame.kind is None:
        return spdy.data_frame(frame.stream, frame.data, fin=frame.fin)
    if frame.kind == spdy.SYN_STREAM:
        return encoder.syn_stream(frame.stream, frame.headers or {}, fin=frame.fin)
    if frame.kind == spdy.SYN_REPLY:
        return encoder.syn_reply(frame.stream, frame.headers or {}, fin=frame.fin)
    if frame.kind == spdy.RST_STREAM:
        return spdy.reset(frame.stream, frame.value)
    if frame.kind == spdy.PING:
        return spdy.ping(frame.value)
    return spdy.go_away(frame.stream, frame.value)


def test_the_dictionary_is_the_one_of_the_draft() -> None:
    assert (len(spdy.DICTIONARY), zlib.adler32(spdy.DICTIONARY)) == (1423, 0xE3C6A7C2)


@given(st.lists(frames, max_size=12), st.lists(st.integers(1, 40), min_size=1))
def test_frames_survive_any_cut(sent: list[spdy.Frame], cuts: list[int]) -> None:
    encoder, decoder = spdy.Encoder(), spdy.Decoder()
    data = b"".join(encode(encoder, frame) for frame in sent)
    received: list[spdy.Frame] = []
    position = turn = 0
    while position < len(data):
        size = cuts[turn % len(cuts)]
        received += decoder.feed(data[position : position + size])
        position, turn = position + size, turn + 1
    assert received == sent


@given(st.binary(max_size=400))
def test_no_bytes_break_the_decoder(data: bytes) -> None:
    try:
        list(spdy.Decoder().feed(data))
    except spdy.ProtocolError:
        pass


@pytest.mark.parametrize(
    "data",
    [
        b"\x80\x02\x00\x06\x00\x00\x00\x04\x00\x00\x00\x01",
        b"\x00\x00\x00\x01\x00\xff\xff\xff",
        b"\x80\x03\x00\x03\x00\x00\x00\x04\x00\x00\x00\x01",
        b"\x80\x03\x00\x02\x00\x00\x00\x08\x00\x00\x00\x01nope",
    ],
    ids=["another version", "a frame too large", "a frame too short", "headers not compressed"],
)
def test_what_breaks_the_rules_is_refused(data: bytes) -> None:
    with pytest.raises(spdy.ProtocolError):
        list(spdy.Decoder().feed(data))


def test_a_header_block_that_unpacks_to_too_much_is_refused() -> None:
    bomb = spdy.Encoder().syn_stream(1, {"a": "0" * (spdy.MAX_HEADER_BLOCK + 1)})
    assert len(bomb) < 1024
    with pytest.raises(spdy.ProtocolError, match="too large"):
        list(spdy.Decoder().feed(bomb))


class Pipe:
    """A link whose other end is the test."""

    def __init__(self) -> None:
        self.inbox: asyncio.Queue[bytes] = asyncio.Queue()
        self.outbox: asyncio.Queue[bytes] = asyncio.Queue()
        self.encoder = spdy.Encoder()
        self._decoder = spdy.Decoder()
        self._frames: list[spdy.Frame] = []

    async def read(self) -> bytes:
        return await self.inbox.get()

    async def write(self, data: bytes) -> None:
        self.outbox.put_nowait(data)

    async def close(self) -> None: ...

    def say(self, data: bytes) -> None:
        self.inbox.put_nowait(data)

    async def receive(self) -> spdy.Frame:
        while not self._frames:
            self._frames += self._decoder.feed(await asyncio.wait_for(self.outbox.get(), PATIENCE))
        return self._frames.pop(0)


class Ends:
    def __init__(self) -> None:
        self.pipe = Pipe()
        self.opened: asyncio.Queue[Stream] = asyncio.Queue()
        self.connection = Connection(self.pipe, self.opened.put_nowait)
        self.running = asyncio.ensure_future(self.connection.run())

    async def open(self, number: int = 1, *, fin: bool = False) -> Stream:
        self.pipe.say(self.pipe.encoder.syn_stream(number, {"streamtype": "data"}, fin=fin))
        stream = await asyncio.wait_for(self.opened.get(), PATIENCE)
        assert await self.pipe.receive() == spdy.Frame(spdy.SYN_REPLY, number, headers={})
        return stream


@pytest.fixture
async def ends() -> AsyncIterator[Ends]:
    both = Ends()
    yield both
    both.running.cancel()
    await asyncio.gather(both.running, return_exceptions=True)


async def test_a_stream_carries_bytes_both_ways_and_ends_on_both_sides(ends: Ends) -> None:
    stream = await ends.open()
    assert stream.headers == {"streamtype": "data"}
    ends.pipe.say(spdy.data_frame(1, b"to you"))
    assert await stream.read() == b"to you"
    await stream.write(b"x" * (LARGEST + 1))
    sizes = [len((await ends.pipe.receive()).data), len((await ends.pipe.receive()).data)]
    assert sizes == [LARGEST, 1]
    ends.pipe.say(spdy.data_frame(1, b"", fin=True))
    assert await stream.read() == b""
    await stream.finish()
    assert (await ends.pipe.receive()).fin
    with pytest.raises(ConnectionError):
        await stream.write(b"after the end")


async def test_pings_are_answered_and_answers_are_not(ends: Ends) -> None:
    ends.pipe.say(spdy.ping(2) + spdy.ping(7))
    assert await ends.pipe.receive() == spdy.Frame(spdy.PING, 0, value=7)


async def test_a_stream_that_was_reset_ends_its_reader(ends: Ends) -> None:
    stream = await ends.open()
    ends.pipe.say(spdy.data_frame(1, b"lost") + spdy.reset(1, 5))
    ends.pipe.say(spdy.ping(1))
    await ends.pipe.receive()
    with pytest.raises(ConnectionError):
        await stream.read()


async def test_a_stream_nobody_reads_stops_the_connection_until_somebody_does(ends: Ends) -> None:
    stream = await ends.open()
    for _ in range(2):
        ends.pipe.say(spdy.data_frame(1, bytes(backlog.MOST)))
    ends.pipe.say(spdy.ping(9))
    for _ in range(50):
        await asyncio.sleep(0)
    assert ends.pipe.outbox.empty()
    await stream.read()
    assert (await ends.pipe.receive()).value == 9


async def test_the_streams_of_a_connection_hold_a_megabyte_together_until_they_are_reset(ends: Ends) -> None:
    numbers = range(1, 16, 2)
    opened = [await ends.open(number) for number in numbers]
    for number in numbers:
        ends.pipe.say(spdy.data_frame(number, bytes(backlog.MOST // 4)))
    ends.pipe.say(spdy.ping(9))
    for _ in range(50):
        await asyncio.sleep(0)
    assert ends.pipe.outbox.empty()
    for stream in opened[:4]:
        stream.abort()
    assert (await ends.pipe.receive()).value == 9


async def test_streams_the_client_may_not_open_are_reset(ends: Ends) -> None:
    ends.pipe.say(ends.pipe.encoder.syn_stream(2, {}))
    assert (await ends.pipe.receive()).kind == spdy.RST_STREAM
    for number in range(1, 2 * MAX_STREAMS, 2):
        await ends.open(number)
    ends.pipe.say(ends.pipe.encoder.syn_stream(2 * MAX_STREAMS + 1, {}))
    assert await ends.pipe.receive() == spdy.Frame(spdy.RST_STREAM, 2 * MAX_STREAMS + 1, value=3)


@pytest.mark.parametrize("last_frame", [spdy.go_away(0), b""], ids=["goes away", "just leaves"])
async def test_when_the_client_leaves_its_streams_break(ends: Ends, last_frame: bytes) -> None:
    stream = await ends.open()
    ends.pipe.say(last_frame)
    await asyncio.wait_for(ends.running, PATIENCE)
    with pytest.raises(ConnectionError):
        await stream.read()


@asynccontextmanager
async def dial_nobody(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    raise InternalError(f"nobody listens on {port}")
    yield  # the form of a context, which is never entered


async def test_pairs_of_streams_without_a_name_are_found_by_their_numbers() -> None:
    """As clients older than the `requestid` header have it: an error stream, then its data stream, two numbers on."""
    pipe = Pipe()

    running = asyncio.ensure_future(Forwarder(pipe, dial_nobody).run())
    opened = [("error", 1, 80), ("error", 5, 81), ("data", 7, 81), ("data", 3, 80)]
    for role, number, port in opened:
        pipe.say(pipe.encoder.syn_stream(number, {"streamtype": role, "port": str(port)}))
    reported = {}
    while len(reported) < 2:
        frame = await pipe.receive()
        if frame.data:
            reported[frame.stream] = frame.data
    assert reported == {1: b"nobody listens on 80", 5: b"nobody listens on 81"}
    pipe.say(b"")
    await asyncio.wait_for(running, PATIENCE)


async def test_streams_that_are_reset_before_they_have_a_pair_are_not_kept_without_end() -> None:
    pipe = Pipe()
    running = asyncio.ensure_future(Forwarder(pipe, dial_nobody).run())
    for number in range(1, 2 * MAX_STREAMS + 4, 2):
        named = {"streamtype": "error", "port": "80", "requestid": str(number)}
        pipe.say(pipe.encoder.syn_stream(number, named) + spdy.reset(number, 5))
    await asyncio.wait_for(running, PATIENCE)


async def test_a_client_that_breaks_off_leaves_no_connection_to_a_pod_that_does_not_read() -> None:
    done = asyncio.Event()

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reader._transport.pause_reading()  # type: ignore[attr-defined]
        await done.wait()
        writer.close()

    async with await asyncio.start_server(hold, "127.0.0.1", 0) as server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(bytes(16 * 1024 * 1024))  # more than the machine keeps for a reader that does not read

        async def broken() -> bytes:
            raise ConnectionResetError

        async def ignored(*_: bytes) -> None: ...

        await asyncio.wait_for(port_forward.join(reader, writer, broken, ignored, ignored), PATIENCE)
        await asyncio.wait_for(writer.wait_closed(), PATIENCE)
        done.set()
