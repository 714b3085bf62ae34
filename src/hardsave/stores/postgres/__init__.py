"""A store that a PostgreSQL server keeps: many hosts share it."""

from hardsave.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
