"""A policy in a file: how it was made, and its exact state.

The file is a line ``shoal-policy VERSION SHA256``, then MessagePack (``model.container``), whose
hash is that of the line: a map of ``policy``, ``options``, ``problem`` and ``state``. Reading it
runs no code of the file. The policy of an installed distribution is imported by its name; any other
policy of one's own only if the caller names it.
"""

from hashlib import sha256
from pathlib import Path
from typing import Any

from shoal.errors import InvalidInputError, unwritable
from shoal.files import own_suffix, write_atomically
from shoal.policies.base import Policy

MARK = b"shoal-policy"
SAVED_VERSION = 1


def save_policy(policy: Policy, path: str | Path) -> None:
    """Write a policy that ``make_policy`` made to a file, whole or not at all."""
    from shoal.model.container import pack

    if policy.origin is None:
        raise InvalidInputError(
            "a policy must be made by make_policy to be saved, which takes a class too; "
            f"got {type(policy).__name__} made directly."
        )
    for name, value in policy.origin.options.items():
        try:
            pack(value)
        except InvalidInputError as error:
            raise InvalidInputError(f"option {name} can't be saved: {error}") from None
    content = pack(
        {
            "policy": policy.origin.policy,
            "options": dict(policy.origin.options),
            "problem": policy.problem.as_json(),
            "state": policy.state(),
        }
    )
    head = b"%s %d %s\n" % (MARK, SAVED_VERSION, sha256(content).hexdigest().encode())
    try:
        write_atomically(Path(path), head + content, suffix=own_suffix())
    except (OSError, TypeError, ValueError) as error:
        raise unwritable(path, error) from None


def read_saved(path: Path) -> dict[str, Any]:
    """Return a file's content; refuse another file, a damaged one and one of a later version."""
    from shoal.model.container import unpack

    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise InvalidInputError(f"{path} must be a file to read; it does not exist.") from None
    except OSError as error:
        raise InvalidInputError(f"{path} must be a readable file; got: {error.strerror}.") from None
    head, _, content = data.partition(b"\n")
    words = head.split(b" ")
    if words[0] != MARK or len(words) != 3 or not words[1].isdigit():
        raise InvalidInputError(
            f"{path} must be a policy that Policy.save wrote; got another file."
        )
    if int(words[1]) > SAVED_VERSION:
        raise InvalidInputError(
            f"{path} must be of version {SAVED_VERSION} at most; got {int(words[1])}, which a "
            "later release of Shoal has written."
        )
    if sha256(content).hexdigest().encode() != words[2]:
        raise InvalidInputError(f"{path} must be as it was written; got a damaged file.")
    fields_by_name: dict[str, Any] = unpack(content)
    return fields_by_name
