"""The two stores: one schema each, on SQLite or PostgreSQL."""

from shoal.service.store.database import Database

__all__ = ["Database"]
