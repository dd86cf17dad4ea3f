"""Records in, figures out; nothing else."""

from shoal.figures.loads import loads_figure
from shoal.figures.regret import regret_figure, regret_figures
from shoal.figures.save import save

__all__ = ["loads_figure", "regret_figure", "regret_figures", "save"]
