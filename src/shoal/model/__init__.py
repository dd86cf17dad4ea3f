"""The types that everything speaks: problems, plans and feedback (Section 2.1 of the paper)."""

from shoal.model.feedback import Feedback
from shoal.model.plan import Plan
from shoal.model.problem import Problem
from shoal.model.roster import Roster
from shoal.model.state import State, Stateful

__all__ = ["Feedback", "Plan", "Problem", "Roster", "State", "Stateful"]
