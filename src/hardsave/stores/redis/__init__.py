"""An expiring store on a Redis or Valkey server: `redis://…`; needs the extra `redis`."""

from hardsave.stores.redis.store import RedisStore

__all__ = ["RedisStore"]
