import socket

from hardsave.server import running


def test_answers_are_sent_at_once() -> None:
    """asyncio sets TCP_NODELAY on connections whose protocol is named, and on no others."""
    listening = running._listening("127.0.0.1", 0)
    with listening, socket.create_connection(listening.getsockname()):
        served, _ = listening.accept()
        with served:
            assert served.proto == socket.IPPROTO_TCP
