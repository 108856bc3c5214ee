"""CIFAR-10: 50 000 + 10 000 colour images of 32x32 in 10 classes (Krizhevsky 2009)."""

from fedbench.data.datasets._torchvision import CifarSet

dataset = CifarSet(
    name="cifar10",
    title="CIFAR10",
    known_as="CIFAR10",
    classes=("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
    shape=(3, 32, 32),
    licence="none stated; cite Krizhevsky 2009",
    source="https://www.cs.toronto.edu/~kriz/cifar.html",
)
