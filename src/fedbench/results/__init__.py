"""What runs say: tests and intervals, verdicts against print, claims."""
