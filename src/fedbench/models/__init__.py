"""Networks, one file each; every file defines ``build(shape, outputs, **options) -> torch.nn.Module``."""
