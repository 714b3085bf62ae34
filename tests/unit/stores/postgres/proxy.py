"""A proxy in front of the server that tests share."""

from pathlib import Path

from tests import proxy
from tests.postgres_server import server


class Proxy(proxy.Proxy):
    def __init__(self) -> None:
        super().__init__(Path(server(), ".s.PGSQL.5432"))
