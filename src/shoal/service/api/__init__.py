"""The HTTP interface of the aggregator."""
