"""All that the recordings import of Shoal and of other tests: a moved module is edited here."""

from __future__ import annotations

from tests.service.conftest import postgres
from tests.support.live import Live, serve
from tests.support.service import KEY, TestClock
from tests.support.stores import Stores, as_user

from shoal.cli.main import COMMANDS, main
from shoal.client import Client
from shoal.engines import LocalEngine
from shoal.environments import Environment, make_environment
from shoal.errors import ShoalError
from shoal.experiments import Run, compare, price, simulate, simulate_shards
from shoal.instances import instance
from shoal.model import Feedback, Plan, Problem
from shoal.model.container import pack, unpack
from shoal.policies import POLICIES, Policy, make_policy

__all__ = [
    "COMMANDS",
    "KEY",
    "POLICIES",
    "Client",
    "Environment",
    "Feedback",
    "Live",
    "LocalEngine",
    "Plan",
    "Policy",
    "Problem",
    "Run",
    "ShoalError",
    "Stores",
    "TestClock",
    "as_user",
    "compare",
    "instance",
    "main",
    "make_environment",
    "make_policy",
    "pack",
    "postgres",
    "price",
    "serve",
    "simulate",
    "simulate_shards",
    "unpack",
]
