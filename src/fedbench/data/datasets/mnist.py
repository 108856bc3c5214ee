"""MNIST: 60 000 + 10 000 handwritten digits, 28x28 grey (LeCun, Cortes, Burges)."""

from fedbench.data.datasets._torchvision import IdxSet

dataset = IdxSet(
    name="mnist",
    title="MNIST",
    known_as="MNIST",
    classes=tuple("0123456789"),
    shape=(1, 28, 28),
    licence="CC BY-SA 3.0 (as commonly given)",
    source="http://yann.lecun.com/exdb/mnist/",
    unpacked={
        "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
        "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
        "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
        "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
    },
)
