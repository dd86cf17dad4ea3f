"""What version 0.1 wrote, and how the present code goes on with it.

``v0_1/`` holds a state of every policy, as the service stores it, and the stores of a service with
an open round, as SQLite files and as backups. They were written once, by ``write``, and are never
written again: only what is computed from them is recorded.
"""

from __future__ import annotations

import shutil
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.recordings.commands import content, run_command
from tests.recordings.pinned import Recording, answer
from tests.recordings.policies import ELIMINATION, QUICK, Case, Tape, make
from tests.recordings.policies import play as play_rounds
from tests.recordings.service import Script, play, reward, users
from tests.recordings.surface import KEY, POLICIES, Stores, TestClock, pack, serve, unpack

FOLDER = Path(__file__).parent / "v0_1"
ROLES = ("aggregator", "learner")

SMALL = Case(16, 3, 3, 400, participation=0.8)
BATCHES = Case(16, 3, 3, 3000, participation=0.8, options=QUICK)
ENDLESS = Case(16, 3, 3, 400, horizon=False, participation=0.8)  # else it plays all at once
LARGE = Case(280, 3, 4, 60, participation=0.8, kind="clustered")
KEPT = [name for name in POLICIES if (FOLDER / f"{name}.state").exists()]  # those of version 0.1
STATES = {
    **{name: (name, BATCHES if name in ELIMINATION else SMALL) for name in KEPT},
    "best-arm": ("best-arm", ENDLESS),
    "pooled-thompson-large": ("pooled-thompson", LARGE),
    "shoal-large": ("shoal", LARGE),
}
CAMPAIGNS = {
    "news": {"arms": ["a", "bb", "ccc"], "arm_slots": 4, "seats": 40, "policy": "shoal"},
    "paper": {"arms": ["a", "bb"], "seats": 30, "horizon": 400, "policy": "elimination-lp"},
    "crowd": {"arms": ["a", "bb"], "seats": 270, "policy": "shoal"},
}
OPEN = 6  # the round that is open in every campaign; "paper" is amid a plan of several rounds


def record() -> Recording:
    """Return how everything goes on."""
    found: Recording = {f"state of {title}": _continue(title) for title in STATES}
    with TemporaryDirectory() as folder, chdir(folder):
        for place in ("copied", "restored"):
            Path(place).mkdir()
            key = Path(place, "aggregator.key")
            key.write_bytes(KEY)
            key.chmod(0o600)
        for role in ROLES:
            shutil.copy(FOLDER / f"{role}.db", f"copied/{role}.db")
            Path(f"copied/{role}.db").chmod(0o600)
            backup = FOLDER / f"{role}.backup"
            found[f"restore {role}"] = run_command(f"restore {role} {backup} --data restored")
        for place in ("copied", "restored"):
            for role in ROLES:
                doctor = f"doctor --data {place} --role {role} --json"
                found[f"{place}: doctor, {role}"] = run_command(doctor)
                written = f"backup {role} {place}-{role}.backup --data {place}"
                found[f"{place}: backup {role}"] = run_command(written)
        found |= _go_on(Path("copied"))
        again = _go_on(Path("restored"))
        found["restored: same answers"] = all(found[title] == again[title] for title in again)
    return found


def _continue(title: str) -> str:
    """Return the hash of the rest of a run whose state version 0.1 wrote."""
    name, case = STATES[title]
    policy, environment = make(name, case, seed=22)
    policy.restore(unpack((FOLDER / f"{title}.state").read_bytes()))
    tape = Tape()
    play_rounds(policy, environment, tape, case, first=policy.rounds, last=case.rounds)
    return str(tape)


def _stores(folder: Path) -> Stores:
    return Stores(*(f"sqlite:///{folder / role}.db" for role in ROLES))


def _go_on(folder: Path) -> Recording:
    """Report what is missing in the open rounds, close them, and play two more of each."""
    with serve(_stores(folder), clock=TestClock()) as live, Script(live) as script:
        for name in CAMPAIGNS:
            base = f"/v1/campaigns/{name}"
            script.call("operator", "GET", base)
            for number in range(1, OPEN):
                script.call("analyst", "GET", f"{base}/rounds/{number}/release")
            live.work()
            for number in range(1, OPEN):
                script.call("analyst", "GET", f"{base}/rounds/{number}/release")
            shown = script.call("app", "GET", f"{base}/assignments")["assignments"]
            reports = [{"user": u, "reward": reward(u, OPEN, arm)} for u, arm in shown.items()]
            script.call("app", "POST", f"{base}/rounds/{OPEN}/reports", {"reports": reports})
            script.call("operator", "POST", f"{base}/rounds/{OPEN}/close")
            live.work()
            script.call("analyst", "GET", f"{base}/rounds/{OPEN}/release")
            for number in (OPEN + 1, OPEN + 2):
                play(script, name, number)
            script.call("analyst", "GET", f"{base}/progress")
            file = folder / f"{name}.parquet"
            export = f"export {name} {file} --url {live.url}"
            done = run_command(export, SHOAL_TOKEN=live.tokens["analyst"])
            script.answers[f"export {name}"] = {**done, "file": content(file)}
        return script.answers


def write(*_: str) -> Recording:
    """Write the folder, with the code of version 0.1."""
    FOLDER.mkdir()
    for title, (name, case) in STATES.items():
        policy, environment = make(name, case, seed=21)
        play_rounds(policy, environment, Tape(), case, first=0, last=case.rounds // 4)
        if policy.rounds < case.rounds:
            policy.ask()
        (FOLDER / f"{title}.state").write_bytes(pack(policy.state()))
    with serve(_stores(FOLDER), clock=TestClock()) as live, Script(live) as script:
        for name, definition in CAMPAIGNS.items():
            base = f"/v1/campaigns/{name}"
            script.call("operator", "PUT", base, {"min_group_size": 5, "seed": 3, **definition})
            seats = int(str(definition["seats"]))
            script.call("operator", "POST", f"{base}/users", {"join": users(0, seats - 1)})
            for number in range(1, OPEN + 1):
                play(script, name, number, quiet=4, close=number < OPEN)
    for role in ROLES:
        file = FOLDER / f"{role}.backup"
        run_command(f"backup {role} {file} --data {FOLDER}")
    return {"files": sorted(file.name for file in FOLDER.iterdir())}


if __name__ == "__main__":
    answer(write)
