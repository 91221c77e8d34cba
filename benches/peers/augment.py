"""torchvision's side of the part `augment` of `cargo xtask bench cifar10`.

    python augment.py BATCH N_THREADS     for each line, prints images per second of a batch: transformed as a whole, and image by image

Padding by reflection of 4, random crop of 32 by 32, random flip, conversion to floats, standardisation, and a square of 8 by 8 set to 0. Transforms of
a whole batch draw once for all of its images, which is less work than brisk's augmentation does.
"""
import sys
import time

import torch
from torchvision.transforms import v2

batch, n_threads = map(int, sys.argv[1:])
torch.set_num_threads(n_threads)
images = torch.randint(0, 256, (batch, 3, 32, 32), dtype=torch.uint8)


class Cutout(torch.nn.Module):
    def forward(self, x):
        top, left = torch.randint(0, 25, (2,)).tolist()
        x[..., top:top + 8, left:left + 8] = 0
        return x


transforms = v2.Compose([
    v2.RandomCrop(32, padding=4, padding_mode="reflect"),
    v2.RandomHorizontalFlip(),
    v2.ToDtype(torch.float32, scale=True),
    v2.Normalize([0.49, 0.48, 0.45], [0.25, 0.24, 0.26]),
    Cutout(),
])


def whole():
    start = time.perf_counter()
    for _ in range(10):
        transforms(images)
    return 10 * batch / (time.perf_counter() - start)


def single():
    start = time.perf_counter()
    torch.stack([transforms(image) for image in images])
    return batch / (time.perf_counter() - start)


for _ in sys.stdin:
    print(whole(), single(), flush=True)
