"""Records in, figures out; nothing else."""

from shoal.figures import packages as packages
from shoal.figures.crowds import crowds_figure
from shoal.figures.estimates import estimates_figure
from shoal.figures.loads import loads_figure
from shoal.figures.price import price_figure
from shoal.figures.regret import regret_figure, regret_figures
from shoal.figures.scaling import scaling_figure
from shoal.figures.style import save, side_by_side

__all__ = [
    "crowds_figure",
    "estimates_figure",
    "loads_figure",
    "price_figure",
    "regret_figure",
    "regret_figures",
    "save",
    "scaling_figure",
    "side_by_side",
]
