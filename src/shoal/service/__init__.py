"""The service: an aggregator that holds rewards and a learner that sees totals (design, part 6)."""
