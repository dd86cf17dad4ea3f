"""The operator's commands against a running service."""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.support.live import Live, learning, serve
from tests.support.stores import Stores

from shoal.cli.main import main
from shoal.cli.remote import REACHABLE
from shoal.wire import LearnerProgress

DEFINITION = {"arms": ["a", "b"], "min_group_size": 4, "seats": 20, "policy": "random"}


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    stores = Stores(f"sqlite:///{tmp_path}/aggregator.db", f"sqlite:///{tmp_path}/learner.db")
    with serve(stores) as running, learning(running):
        lines = [f"SHOAL_{role.upper()}_TOKEN={token}\n" for role, token in running.tokens.items()]
        (tmp_path / "tokens.env").write_text("".join(lines))
        yield running


def run(live: Live, folder: Path, *arguments: str, code: int = 0, stdin: str = "") -> str:
    group, *rest = arguments
    options = ["--url", live.url, "--tokens", str(folder / "tokens.env")]
    done: Result = CliRunner().invoke(main, [group, *options, *rest], input=stdin)
    assert done.exit_code == code, done.output
    return done.output


def test_a_campaign_is_played_and_ended_from_the_command_line(live: Live, tmp_path: Path) -> None:
    people = tmp_path / "people.csv"
    people.write_text("user\n" + "".join(f"reader-{i}\n" for i in range(12)))
    rated = ["campaign", "create", "news", "-", "--rate", "0.03"]
    refused = run(live, tmp_path, *rated, code=2, stdin=json.dumps(DEFINITION))
    assert "88.5% of totals show everyone's reward" in refused
    assert "Take noise: C = 76 is more than the 20 seats" in refused
    assert run(live, tmp_path, "campaign", "show") == "there are no campaigns\n"
    made = run(live, tmp_path, *rated, "--yes", stdin=json.dumps(DEFINITION))
    assert "news: 20 seats, C = 4" in made
    few_users = run(live, tmp_path, "campaign", "open", "news", code=2)
    assert "must have at least C = 4 users, else nothing of it is released; got 0" in few_users
    assert "12 of 12 users joined news" in run(live, tmp_path, "users", "join", "news", str(people))
    for _ in range(2):  # a repeat, as after a timeout, asks for nothing more
        assert "round 1 of news is open" in run(live, tmp_path, "campaign", "open", "news")
    shown = run(live, tmp_path, "campaign", "show", "news")
    assert "round 1, open; 12 users" in shown
    assert "learner in touch" in shown
    assert "round 1 of news is released" in run(live, tmp_path, "campaign", "close", "news")
    over = run(live, tmp_path, "campaign", "open", "news", "1", code=1)
    assert "round 1 of news is released: it can't be opened again" in over
    assert "round 2 of news is open" in run(live, tmp_path, "campaign", "open", "news")
    closed = run(live, tmp_path, "campaign", "--json", "close", "news", "2")
    assert json.loads(closed) == {"round": 2, "state": "released"}
    few = tmp_path / "few.csv"
    few.write_text("user\nreader-0\nreader-1\n")
    left = run(live, tmp_path, "users", "withdraw", "news", str(few), "--erase")
    assert "2 of 2 users left news; 2 names erased" in left
    few.write_text("user\nreader-0\nreader-2\n")
    run(live, tmp_path, "users", "withdraw", "news", str(few))
    left = run(live, tmp_path, "users", "withdraw", "news", str(few), "--erase", "--json")
    answer, unknown = left.splitlines()
    assert json.loads(answer) == {"left": 0, "erased": 1, "unknown": ["reader-0"]}
    assert unknown == "not in news: reader-0"
    refused = run(live, tmp_path, "campaign", "archive", "news", code=2)
    assert "archiving news can't be undone: say --yes" in refused
    assert "news is archived" in run(live, tmp_path, "campaign", "archive", "news", "--yes")
    assert "archived" in run(live, tmp_path, "campaign", "show", "news")
    ended = run(live, tmp_path, "campaign", "open", "news", code=2)
    assert "The campaign was archived; it has ended" in ended
    assert "news is deleted" in run(live, tmp_path, "campaign", "delete", "news", "--yes")
    assert json.loads(run(live, tmp_path, "campaign", "--json", "show")) == []


@pytest.mark.parametrize(
    ("definition", "why"),
    [
        ('{"name": "news", "seats": 20}', "must not have the campaign's name"),
        ('{"seats": 20, "seats": 30}', "JSON; 'seats' stands twice in one object."),
        ("[20]", "as a JSON object"),
    ],
)
def test_a_definition_that_would_be_taken_in_part_is_refused(
    tmp_path: Path, definition: str, why: str
) -> None:
    file = tmp_path / "definition.json"
    file.write_text(definition)
    done = CliRunner().invoke(main, ["campaign", "create", "news", str(file)])
    assert (done.exit_code, why in done.output) == (2, True), done.output


def test_a_round_that_does_not_open_is_a_failure_that_says_why(tmp_path: Path) -> None:
    stores = Stores(f"sqlite:///{tmp_path}/aggregator.db", f"sqlite:///{tmp_path}/learner.db")
    with serve(stores) as live:
        token = f"SHOAL_OPERATOR_TOKEN={live.tokens['operator']}\n"
        (tmp_path / "tokens.env").write_text(token)
        run(live, tmp_path, "campaign", "create", "news", "-", stdin=json.dumps(DEFINITION))
        open_it = ["campaign", "open", "news", "1", "--yes", "--wait", "0"]
        late = run(live, tmp_path, *open_it, code=1)
        assert "round 1 of news is not open yet: the learner has not been in touch" in late
        live.work()
        assert "round 1 of news is open" in run(live, tmp_path, *open_it)
        run(live, tmp_path, "campaign", "close", "news")
        live.aggregator.epochs.sync_learner({"news": LearnerProgress(7, 7)})
        later = run(live, tmp_path, "campaign", "open", "news", "--yes", "--wait", "60", code=1)
        assert "round 2 of news is not open yet: the learner is ahead: it knows of round 7" in later
        assert live.aggregator.rounds.next_number("news") == 2  # nothing was asked for
        assert "say --yes" in run(live, tmp_path, "campaign", "abandon", "news", code=2)
        gone = run(live, tmp_path, "campaign", "abandon", "news", "--yes")
        assert gone == "6 rounds of news abandoned, up to round 7; the next is 8\n"
        none = run(live, tmp_path, "campaign", "abandon", "news", "--yes", code=2)
        assert "must have a round under way, or a learner that is ahead" in none
        late = run(live, tmp_path, "campaign", "open", "news", "--yes", "--wait", "0", code=1)
        assert "round 8 of news is not open yet" in late
        gone = run(live, tmp_path, "campaign", "abandon", "news", "8", "--yes", "--json")
        assert json.loads(gone) == {"through": 8, "rounds": 1}


@pytest.mark.slow
def test_the_reference_example_runs_in_its_order(
    live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = Path(__file__).parents[2] / "docs/reference/command-line.md"
    section = page.read_text(encoding="utf-8").split("\n## shoal campaign\n")[1]
    example = section.split("```text\n")[1].split("```")[0]
    monkeypatch.chdir(tmp_path)
    environment = {"SHOAL_URL": live.url, "SHOAL_TOKEN": live.tokens["operator"]}
    for entry in example.split("$ ")[1:]:
        line, _, printed = entry.partition("\n")
        before, _, command = line.rpartition(" | ")
        if not command.startswith("shoal "):
            subprocess.run(["bash", "-c", line], check=True)
            continue
        content = subprocess.check_output(["bash", "-c", before]) if before else b""
        arguments = shlex.split(command)[1:]
        done = CliRunner(env=environment).invoke(main, arguments, input=content)
        assert (done.exit_code, done.stdout) == (0, printed), (line, done.output)


def test_a_refused_token_says_where_it_is_from(
    live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "old.env").write_text(f"SHOAL_OPERATOR_TOKEN=shoal.operator.{'a' * 43}\n")
    show = ["campaign", "--url", live.url]
    file = ["--tokens", str(tmp_path / "old.env"), "show"]
    refused = CliRunner().invoke(main, [*show, *file])
    assert refused.exit_code == 2
    assert f"the line SHOAL_OPERATOR_TOKEN in {tmp_path / 'old.env'}" in refused.output
    monkeypatch.delenv("SHOAL_TOKEN", raising=False)
    monkeypatch.setenv("SHOAL_OPERATOR_TOKEN", f"shoal.operator.{'a' * 43}")
    refused = CliRunner().invoke(main, [*show, "show"])
    assert "the environment variable SHOAL_OPERATOR_TOKEN" in refused.output
    assert "read the service's tokens.env again" in refused.output


def test_tokens_are_made_listed_rotated_and_revoked(live: Live, tmp_path: Path) -> None:
    run(live, tmp_path, "campaign", "create", "news", "-", stdin=json.dumps(DEFINITION))
    token = run(
        live, tmp_path, "token", "create", "web", "app", "--campaign", "news", "--days", "9"
    )
    assert live.aggregator.access.role_of(token.strip()) == "app"
    listed = json.loads(run(live, tmp_path, "token", "--json", "list"))
    assert (listed["web"]["role"], listed["web"]["campaigns"]) == ("app", ["news"])
    assert "web" in run(live, tmp_path, "token", "list")
    rotated = run(live, tmp_path, "token", "rotate", "web", "--hours", "0").strip()
    assert [live.aggregator.access.role_of(t) for t in (token.strip(), rotated)] == [None, "app"]
    assert "web is revoked" in run(live, tmp_path, "token", "revoke", "web")
    assert live.aggregator.access.role_of(rotated) is None
    run(live, tmp_path, "token", "revoke", "web")  # a repeat changes nothing
    create = ["token", "create", "x", "app"]
    assert "--campaign must name a campaign" in run(live, tmp_path, *create, code=2)
    early = run(live, tmp_path, *create, "--campaign", "news", "--campaign", "later")
    assert "there is no campaign later yet" in early
    assert "campaign news" not in early
    heir = run(live, tmp_path, *create, "--campaign", "news", "--succeeds", "nobody", code=2)
    assert "There is no such token. Got 'nobody'." in heir
    run(live, tmp_path, *create, "--campaign", "news", "--succeeds", "web")  # which was revoked
    assert "no such token. Got 'wbe'." in run(live, tmp_path, "token", "revoke", "wbe", code=2)


@pytest.mark.parametrize(
    ("arguments", "stdin", "rule"),
    [
        (["campaign", "create", "news", "-"], "{", "definition as JSON"),
        (["campaign", "create", "news", "-"], "[]", "as a JSON object"),
        (["campaign", "open", "nothing"], "", "There is no such campaign. Got 'nothing'."),
        (["users", "join", "news", "nowhere.csv"], "", "file must be readable; nowhere.csv"),
        (["token", "create", "x", "king"], "", "role must be a known name; got 'king'"),
        (["token", "create", "x", "monitor", "--campaign", "news"], "", "role monitor; got 'news'"),
    ],
)
def test_what_is_refused_is_one_line(
    live: Live, tmp_path: Path, arguments: list[str], stdin: str, rule: str
) -> None:
    output = run(live, tmp_path, *arguments, code=2, stdin=stdin)
    assert rule in output
    assert "Traceback" not in output


def test_a_missing_token_says_where_it_was_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SHOAL_TOKEN", "SHOAL_ADMIN_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SHOAL_DATA", str(tmp_path))
    done = CliRunner().invoke(main, ["token", "list"])
    assert (done.exit_code, "SHOAL_ADMIN_TOKEN is set" in done.output) == (2, True)
    assert str(tmp_path / "tokens.env") in done.output


def test_an_address_where_nothing_answers_is_named_within_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    monkeypatch.setenv("SHOAL_TOKEN", "shoal.any.token")
    assert REACHABLE <= 4
    monkeypatch.setattr("shoal.cli.remote.REACHABLE", 0.5)
    for arguments in (["campaign", "--url", url, "show"], ["export", "news", "x", "--url", url]):
        done = CliRunner().invoke(main, arguments)
        assert done.exit_code == 2
        assert f"no service answers at {url}" in done.output


@pytest.mark.slow
def test_serve_takes_its_address_and_a_clash_is_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            [sys.executable, "-m", "shoal.cli", "serve", "--host", "127.0.0.1", "--port", port,
             "--data", str(tmp_path / "data")],
            env=os.environ, capture_output=True, text=True, timeout=240, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert f"must be a free address of this machine; 127.0.0.1 {port}" in line
    assert line.endswith("Take another port with --port.")
    assert not (tmp_path / "data" / "aggregator.db").exists()


def test_a_wrong_file_of_tokens_is_named_whatever_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOAL_OPERATOR_TOKEN", f"shoal.operator.{'a' * 43}")
    file = tmp_path / "tokens.env"
    missing = CliRunner().invoke(main, ["campaign", "--tokens", str(file), "show"])
    assert f"tokens must be a file of tokens; {file}: No such file" in missing.output
    file.write_bytes(b"\xff\xfe")
    binary = CliRunner().invoke(main, ["campaign", "--tokens", str(file), "show"])
    assert f"{file}: it is no text." in binary.output
    file.write_text("SHOAL_APP_TOKEN=shoal.app.x\n")
    other = CliRunner().invoke(main, ["campaign", "--tokens", str(file), "show"])
    assert f"with a line SHOAL_OPERATOR_TOKEN=...; {file} has none." in other.output
    assert [done.exit_code for done in (missing, binary, other)] == [2, 2, 2]
    assert "is set" not in missing.output + other.output
