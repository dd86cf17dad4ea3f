"""Imported before the figures: refuses them in one line where their packages are missing."""

from shoal.extras import need

need("figures")
