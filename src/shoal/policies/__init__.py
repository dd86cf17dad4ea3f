"""Learners: one package a family, each on the same problem and the same plans."""

from shoal.policies.base import ArmMeans, Policy
from shoal.policies.registry import POLICIES, Entry, find_policy, load_policy, make_policy

__all__ = ["POLICIES", "ArmMeans", "Entry", "Policy", "find_policy", "load_policy", "make_policy"]
