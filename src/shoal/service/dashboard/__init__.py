"""The dashboard: pages that the aggregator serves to people, from released totals alone."""
