"""Telling a web server that a job is over: within 30 seconds, and only at an address that a
stranger may name.

The address comes with the job. So that it does not lead to the machines beside this one, a name is
resolved once, every address that it has must be a public one, the connection goes to the very
address that was looked at, and no redirect is followed.
"""

import contextlib
import http
import http.client
import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import SplitResult, urlsplit

from hardsave.defaults import CALLBACK_SECONDS
from hardsave.errors import HardsaveError, LeaseLost
from hardsave.values.text import dumps
from hardsave.vault.jobs.state import Job

Resolve = Callable[[str, int], list[str]]
Sign = Callable[[bytes], Mapping[str, str]]
Check = Callable[[], object]

_HEADERS = {"Content-Type": "application/json", "User-Agent": "hardsave"}


class CallbackFailed(HardsaveError):
    """The callback was not made. The job is as it was."""


class CallbackRefused(CallbackFailed):
    """The callback will not be made: to try again would end in the same way."""


class CallbackGone(CallbackRefused):
    """The receiver has answered 410 Gone: it wants no more callbacks."""


def message(job: Job, at: str) -> dict[str, Any]:
    """What is sent."""
    succeeded = job.state == "succeeded"
    told = {
        "jobId": job.id,
        "status": "completed" if succeeded else "failed",
        "success": succeeded,
        "message": _said(job),
        "completedAt": at,
    }
    if job.error is not None and not succeeded:
        told["error"] = job.error
    url = _named(job.output, "pullRequestUrl") or _named(job.spec.about, "pullRequestUrl")
    if url is not None:
        told["pullRequestUrl"] = url
    return told


def _said(job: Job) -> str:
    """The end of a job in words: its agent's own, its error, or at least what became of it."""
    said = job.output if isinstance(job.output, str) else _named(job.output, "message")
    return said or job.error or f"job {job.id} has {job.state}"


def _named(data: Any, name: str) -> str | None:
    """A text that an agent's output, or what was said about its job, has under a name."""
    found = data.get(name) if isinstance(data, Mapping) else None
    return found if isinstance(found, str) else None


def send(
    url: str,
    body: Mapping[str, Any],
    *,
    allow_private: bool = False,
    timeout_seconds: float = CALLBACK_SECONDS,
    resolve: Resolve | None = None,
    once: str | None = None,
    sign: Sign | None = None,
    check: Check = lambda: None,
) -> int:
    """Post it, once; the status of the answer. `CallbackFailed` for anything but 2xx.

    `once` tells a receiver what it has heard already: the same for all tries. `sign` gets the bytes
    that are sent, and gives the headers of their signature. `check` is called when the receiver is
    connected, right before it hears anything; what it raises is raised.
    """
    data = dumps(body).encode()
    whom = named(url)
    headers = {**_HEADERS, **({} if once is None else {"Idempotency-Key": once})}
    headers |= {} if sign is None else sign(data)
    sending = _Sending(url, data, headers, allow_private, timeout_seconds, resolve, check)
    # A thread, because nothing else bounds a name server that is silent, or a byte a minute.
    thread = threading.Thread(target=sending.run, name="hardsave-callback", daemon=True)
    thread.start()
    thread.join(timeout_seconds)
    # A socket that waits gives up at the same time: which of the two comes first is chance.
    if thread.is_alive() or isinstance(sending.error, TimeoutError):
        sending.give_up()
        raise CallbackFailed(f"{whom} has not answered within {timeout_seconds:.0f} s")
    if isinstance(sending.error, LeaseLost):
        raise sending.error
    if sending.error is not None:
        is_final = isinstance(sending.error, CallbackRefused)
        wrong = CallbackRefused if is_final else CallbackFailed
        raise wrong(f"{whom} was not told: {sending.error}") from sending.error
    if not 200 <= sending.status < 300:
        wrong = _wrong(sending.status)
        note = "; redirects are not followed" if sending.status < 400 else ""
        raise wrong(f"{whom} answered {sending.status}{note}")
    return sending.status


def _wrong(status: int) -> type[CallbackFailed]:
    if status == http.HTTPStatus.GONE:
        return CallbackGone
    return CallbackFailed if may_pass(status) else CallbackRefused


def named(url: str) -> str:
    """An address as errors and logs may call it: the rest of it often works as a key."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def may_pass(status: int) -> bool:
    """Whether a server that answers so may answer otherwise later."""
    return status >= 500 or status in (408, 425, 429)


def is_public(address: str) -> bool:
    """Whether an address is one of the internet's. One that wraps another is as that one is."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour or (found.teredo and found.teredo[1])
        if inner:
            return is_public(str(inner))
        if found in _NAT64:
            return is_public(str(ipaddress.IPv4Address(int(found) & 0xFFFF_FFFF)))
        if found not in _INTERNET:
            return False
    return found.is_global and not found.is_multicast


_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_INTERNET = ipaddress.IPv6Network("2000::/3")  # all that was ever given out


def resolved(host: str, port: int) -> list[str]:
    """The addresses of a name, best first."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class _Sending:
    def __init__(
        self,
        url: str,
        data: bytes,
        headers: Mapping[str, str],
        allow_private: bool,
        timeout_seconds: float,
        resolve: Resolve | None,
        check: Check,
    ) -> None:
        self.status = 0
        self.error: Exception | None = None
        self._parts = urlsplit(url)
        self._data = data
        self._allow_private = allow_private
        self._timeout = timeout_seconds
        self._resolve = resolve or resolved
        self._headers = headers
        self._check = check
        self._connection: http.client.HTTPConnection | None = None

    def run(self) -> None:
        try:
            self._send()
        except (OSError, http.client.HTTPException, ValueError, HardsaveError) as error:
            self.error = error
        finally:
            if self._connection is not None:
                self._connection.close()

    def give_up(self) -> None:
        """Let go of a server that keeps us waiting; the thread ends by that."""
        held = None if self._connection is None else self._connection.sock
        if held is not None:
            with contextlib.suppress(OSError):
                held.shutdown(socket.SHUT_RDWR)

    def _send(self) -> None:
        parts = self._parts
        host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
        addresses = self._resolve(host, port)
        if not addresses:
            raise CallbackFailed(f"{host} has no address")
        private = [each for each in addresses if not is_public(each)]
        if private and not self._allow_private:
            raise CallbackRefused(
                f"{host} leads to {private[0]}, which is not a public address; a worker of your "
                "own may be told to allow that"
            )
        self._connection = _to(parts.scheme, host, port, addresses[0], self._timeout)
        self._check()
        self._connection.request("POST", _target(parts), self._data, self._headers)
        self.status = self._connection.getresponse().status


_PORTS = {"http": 80, "https": 443}


def _target(parts: SplitResult) -> str:
    path = parts.path or "/"
    return f"{path}?{parts.query}" if parts.query else path


def _to(
    scheme: str, host: str, port: int, address: str, timeout: float
) -> http.client.HTTPConnection:
    """A connection that speaks to `host`, and goes to `address`."""
    made: http.client.HTTPConnection
    if scheme == "https":
        secure = ssl.create_default_context()
        made = http.client.HTTPSConnection(host, port, timeout=timeout, context=secure)
        plain = socket.create_connection((address, port), timeout)
        try:
            made.sock = secure.wrap_socket(plain, server_hostname=host)
        except BaseException:
            plain.close()
            raise
    else:
        made = http.client.HTTPConnection(host, port, timeout=timeout)
        made.sock = socket.create_connection((address, port), timeout)
    return made
