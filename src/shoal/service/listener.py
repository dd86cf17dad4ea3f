"""The address that a role listens on."""

from __future__ import annotations

from socket import SO_REUSEADDR, SOCK_STREAM, SOL_SOCKET, getaddrinfo, socket
from typing import TYPE_CHECKING

from shoal.errors import InvalidInputError

if TYPE_CHECKING:
    from shoal.service.store.migrate import StoreRole


def bind(role: StoreRole, host: str, port: int) -> socket:
    """Bind an address before anything is created; requests wait until it is served."""
    try:
        family, kind, protocol, _, address = getaddrinfo(host, port, type=SOCK_STREAM)[0]
        listener = socket(family, kind, protocol)  # else asyncio delays small answers by 40 ms
        listener.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
        listener.bind(address)
    except (OSError, OverflowError) as error:
        raise InvalidInputError(
            f"{role}.host and {role}.port must be a free address of this machine; "
            f"{host} {port}: {str(error).rstrip('.')}. Take another port with --port."
        ) from None
    return listener
