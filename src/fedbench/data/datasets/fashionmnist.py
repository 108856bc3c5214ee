"""FashionMNIST: 60 000 + 10 000 pictures of clothes, 28x28 grey (Xiao, Rasul, Vollgraf 2017)."""

from fedbench.data.datasets._torchvision import IdxSet

dataset = IdxSet(
    name="fashionmnist",
    title="FashionMNIST",
    known_as="FashionMNIST",
    classes=(
        "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
        "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
    ),
    shape=(1, 28, 28),
    licence="MIT",
    source="https://github.com/zalandoresearch/fashion-mnist",
    unpacked={
        "train-images-idx3-ubyte": "f4a8712d7a061bf5bd6d2ca38dc4d50a",
        "train-labels-idx1-ubyte": "9018921c3c673c538a1fc5bad174d6f9",
        "t10k-images-idx3-ubyte": "8181f5470baa50b63fa0f6fddb340f0a",
        "t10k-labels-idx1-ubyte": "15d484375f8d13e6eb1aabb0c3f46965",
    },
)  # fmt: skip
