"""Learners that use every total of randomly regrouped crowds."""
