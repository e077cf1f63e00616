"""Connections of the server: each one must send whole requests in time, and none can keep out others."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from treedot.serve.safety import problem

CONNECTIONS = 512  # at the same time
ARRIVAL = 10.0  # seconds for the head of a request, from the start of a connection or the last answer on
PAUSE = 0.02  # seconds for a new connection, whose request may be there already, until one too many is closed
READING = 30.0  # seconds after which a client must read more of an answer
TOO_LATE, TOO_LONG, INVALID = 408, 431, 400


class Protocol(H11Protocol):
    """A connection that is closed if it sends no request in time, or does not read the answer.

    If there are too many connections, the one that has been without a whole request for longest is closed.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin a connection; close another one if there are too many."""
        super().connection_made(transport)
        self._timer: asyncio.TimerHandle | None = None
        self._wait()
        self.loop.call_later(PAUSE, self._make_room)

    def _make_room(self) -> None:
        """Close a connection if there are too many, if possible one that waits for a whole request."""
        every: Iterable[Any] = self.connections  # of this class
        alive = [one for one in every if not one.transport.is_closing()]
        if len(alive) > CONNECTIONS and not self.transport.is_closing():
            min(alive, key=lambda one: (not one.is_idle, one.since)).close()

    @property
    def is_idle(self) -> bool:
        """Whether it waits for a whole request."""
        is_written = not self.transport.get_write_buffer_size()
        return is_written and (not self._is_working or self.cycle.more_body)

    @property
    def _is_working(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _wait(self) -> None:
        """Wait for the next request."""
        self.since = self.loop.time()
        self._end_after(ARRIVAL, self._end_late)

    def _end_after(self, seconds: float, end: Callable[[], object]) -> None:
        self._stop()
        self._timer = self.loop.call_later(seconds, end)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end_late(self) -> None:
        """Close the connection; say why if a part of a request has arrived."""
        if self.conn.our_state is h11.IDLE and self.conn.trailing_data[0]:
            self._refuse(TOO_LATE, "the request did not arrive in time")
        else:
            self.close()

    def close(self) -> None:
        """Close the connection, also if the client does not read what was sent."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes; the time for a request ends when its head is complete."""
        super().data_received(data)
        if self._is_working and not self.flow.write_paused:
            self._stop()

    def on_response_complete(self) -> None:
        """Wait for the next request, which may have arrived already."""
        super().on_response_complete()
        if not self._is_working and not self.flow.write_paused and not self.transport.is_closing():
            self._wait()

    def pause_writing(self) -> None:
        """Wait for the client to read."""
        super().pause_writing()
        self._end_after(READING, self.transport.abort)

    def resume_writing(self) -> None:
        """Write on, or wait for the next request."""
        super().resume_writing()
        if self._is_working:
            self._stop()
        else:
            self._wait()

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP."""
        if getattr(sys.exception(), "error_status_hint", INVALID) == TOO_LONG:
            self._refuse(TOO_LONG, "the link and the headers are too long")
        else:
            self._refuse(INVALID, "the request is not valid HTTP")

    def _refuse(self, status: int, message: str) -> None:
        """Answer with a problem if no answer has begun, and close the connection."""
        if self.cycle is not None:  # what still works on a request of this connection must not answer
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            answer = problem(status, message)
            headers = [*answer.raw_headers, (b"connection", b"close")]
            body = h11.Data(data=bytes(answer.body))
            head = h11.Response(status_code=status, headers=headers, reason=b"")
            for event in (head, body, h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.close()
