"""Records in, figures out; nothing else."""

from shoal.figures.regret import regret_figure, regret_figures
from shoal.figures.save import save

__all__ = ["regret_figure", "regret_figures", "save"]
