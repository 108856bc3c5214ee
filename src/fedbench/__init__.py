"""fedbench: do the tables of federated-learning papers on imbalanced data hold, and how does your method compare?"""

__version__ = "0.1.0"
