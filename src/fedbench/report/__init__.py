"""From results on disk to tables, figures and verdicts. Nothing in here trains, and nothing imports torch."""
