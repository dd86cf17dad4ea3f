"""The two stores: one schema each, on SQLite or PostgreSQL; and the clock of what is stored."""

from shoal.service.store.database import DAY, HOUR, Clock, Database, system_clock

__all__ = ["DAY", "HOUR", "Clock", "Database", "system_clock"]
