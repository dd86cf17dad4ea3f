"""Campaigns and rosters in memory: only this process changes them."""

from __future__ import annotations

import threading

from sqlalchemy.exc import SQLAlchemyError

from shoal.service.aggregator import arms, campaigns
from shoal.service.aggregator.arms import Arm
from shoal.service.aggregator.campaigns import Roster
from shoal.service.campaign import Campaign
from shoal.service.clock import Clock
from shoal.service.problems import GROUP_FLOOR, ProblemError
from shoal.service.store import Database


class Directory:
    """What the operator has decided: campaigns, and who is in them.

    Parameters
    ----------
    floor
        Least C that a campaign may have.
    """

    def __init__(self, database: Database, *, floor: int, clock: Clock) -> None:
        self._database = database
        self.floor = floor
        self._clock = clock
        self.lock = threading.RLock()
        self._campaigns: dict[str, Campaign] = {}
        self._arms: dict[str, list[Arm]] = {}
        self._rosters: dict[str, Roster] = {}

    def create(self, name: str, campaign: Campaign) -> bool:
        """Store a campaign for good; return False where the same one is there already."""
        if campaign.min_group_size < self.floor:
            raise ProblemError(GROUP_FLOOR)
        with self.lock, self._database.write() as connection:
            return campaigns.create(connection, name, campaign, now=self._clock())

    def campaign(self, name: str) -> Campaign:
        """Return a campaign with all arms that it has ever had, or refuse the name."""
        found = self._campaigns.get(name)
        if found is None:
            with self.lock, self._database.read() as connection:
                found = self._campaigns[name] = campaigns.load(connection, name)
        return found

    def arms(self, name: str) -> list[Arm]:
        """Return all arms that a campaign has ever had, by slot."""
        found = self._arms.get(name)
        if found is None:
            self.campaign(name)
            with self.lock, self._database.read() as connection:
                found = self._arms[name] = arms.load(connection, name)
        return found

    def add_arm(self, name: str, arm: str, *, number: int) -> bool:
        """Offer a new arm from round ``number`` on; return False where it is offered already."""
        campaign = self.campaign(name)
        with self.lock:
            with self._database.write() as connection:
                new = arms.add(connection, name, campaign, arm, number=number)
            self._forget_arms(name)
        return new

    def retire_arm(self, name: str, arm: str, *, number: int) -> bool:
        """Play an arm no more from round ``number`` on; False where it is retired already."""
        campaign = self.campaign(name)
        with self.lock:
            with self._database.write() as connection:
                new = arms.retire(connection, name, campaign, arm, number=number)
            self._forget_arms(name)
        return new

    def _forget_arms(self, name: str) -> None:
        self._campaigns.pop(name, None)
        self._arms.pop(name, None)

    def names(self) -> list[str]:
        """Return all campaigns' names."""
        with self._database.read() as connection:
            return campaigns.names(connection)

    def roster(self, name: str) -> Roster:
        """Return who sits where; a look-up does not wait for a change that is being stored."""
        if name in self._rosters:
            return self._rosters[name]
        with self.lock:
            if name not in self._rosters:
                self.campaign(name)
                with self._database.read() as connection:
                    self._rosters[name] = campaigns.load_roster(connection, name)
            return self._rosters[name]

    def is_cached(self, name: str) -> bool:
        """Return whether a campaign and its roster are in memory."""
        return name in self._campaigns and name in self._rosters

    def enrol(self, name: str, users: list[str]) -> int:
        """Let users join from the next round on; return how many are new or back."""
        return self.move(name, users, [])[0]

    def withdraw(self, name: str, users: list[str]) -> int:
        """Let users leave from the next round on; return how many did."""
        return self.move(name, [], users)[1]

    def move(
        self, name: str, join: list[str], leave: list[str], *, erase: bool = False
    ) -> tuple[int, int]:
        """Let users join and leave from the next round on, all or nobody; return how many did.

        Whoever does both stays. With ``erase``, the names of those who leave, or have left before,
        are forgotten: their seats stay empty for good.
        """
        staying = set(join)
        leave = [user for user in leave if user not in staying]
        with self.lock:
            roster, campaign = self.roster(name), self.campaign(name)
            try:
                with self._database.write() as connection:
                    left = campaigns.withdraw(connection, name, roster, leave)
                    joined = campaigns.enrol(connection, name, campaign, roster, join)
                    if erase:
                        campaigns.erase(connection, name, roster, leave)
            except SQLAlchemyError:  # the commit may have taken effect all the same
                self._rosters.pop(name, None)
                raise
            roster.apply(join, leave, erase=erase, version=roster.version + (joined + left > 0))
            return joined, left
