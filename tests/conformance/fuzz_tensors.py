#!/usr/bin/env python3
"""Evaluates programs of tensor operations in PyTorch, with the error that rounding may cause: the peer of `cargo xtask fuzz-tensors --peers`.

Each line of standard input is a program in JSON; each line of standard output has its results. Everything is computed in float64, and rounded wherever the
precision of the program rounds: the result of each operation, and each gradient, to the dtype that torch.autocast gives it on CUDA. The tolerance of an
element is what it varies by when each rounding goes up or down at random (Monte Carlo arithmetic, Parker 1997), so it follows from the precision, the
lengths of sums, and how much the program magnifies errors. Only roundings that are needed are drawn: exact values stay exact, and ties stay ties.
"""
import json
import struct
import sys

import torch
import torch.nn.functional as F

F64 = torch.float64
# Bits after the leading one, and the exponent of the smallest normal number.
FORMATS = {"f32": (23, -126, torch.float32), "f16": (10, -14, torch.float16), "bf16": (7, -126, torch.bfloat16)}
LOWER = {"matmul", "batched_matmul", "linear"}
# var and std are not in PyTorch's lists, where their result would be rounded once more.
FULL = {
    "var", "std",
    "exp", "log", "log1p", "reciprocal", "rsqrt", "pow", "softplus", "layer_norm", "norm", "logsumexp", "sum", "softmax", "log_softmax", "cumsum",
    "l1_loss", "smooth_l1_loss", "huber_loss", "mse_loss", "bce_with_logits",
}
# Operations that return one of the values they are given, and so round nothing.
SELECTIONS = {"neg", "abs", "sign", "relu", "floor", "clamp", "maximum", "minimum", "where", "permute", "reshape", "expand", "narrow", "concat", "flip",
              "index_select", "max", "min"}


class Rounding:
    """Rounds to the nearest number of a format, or at random to one of its neighbours."""

    def __init__(self, generator=None):
        self.generator = generator

    def uniform(self, like):
        return torch.rand(like.shape, dtype=F64, generator=self.generator) - 0.5

    def __call__(self, y, form):
        bits, smallest, dtype = FORMATS[form]
        if self.generator is not None:
            _, exponent = torch.frexp(y)
            spacing = torch.ldexp(torch.ones_like(y), torch.clamp(exponent - 1, min=smallest) - bits)
            moved = y + self.uniform(y) * spacing
            y = torch.where(torch.isfinite(y), moved, y)
        return y.to(dtype).to(F64)

    def relative(self, y):
        """The error of a few operations in f32."""
        return y if self.generator is None else y * (1 + 4 * self.uniform(y) * 2.0**-24)

    def absolute(self, y):
        """The error of a sum of terms of about 1 in f32."""
        return y if self.generator is None else y + 4 * self.uniform(y) * 2.0**-24

    def noise(self, y, terms):
        """The error of a sum in f32, of terms whose squares add up to `terms`."""
        if self.generator is None:
            return y
        # A multiple of 1/64 is a sum of such, whose partial sums are exact.
        is_exact = y * 64 == torch.round(y * 64)
        noisy = y + 8 * self.uniform(y) * 2.0**-24 * torch.sqrt(terms)
        return torch.where(is_exact | ~torch.isfinite(noisy), y, noisy)


class Round(torch.autograd.Function):
    """Rounds a value to its dtype, and its gradient likewise."""

    @staticmethod
    def forward(ctx, x, form, rounding):
        ctx.form, ctx.rounding = form, rounding
        return rounding(x, form)

    @staticmethod
    def backward(ctx, dy):
        return ctx.rounding(dy, ctx.form), None, None


class Cast(torch.autograd.Function):
    """The copy of an operand that autocast makes, whose gradient brisk writes in f32, where PyTorch's is rounded and may overflow."""

    @staticmethod
    def forward(ctx, x, form, rounding):
        return rounding(x, form)

    @staticmethod
    def backward(ctx, dy):
        return dy, None, None


class Silu(torch.autograd.Function):
    """SiLU in f32, whose slope is a sum."""

    @staticmethod
    def forward(ctx, x, rounding):
        ctx.save_for_backward(x)
        ctx.rounding = rounding
        return F.silu(x)

    @staticmethod
    def backward(ctx, dy):
        x, = ctx.saved_tensors
        share = torch.sigmoid(x)
        return dy * ctx.rounding.absolute(share * (1 + x * (1 - share))), None


class Jitter(torch.autograd.Function):
    """The error within an operation that computes in f32 in several steps."""

    @staticmethod
    def forward(ctx, x, rounding):
        ctx.rounding = rounding
        return rounding.noise(x, x * x)

    @staticmethod
    def backward(ctx, dy):
        return ctx.rounding.noise(dy, dy * dy), None


class Product(torch.autograd.Function):
    """A matrix product whose sums are kept in f32."""

    @staticmethod
    def forward(ctx, a, b, rounding):
        ctx.save_for_backward(a, b)
        ctx.rounding = rounding
        return rounding.noise(a @ b, (a * a) @ (b * b))

    @staticmethod
    def backward(ctx, dy):
        a, b = ctx.saved_tensors
        at, bt, squares = a.transpose(-1, -2), b.transpose(-1, -2), dy * dy
        return ctx.rounding.noise(dy @ bt, squares @ (bt * bt)), ctx.rounding.noise(at @ dy, (at * at) @ squares), None


class Expand(torch.autograd.Function):
    """Repeats along dimensions; the gradient is a sum in f32."""

    @staticmethod
    def forward(ctx, x, shape, rounding):
        ctx.shape, ctx.rounding = x.shape, rounding
        return x.expand(shape)

    @staticmethod
    def backward(ctx, dy):
        dx = dy.sum_to_size(ctx.shape)
        return (ctx.rounding.noise(dx, (dy * dy).sum_to_size(ctx.shape)) if dx.shape != dy.shape else dx), None, None


class Sum(torch.autograd.Function):
    """A sum in f32."""

    @staticmethod
    def forward(ctx, x, dims, keepdim, rounding):
        ctx.shape, ctx.dims, ctx.keepdim = x.shape, dims, keepdim
        return rounding.noise(x.sum(dims, keepdim=keepdim), (x * x).sum(dims, keepdim=keepdim))

    @staticmethod
    def backward(ctx, dy):
        if not ctx.keepdim:
            for dim in sorted(ctx.dims):
                dy = dy.unsqueeze(dim)
        return dy.expand(ctx.shape), None, None, None


class ByOutput(torch.autograd.Function):
    """A function whose derivative is computed from its rounded result, as PyTorch does."""

    @staticmethod
    def forward(ctx, x, op, form, rounding):
        y = rounding(UNARY[op](x), form)
        ctx.save_for_backward(y)
        ctx.op, ctx.form, ctx.rounding = op, form, rounding
        return y

    @staticmethod
    def backward(ctx, dy):
        y, = ctx.saved_tensors
        slope = {"tanh": 1 - y * y, "sigmoid": y * (1 - y), "exp": y}[ctx.op]
        return dy * ctx.rounding(slope, "f32"), None, None, None


class LayerNorm(torch.autograd.Function):
    """Layer normalisation in f32: the three terms of its gradient are rounded before they cancel."""

    @staticmethod
    def forward(ctx, x, eps, rounding):
        mean, var = x.mean(-1, keepdim=True), x.var(-1, correction=0, keepdim=True)
        mean = rounding.noise(mean, (x * x).mean(-1, keepdim=True) / x.shape[-1])
        scale = torch.rsqrt(var + eps)
        y = (x - mean) * scale
        ctx.save_for_backward(rounding.relative(y), scale)
        ctx.rounding = rounding
        return y

    @staticmethod
    def backward(ctx, dy):
        y, scale = ctx.saved_tensors
        r = ctx.rounding.relative
        return r(scale) * (r(dy) - r(dy.mean(-1, keepdim=True)) - r(y * r((dy * y).mean(-1, keepdim=True)))), None, None


class Softmax(torch.autograd.Function):
    """Softmax in f32, or its logarithm."""

    @staticmethod
    def forward(ctx, x, dim, is_log, rounding):
        y = rounding.relative(torch.softmax(x, dim))
        ctx.save_for_backward(y)
        ctx.dim, ctx.is_log, ctx.rounding = dim, is_log, rounding
        return rounding.absolute(torch.log_softmax(x, dim)) if is_log else y

    @staticmethod
    def backward(ctx, dy):
        y, = ctx.saved_tensors
        r = ctx.rounding.relative
        if ctx.is_log:
            return r(dy) - r(y * r(dy.sum(ctx.dim, keepdim=True))), None, None, None
        return y * (r(dy) - r((dy * y).sum(ctx.dim, keepdim=True))), None, None, None


class Gelu(torch.autograd.Function):
    """GELU in f32, where 1 + erf cancels."""

    @staticmethod
    def forward(ctx, x, rounding):
        below = rounding.absolute(0.5 * (1 + torch.erf(x * 0.5**0.5)))
        ctx.save_for_backward(x, below)
        ctx.rounding = rounding
        return x * below

    @staticmethod
    def backward(ctx, dy):
        x, below = ctx.saved_tensors
        slope = below + ctx.rounding.relative(x * torch.exp(-0.5 * x * x) * (2 * torch.pi) ** -0.5)
        return dy * ctx.rounding.absolute(slope), None


class BceWithLogits(torch.autograd.Function):
    """The loss of each logit in f32, the difference of numbers of its size, as in PyTorch."""

    @staticmethod
    def forward(ctx, x, target, rounding):
        ctx.save_for_backward(x, target)
        ctx.rounding = rounding
        losses = F.binary_cross_entropy_with_logits(x, target, reduction="none")
        return rounding.noise(losses, x * x + losses * losses)

    @staticmethod
    def backward(ctx, dy):
        x, target = ctx.saved_tensors
        return dy * ctx.rounding.absolute(torch.sigmoid(x) - target), None, None


UNARY = {
    "neg": lambda x: -x, "abs": torch.abs, "sign": torch.sign, "exp": torch.exp, "log": torch.log, "log1p": torch.log1p,
    "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "tanh": torch.tanh, "sigmoid": torch.sigmoid, "relu": F.relu, "gelu": F.gelu,
    "silu": F.silu, "softplus": F.softplus, "erf": torch.erf, "sin": torch.sin, "cos": torch.cos, "floor": torch.floor,
    "square": torch.square, "reciprocal": torch.reciprocal, "identity": lambda x: x,
}
BINARY = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "maximum": torch.maximum, "minimum": torch.minimum,
    "pow": torch.pow,
}
LOSSES = {
    "l1_loss": F.l1_loss, "smooth_l1_loss": F.smooth_l1_loss, "huber_loss": F.huber_loss, "mse_loss": F.mse_loss,
}


def along_dims(s, x, rounding):
    op, dims, keep = s["op"], s["dims"], s["keepdim"]
    if op == "max":
        return x.amax(dims, keepdim=keep)
    if op == "min":
        return x.amin(dims, keepdim=keep)
    if op == "sum":
        return Sum.apply(x, dims, keep, rounding)
    if op == "mean":
        n = 1
        for dim in dims:
            n *= x.shape[dim]
        return Sum.apply(x, dims, keep, rounding) / n
    x = Jitter.apply(x, rounding)
    if op == "norm":
        return torch.linalg.vector_norm(x, dim=dims, keepdim=keep)
    if op == "logsumexp":
        return Jitter.apply(torch.logsumexp(x, dims, keepdim=keep), rounding)
    return getattr(torch, op)(x, dim=dims, correction=s["correction"], keepdim=keep)


def computed(s, args, rounding):
    op = s["op"]
    if op == "erf":
        return torch.erf(Jitter.apply(args[0], rounding))
    if op == "silu":
        return Silu.apply(args[0], rounding)
    if op == "gelu":
        return Gelu.apply(args[0], rounding)
    if op in UNARY:
        return UNARY[op](args[0])
    if op == "pow":
        args = [Jitter.apply(x, rounding) for x in args]
    if op in BINARY or op == "where":
        shape = torch.broadcast_shapes(*(x.shape for x in args))
        args = [Expand.apply(x, shape, rounding) for x in args]
        return torch.where(args[0] < args[1], args[2], args[3]) if op == "where" else BINARY[op](*args)
    if op in ("sum", "mean", "max", "min", "norm", "var", "std", "logsumexp"):
        return along_dims(s, args[0], rounding)
    x = args[0]
    if op == "clamp":
        return x.clamp(s["min"], s["max"])
    if op == "leaky_relu":
        return F.leaky_relu(x, s["slope"])
    if op == "permute":
        return x.permute(s["dims"])
    if op == "reshape":
        return x.reshape(s["shape"])
    if op == "expand":
        return Expand.apply(x, s["shape"], rounding)
    if op == "concat":
        return torch.cat(args, s["dim"])
    if op == "narrow":
        return x.narrow(s["dim"], s["start"], s["length"])
    if op == "flip":
        return x.flip(s["dims"])
    if op == "index_select":
        return x.index_select(s["dim"], torch.tensor(s["indices"]))
    if op == "cumsum":
        return Jitter.apply(torch.cumsum(Jitter.apply(x, rounding), s["dim"]), rounding)
    if op in ("softmax", "log_softmax"):
        return Softmax.apply(Jitter.apply(x, rounding), s["dim"], op == "log_softmax", rounding)
    if op == "layer_norm":
        weight, bias = (Expand.apply(arg, x.shape, rounding) for arg in args[1:])
        return LayerNorm.apply(x, s["eps"], rounding) * weight + bias
    if op in ("matmul", "batched_matmul"):
        return Product.apply(x, args[1], rounding)
    if op in LOSSES or op == "bce_with_logits":
        if op == "bce_with_logits":
            losses = BceWithLogits.apply(x, args[1], rounding)
        else:
            losses = Jitter.apply(LOSSES[op](Jitter.apply(x, rounding), args[1], reduction="none"), rounding)
        total = Sum.apply(losses, list(range(x.dim())), False, rounding)
        return total / x.numel() if s["reduction"] == "mean" else total
    raise ValueError(f"there is no operation {op}")


def evaluate(request, rounding):
    """The result, and the gradient of each input."""
    lower = request["precision"]
    leaves, values = {}, []
    for item in request["inputs"]:
        x = floats(item["values"]).reshape(item["shape"])
        leaves[item["name"]] = (x.requires_grad_(item["has_gradient"]), "f32")
    for s in request["steps"]:
        op, args, forms = s["op"], [], []
        for arg in s["args"]:
            if isinstance(arg, float):
                # As brisk takes it.
                args.append(torch.tensor(arg, dtype=torch.float32).to(F64))
                continue
            x, form = leaves[arg] if isinstance(arg, str) else values[arg]
            args.append(x)
            forms.append(form)
        # brisk records the power of a number as a custom function by `Tensor::map`, which autocast leaves in the dtype of its operands.
        if op in LOWER:
            args = [x if form == lower else Cast.apply(x, lower, rounding) for x, form in zip(args, forms)]
            form = lower
        elif op in FULL and not (op == "pow" and len(forms) == 1) or "f32" in forms:
            form = "f32"
        else:
            form = lower
        if op == "linear":
            y = Round.apply(Product.apply(args[0], args[1].T, rounding) + Expand.apply(args[2], (args[0].shape[0], args[1].shape[0]), rounding), form, rounding)
            if s["activation"] == "tanh":
                y = ByOutput.apply(y, "tanh", form, rounding)
            elif s["activation"] != "identity":
                y = Round.apply(computed({"op": s["activation"]}, [y], rounding), form, rounding)
        elif op in ("tanh", "sigmoid", "exp"):
            y = Round.apply(ByOutput.apply(args[0], op, form, rounding), form, rounding)
        else:
            y = computed(s, args, rounding)
            if op not in SELECTIONS or form == "f32" and lower in forms:
                y = Round.apply(y, form, rounding)
            else:
                # The gradient is rounded where several are added up.
                y = Round.apply(y, form, rounding) if form != "f32" else y
        values.append((y, form))
    y, _ = values[-1]
    outputs = {"out.y": y.detach()}
    if y.requires_grad:
        y.backward(floats(request["output_gradient"]).reshape(y.shape))
    for name, (x, _) in leaves.items():
        if x.requires_grad:
            outputs[f"grad.{name}"] = rounding(torch.zeros_like(x) if x.grad is None else x.grad, "f32")
    return outputs


def floats(digits):
    data = bytes.fromhex(digits)
    return torch.tensor(struct.unpack(f"<{len(data) // 4}f", data), dtype=F64)


def digits(values):
    values = values.reshape(-1).to(torch.float32).tolist()
    return struct.pack(f"<{len(values)}f", *values).hex()


def tolerances(nearest, draws):
    """The largest differences that are due to rounding; NaN where the draws do not agree whether a value is finite."""
    difference = torch.stack([(draw - nearest).abs() for draw in draws]).amax(0)
    same = torch.stack([(draw == nearest) | (draw.isnan() & nearest.isnan()) for draw in draws]).all(0)
    finite = torch.isfinite(difference)
    rms = torch.sqrt((torch.where(finite, difference, 0) ** 2).sum() / max(1, int(finite.sum())))
    # The results themselves are rounded once more.
    own = nearest.abs() * 2.0**-23 + 2.0**-148
    within = 12 * torch.where(finite, difference, 0) + 3 * rms + own
    return torch.where(torch.isfinite(nearest) & finite, within, torch.where(same, 0.0, torch.nan))


def reply(request):
    nearest = evaluate(request, Rounding())
    draws = [evaluate(request, Rounding(torch.Generator().manual_seed(i))) for i in range(request["draws"])]
    return {
        name: {"values": digits(value), "tolerances": digits(tolerances(value, [draw[name] for draw in draws]))}
        for name, value in nearest.items()
    }


def main():
    torch.set_num_threads(1)
    for line in sys.stdin:
        try:
            answer = reply(json.loads(line))
        except (RuntimeError, ValueError, KeyError, IndexError) as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
