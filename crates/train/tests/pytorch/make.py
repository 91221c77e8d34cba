"""Writes the fixtures of tests/it/pytorch.rs with PyTorch and safetensors: `python make.py FOLDER`.

`python make.py FOLDER --check FILE` loads FILE, a network that brisk saved, into the convolutional network and compares its output with that of the fixture.
"""

import argparse
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file


class Convolutional(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(3, 5, 3, padding=1)
        self.norm1 = torch.nn.BatchNorm2d(5)
        self.conv2 = torch.nn.Conv2d(5, 4, (2, 3), bias=False)
        self.head = torch.nn.Linear(4, 3)

    def forward(self, x):
        x = torch.nn.functional.max_pool2d(torch.relu(self.norm1(self.conv1(x))), 2)
        return self.head(torch.relu(self.conv2(x)).mean((2, 3)))


def mlp():
    model = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.ReLU(), torch.nn.Linear(6, 3))
    # Each in another type; the output is that of the stored values in f32.
    types = [torch.float16, torch.bfloat16, torch.float64, torch.float32]
    stored = {name: value.to(dtype) for (name, value), dtype in zip(model.state_dict().items(), types)}
    model.load_state_dict({name: value.float() for name, value in stored.items()})
    x = torch.randn(5, 4)
    names = {"0": "layers.0", "2": "layers.1"}
    stored = {f"{names[name[0]]}{name[1:]}": value for name, value in stored.items()}
    return {**stored, "test.x": x, "test.y": model(x)}


def convolutional():
    model = Convolutional()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        model(torch.randn(8, 3, 6, 8)).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    x = torch.randn(2, 3, 6, 8)
    nhwc = x.permute(0, 2, 3, 1).contiguous()
    return {**model.state_dict(), "test.x": nhwc, "test.y": model.eval()(x)}


parser = argparse.ArgumentParser()
parser.add_argument("folder", type=Path)
parser.add_argument("--check", type=Path)
args = parser.parse_args()
if args.check:
    model, fixture = Convolutional(), load_file(args.folder / "convolutional_test.safetensors")
    model.load_state_dict(load_file(args.check))
    difference = (model.eval()(fixture["test.x"].permute(0, 3, 1, 2)) - fixture["test.y"]).abs().max().item()
    assert difference < 1e-5, difference
    print(f"largest difference of outputs: {difference:.1e}")
else:
    torch.manual_seed(7)
    for make in (mlp, convolutional):
        tensors = {name: tensor.detach().contiguous() for name, tensor in make().items()}
        # The file of a model has no other tensors.
        for end, is_test in (("", False), ("_test", True)):
            part = {name: tensor for name, tensor in tensors.items() if name.startswith("test.") == is_test}
            save_file(part, args.folder / f"{make.__name__}{end}.safetensors")
