"""What a client raises."""

from __future__ import annotations

from shoal.errors import ShoalError


class ServiceError(ShoalError):
    """The service refused a call, or could not be reached in time.

    Attributes
    ----------
    name : str
        The stable name of the problem, for example "plan-frozen"; "unreachable" if there was
        no answer.
    status : int
        The HTTP status, 0 if there was no answer.
    """

    def __init__(self, name: str, status: int, message: str) -> None:
        super().__init__(message)
        self.name = name
        self.status = status
