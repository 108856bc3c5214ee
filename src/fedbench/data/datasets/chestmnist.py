"""ChestMNIST: the 112 120 chest X-rays of ChestX-ray14 at 28x28 grey, one of its 14 findings against the rest."""

from fedbench.data.datasets._medmnist import MedSet

dataset = MedSet(
    name="chestmnist",
    title="ChestMNIST",
    flag="chestmnist",
    finding="mass",
    classes=("no mass", "mass"),
    shape=(1, 28, 28),
    licence="CC BY 4.0; NIH asks to cite Wang et al., CVPR 2017",
    source="https://medmnist.com (Yang et al., 2023)",
)
