"""Data: raw files -> prepared arrays -> partitions. Only the batches and augmentation need torch."""
