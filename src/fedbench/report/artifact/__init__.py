"""A table with all that an evaluator needs, as one archive that is an RO-Crate."""
