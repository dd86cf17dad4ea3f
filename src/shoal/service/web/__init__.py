"""What the HTTP interface and the dashboard share: access, limits, problems and metrics."""
