"""A load generator in its own process: sends prepared batches over a few connections.

Called with a file of prepared bodies; prints the seconds that each request took, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path


async def send(host: str, port: int, head: str, bodies: list[bytes], seconds: list[float]) -> None:
    reader, writer = await asyncio.open_connection(host, port)
    while bodies:
        body = bodies.pop()
        started = time.perf_counter()
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = int(answer.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        text = await reader.readexactly(length)
        seconds.append(time.perf_counter() - started)
        if not answer.startswith(b"HTTP/1.1 200") or text != b'{"refused":[]}':
            sys.exit(f"refused: {answer!r} {text[:200]!r}")
    writer.close()


async def main(host: str, port: str, token: str, path: str, file: str, connections: str) -> None:
    bodies = Path(file).read_bytes().split(b"\n")
    head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n"
    seconds: list[float] = []
    started = time.perf_counter()
    senders = (send(host, int(port), head, bodies, seconds) for _ in range(int(connections)))
    await asyncio.gather(*senders)
    print(json.dumps({"elapsed": time.perf_counter() - started, "seconds": seconds}))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
