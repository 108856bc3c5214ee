"""Loss functions: scores and labels of K clients in, one loss per client out."""
