"""PyTorch's and torchvision's side of `cargo xtask bench speedups`: the same network on the same photos.

    python speedups.py TRAIN VALID BATCH N_THREADS     TRAIN and VALID: folders of JPEG files, one folder for each class

Reads requests `MODE N_EPOCHS` and prints the seconds of an epoch, training and validation, on average over the epochs. The modes:

    alone      `DataLoader` over `ImageFolder` without workers: each photo is decoded, resized and augmented by the thread that trains
    workers    the same with a worker process for each core
    memory     the images are decoded and resized once; each batch is augmented by one draw for all of its images
    bf16       the same with autocast

Photos are resized to 32 by 32 as torchvision's users do, with bilinear interpolation and antialiasing; padding by reflection of 4, random crop, random flip.
The network runs channels last, with fused Adam.
"""
import sys
import time

import torch
from torch import nn
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2

train_folder, valid_folder = sys.argv[1:3]
batch, n_threads = map(int, sys.argv[3:])
torch.set_num_threads(n_threads)
torch.manual_seed(0)

resize = [v2.PILToTensor(), v2.Resize(32, antialias=True), v2.CenterCrop(32)]
augment = [v2.RandomCrop(32, padding=4, padding_mode="reflect"), v2.RandomHorizontalFlip()]
to_floats = [v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5] * 3, [0.25] * 3)]
augment_batch, floats = v2.Compose(augment), v2.Compose(to_floats)
train = ImageFolder(train_folder, v2.Compose(resize + augment + to_floats))
valid = ImageFolder(valid_folder, v2.Compose(resize + to_floats))


def in_memory(folder):
    images, labels = zip(*ImageFolder(folder, v2.Compose(resize)))
    return torch.stack(images), torch.tensor(labels)


def block(n_in, n_out):
    return [nn.Conv2d(n_in, n_out, 3, padding=1, bias=False), nn.BatchNorm2d(n_out), nn.ReLU(inplace=True), nn.MaxPool2d(2)]


class Loaded:
    """Batches of photos that are decoded in each epoch."""

    def __init__(self, n_workers):
        def loader(data, shuffle):
            return torch.utils.data.DataLoader(
                data, batch, shuffle=shuffle, num_workers=n_workers, persistent_workers=n_workers > 0)
        self.loaders = loader(train, True), loader(valid, False)

    def batches(self, is_training):
        return self.loaders[0 if is_training else 1]


class Held:
    """Batches of images in memory."""

    def __init__(self):
        self.sets = in_memory(train_folder), in_memory(valid_folder)

    def batches(self, is_training):
        images, labels = self.sets[0 if is_training else 1]
        order = torch.randperm(len(labels)) if is_training else torch.arange(len(labels))
        for rows in order.split(batch):
            x = images[rows]
            yield floats(augment_batch(x) if is_training else x), labels[rows]


def run(source, n_epochs, precision):
    model = nn.Sequential(*block(3, 16), *block(16, 32), *block(32, 64), nn.Flatten(), nn.Linear(1024, 10))
    model = model.to(memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    loss = nn.CrossEntropyLoss()
    start = time.perf_counter()
    for _ in range(n_epochs):
        model.train()
        for x, labels in source.batches(True):
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
                error = loss(model(x.contiguous(memory_format=torch.channels_last)), labels)
            error.backward()
            optimizer.step()
        model.eval()
        n_right = 0
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            for x, labels in source.batches(False):
                n_right += (model(x.contiguous(memory_format=torch.channels_last)).argmax(1) == labels).sum().item()
    return (time.perf_counter() - start) / n_epochs


sources = {}
for line in sys.stdin:
    mode, n_epochs = line.split()
    kind = "memory" if mode == "bf16" else mode
    if kind not in sources:
        sources[kind] = Held() if kind == "memory" else Loaded(n_threads if kind == "workers" else 0)
        # Starts what is started once: worker processes, the library's memory.
        run(sources[kind], 1, "f32")
    print(run(sources[kind], int(n_epochs), mode), flush=True)
