"""The learner: makes plans and sees released totals, nothing else."""
