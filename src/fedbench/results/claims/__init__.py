"""Does what a paper says hold? Pure arithmetic on arrays of effects."""
