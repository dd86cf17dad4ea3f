"""The flagship for small shards: one joint posterior of all users."""
