from pathlib import Path

from hardsave.stores.redis import RedisStore
from hardsave.testing import StoreContract
from tests.redis_server import url_of


class TestRedisStore(StoreContract):
    not_claimed = frozenset({"search", "compact", "backup", "large workspaces"})

    def open_store(self, folder: Path) -> RedisStore:
        return RedisStore(url_of(folder))
