"""The device of PyTorch's side of a benchmark."""
import platform

import torch


def device_of(word):
    """The device of that word, `cpu` or `gpu`, and its name; the CPU if PyTorch can use no GPU."""
    if word == "gpu" and torch.cuda.is_available():
        return torch.device("cuda"), torch.cuda.get_device_name()
    if word == "gpu" and torch.backends.mps.is_available():
        return torch.device("mps"), platform.machine()
    return torch.device("cpu"), "a CPU"
