"""CIFAR-100: 50 000 + 10 000 colour images of 32x32; the 100 fine classes (Krizhevsky 2009)."""

from fedbench.data.datasets._torchvision import CifarSet

CLASSES = """
apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel
can castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur
dolphin elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion
lizard lobster man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree
pear pickup_truck pine_tree plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea
seal shark shrew skunk skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank
telephone television tiger tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm
"""

dataset = CifarSet(
    name="cifar100",
    title="CIFAR100",
    known_as="CIFAR100",
    classes=tuple(CLASSES.split()),
    shape=(3, 32, 32),
    licence="none stated; cite Krizhevsky 2009",
    source="https://www.cs.toronto.edu/~kriz/cifar.html",
)
