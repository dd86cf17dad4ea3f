"""Talking to the service over HTTP: ``Client`` waits, ``AsyncClient`` is awaited.

Every call may be repeated: names and round numbers are made by the caller, and a repeated report
changes nothing. So both clients simply try again, with growing pauses, until their patience ends.
"""

from shoal.client import packages as packages
from shoal.client.calls import ServiceError
from shoal.client.clients import AsyncClient, Client
from shoal.client.operations import Refused, Round
from shoal.client.table import AssignmentTable
from shoal.wire import Noise, Page, Release, Total

__all__ = [
    "AssignmentTable", "AsyncClient", "Client", "Noise", "Page", "Refused", "Release", "Round",
    "ServiceError", "Total",
]  # fmt: skip
