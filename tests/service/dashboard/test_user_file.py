from __future__ import annotations

import re

import pytest

from shoal.errors import InvalidInputError
from shoal.service.user_file import read_users


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "must have a first line with user"),
        (b"user\n", "must have a first line with user"),
        (b"name\nann\n", "line 1: the first line must name a column user; got 'name'"),
        (b"user\nann\n\nann\n", "line 4: user must be new; 'ann' is on line 2"),
        (b"user\n\xff\n", "line 2: the file must be UTF-8 text"),
        (b'user\n"ann\n', "line 2"),
        (b"user,age\nann,3\n,4\n", "line 3: user must be"),
        (b"user\n<script>\n", "line 2: user must be"),
    ],
)
def test_a_wrong_file_is_refused_with_the_line(content: bytes, said: str) -> None:
    with pytest.raises(InvalidInputError, match=re.escape(said)):
        read_users(content)


def test_files_of_spreadsheets_are_read() -> None:
    assert read_users(b"\xef\xbb\xbfId,User\r\n1,ann\r\n2,b@b.example\r\n") == [
        "ann",
        "b@b.example",
    ]
