"""The learner for large populations: a posterior per user under a learnt shared prior."""
