"""Data: raw files -> prepared arrays -> partitions. Nothing here needs torch except the batches and augmentation."""
