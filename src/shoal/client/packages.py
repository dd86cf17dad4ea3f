"""Imported before the clients: refuses them in one line where their package is missing."""

from shoal.extras import need

need("service", "httpx")
