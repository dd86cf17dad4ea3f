"""The learner for small shards: one joint posterior of all users."""
