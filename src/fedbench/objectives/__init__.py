"""Loss functions, from the scores and labels of K clients to one loss per client, and metrics."""
