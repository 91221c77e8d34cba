"""The recipes of brisk-vision in PyTorch: Page's ResNet9 and airbench94 with Muon.

Arguments: recipe (page or muon), batch size, device (cpu, or gpu for the GPU that PyTorch can use, if there is one), precision of what is timed (f32, or f16
or bf16 for autocast), threads, a safetensors file with the initial state_dict, the training batches (`images` [n_batches, batch, height, width, channels],
`labels`) and test images (`test_images`, `test_labels`), steps of the whole run, and rates as `name=value` words.

Prints the name of the device. Then prints the loss of each step and the test accuracy after them, a line each for f64, and for f32 in channels-last and in the
default layout. Then answers each line `n` with the seconds of n further steps in channels-last and in the default layout.
"""

import contextlib
import sys
import time

import torch
import torch.nn.functional as F
from safetensors.torch import load_file

from device import device_of


def ghost_norm(x, bias, n_ghosts, eps, stats, momentum, train):
    """Batch normalisation without a scale, each of `n_ghosts` consecutive parts of the batch by itself."""
    mean, var = stats
    if not train:
        return F.batch_norm(x, mean, var, None, bias, False, 0.0, eps)
    if n_ghosts == 1:
        return F.batch_norm(x, mean, var, None, bias, True, momentum, eps)
    n, c, h, w = x.shape
    parts = x.view(n_ghosts, n // n_ghosts, c, h, w)
    m = parts.mean((1, 3, 4), keepdim=True)
    v = parts.var((1, 3, 4), unbiased=False, keepdim=True)
    with torch.no_grad():
        size = n // n_ghosts * h * w
        mean.lerp_(m.mean(0).flatten(), momentum)
        var.lerp_(v.mean(0).flatten() * size / (size - 1), momentum)
    y = ((parts - m) * torch.rsqrt(v + eps)).view(n, c, h, w)
    return y + bias.view(1, c, 1, 1)


class Network:
    """A network over a state_dict with the names of brisk-vision."""

    def __init__(self, state):
        self.state = state
        frozen = {name for name in state if "running" in name or name == "whiten.weight" or name.endswith("norm.weight")
                  or ".norm" in name and name.endswith("weight")}
        self.params = {name: tensor.requires_grad_() for name, tensor in state.items() if name not in frozen}

    def norm(self, x, name, eps, momentum, train, n_ghosts=1):
        stats = [self.state[f"{name}.running_{what}"] for what in ("mean", "var")]
        return ghost_norm(x, self.state[f"{name}.bias"], n_ghosts, eps, stats, momentum, train)


class Airbench(Network):
    def forward(self, x, train):
        s = self.state
        x = F.gelu(F.conv2d(x, s["whiten.weight"], s["whiten.bias"]))
        for i in range(3):
            x = F.max_pool2d(F.conv2d(x, s[f"layers.{i}.conv1.weight"], padding=1), 2)
            x = F.gelu(self.norm(x, f"layers.{i}.norm1", 1e-5, 0.4, train))
            x = F.conv2d(x, s[f"layers.{i}.conv2.weight"], padding=1)
            x = F.gelu(self.norm(x, f"layers.{i}.norm2", 1e-5, 0.4, train))
        return F.linear(x.amax((2, 3)), s["head.weight"]) / s["head.weight"].shape[1]


class ResNet9(Network):
    n_ghosts = 1

    def block(self, x, name, train, pooled=False):
        w = self.state[f"{name}.conv.weight"]
        x = F.conv2d(x, w, padding=w.shape[2] // 2)
        if pooled:
            x = F.max_pool2d(x, 2)
        return F.celu(self.norm(x, f"{name}.norm", 1e-5, 0.1, train, self.n_ghosts), 0.3)

    def forward(self, x, train):
        x = F.conv2d(x, self.state["whiten.weight"], padding=1)
        x = self.block(x, "prep", train)
        x = self.block(x, "layer1", train, pooled=True)
        x = x + self.block(self.block(x, "residual1.0", train), "residual1.1", train)
        x = self.block(x, "layer2", train, pooled=True)
        x = self.block(x, "layer3", train, pooled=True)
        x = x + self.block(self.block(x, "residual3.0", train), "residual3.1", train)
        return F.linear(x.amax((2, 3)), self.state["head.weight"]) / 16


def orthogonalised(g, n_steps=3, coefficients=(3.4445, -4.7750, 2.0315)):
    a, b, c = coefficients
    x = g.flatten(1)
    is_tall = x.shape[0] > x.shape[1]
    x = x.T if is_tall else x
    x = x / (x.norm() + 1e-7)
    for _ in range(n_steps):
        s = x @ x.T
        x = a * x + (b * s + c * s @ s) @ x
    return (x.T if is_tall else x).view(g.shape)


def step_of(recipe, network, rates, n_steps):
    """The optimizer: a function of the step's number."""
    state = {}

    def momentum_of(name, p):
        return state.setdefault(name, torch.zeros_like(p))

    def muon(step):
        factor = 1 - step / n_steps
        for name, p in network.params.items():
            g = p.grad
            buffer = momentum_of(name, p)
            if p.dim() == 4:
                buffer.mul_(0.6).add_(g)
                p.mul_(p.shape[0] ** 0.5 / p.norm())
                p.add_(orthogonalised(g + 0.6 * buffer), alpha=-rates["filters"] * factor)
                continue
            rate = rates["head" if p.dim() == 2 else "biases"]
            lr = rate * factor
            if name == "whiten.bias":
                lr = rate * max(0.0, 1 - step / rates["whitening_steps"])
            g = g + rates["decay"] / rate * p
            buffer.mul_(0.85).add_(g)
            p.add_(g + 0.85 * buffer, alpha=-lr)

    def page(step):
        t = (step + 1) / rates["epoch_steps"]
        epochs = n_steps / rates["epoch_steps"]
        up, down = rates["peak_epoch"], epochs - rates["floor_epochs"]
        if t <= up:
            lr = rates["peak"] * t / up
        else:
            lr = rates["peak"] + (rates["floor"] - rates["peak"]) * min(1.0, (t - up) / (down - up))
        for name, p in network.params.items():
            factor = rates["bias_factor"] if name.endswith(".bias") else 1.0
            # The learning rate is folded into the velocity.
            d = (p.grad + rates["decay"] / factor * p).mul_(-lr * factor)
            velocity = momentum_of(name, p)
            velocity.mul_(0.9).add_(d)
            p.add_(d + 0.9 * velocity)

    return {"muon": muon, "page": page}[recipe]


def main():
    recipe, batch, device, precision, n_threads, path, n_steps, *words = sys.argv[1:]
    device, name = device_of(device)
    print(name, flush=True)
    batch, n_steps = int(batch), int(n_steps)
    rates = {name: float(value) for name, value in (word.split("=") for word in words)}
    torch.set_num_threads(int(n_threads))
    file = load_file(path, device=device.type)
    data = {name: file.pop(name) for name in ("images", "labels", "test_images", "test_labels")}
    images = data["images"].permute(0, 1, 4, 2, 3).contiguous()
    labels = data["labels"].long()

    def trainer(layout, dtype=torch.float32, precision="f32"):
        # Metal has no f64.
        place = torch.device("cpu") if dtype == torch.float64 and device.type == "mps" else device
        state = {name: t.to(place, dtype, copy=True) for name, t in file.items()}
        state = {name: t.to(memory_format=layout) if t.dim() == 4 else t for name, t in state.items()}
        network = {"muon": Airbench, "page": ResNet9}[recipe](state)
        network.n_ghosts = max(1, batch // 32)
        batches = [x.to(place, dtype, memory_format=layout) for x in images]
        classes = labels.to(place)
        optimizer = step_of(recipe, network, rates, n_steps)
        scale = 128.0 if precision == "f16" else 1.0

        def autocast():
            if precision == "f32":
                return contextlib.nullcontext()
            return torch.autocast(place.type, {"f16": torch.float16, "bf16": torch.bfloat16}[precision])

        def train(step):
            for p in network.params.values():
                p.grad = None
            with autocast():
                logits = network.forward(batches[step % len(batches)], True)
                logits = logits if precision == "f32" else logits.float()
                loss = F.cross_entropy(logits, classes[step % len(batches)], label_smoothing=0.2)
            (loss * scale).backward()
            with torch.no_grad():
                if scale != 1.0:
                    torch._foreach_div_([p.grad for p in network.params.values()], scale)
                optimizer(step)
            return loss

        return network, train

    layouts = (torch.channels_last, torch.contiguous_format)
    trainers = []
    for layout, dtype in [(torch.contiguous_format, torch.float64)] + [(layout, torch.float32) for layout in layouts]:
        network, train = trainer(layout, dtype)
        losses = [train(step).item() for step in range(len(images))]
        with torch.no_grad():
            parameter = next(iter(network.params.values()))
            test = data["test_images"].permute(0, 3, 1, 2).to(parameter.device, dtype, memory_format=layout)
            predicted = network.forward(test, False).argmax(1).to(device)
        accuracy = (predicted == data["test_labels"].long()).float().mean().item()
        print(*losses, accuracy, flush=True)
        if dtype == torch.float32:
            trainers.append(train if precision == "f32" else trainer(layout, precision=precision)[1])
    for line in sys.stdin:
        seconds = []
        for train in trainers:
            start = time.perf_counter()
            for step in range(int(line)):
                loss = train(step)
            # Waits for the device.
            loss.item()
            seconds.append((time.perf_counter() - start) / int(line))
        print(*seconds, flush=True)


if __name__ == "__main__":
    main()
