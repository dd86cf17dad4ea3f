"""The largest beta of a graph, proven, and the paper's open problem of how small it can be."""
