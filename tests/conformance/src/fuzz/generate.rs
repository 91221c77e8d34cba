//! Random programs.

use super::program::{Arg, Input, Program, Step};
use fastrand::Rng;

const UNARY: [&str; 22] = [
    "neg",
    "abs",
    "sign",
    "exp",
    "log",
    "log1p",
    "sqrt",
    "rsqrt",
    "tanh",
    "sigmoid",
    "relu",
    "gelu",
    "silu",
    "softplus",
    "erf",
    "sin",
    "cos",
    "floor",
    "square",
    "reciprocal",
    "clamp",
    "leaky_relu",
];
const BINARY: [&str; 7] = ["add", "sub", "mul", "div", "pow", "maximum", "minimum"];
const REDUCTIONS: [&str; 8] = ["sum", "mean", "max", "min", "norm", "var", "std", "logsumexp"];
const LOSSES: [&str; 5] = ["l1_loss", "smooth_l1_loss", "huber_loss", "mse_loss", "bce_with_logits"];

/// The program of a seed.
pub(crate) fn program(seed: u64) -> Program {
    let mut draft =
        Draft { rng: Rng::with_seed(seed), program: Program { inputs: Vec::new(), steps: Vec::new() }, shapes: Vec::new() };
    let rank = draft.rng.usize(1..5);
    let shape = draft.shape(rank);
    let mut at = draft.input(shape);
    for _ in 0..draft.rng.usize(2..11) {
        at = draft.step(at);
    }
    if draft.rng.u8(0..4) == 0 {
        at = draft.loss(at);
    }
    // The last step is the result, whatever else was recorded after it.
    match at {
        Arg::Step(last) => draft.program.steps.truncate(last + 1),
        _ => drop(draft.push(Step::new("neg", vec![at]))),
    }
    draft.program.pruned()
}

struct Draft {
    rng: Rng,
    program: Program,
    /// The shape of each step.
    shapes: Vec<Vec<usize>>,
}

impl Draft {
    fn shape(&mut self, rank: usize) -> Vec<usize> {
        let most = [40, 12, 7, 5][rank.clamp(1, 4) - 1];
        (0..rank).map(|_| if self.rng.u8(0..6) == 0 { 1 } else { self.rng.usize(1..=most) }).collect()
    }

    /// A new input: normal values, or halves, among which there are ties and zeros.
    fn input(&mut self, shape: Vec<usize>) -> Arg {
        let n = shape.iter().product();
        let is_kinked = self.rng.u8(0..4) == 0;
        let scale = [0.1, 1.0, 1.0, 2.0, 10.0][self.rng.usize(0..5)];
        let values = (0..n).map(|_| {
            // The sum of twelve uniform numbers is nearly normal.
            let normal = (0..12).map(|_| self.rng.f32()).sum::<f32>() - 6.0;
            if is_kinked { (normal * 2.0).round() / 2.0 } else { normal * scale }
        });
        let values = values.collect();
        self.program.inputs.push(Input { shape, values, has_gradient: true });
        Arg::Input(self.program.inputs.len() - 1)
    }

    fn shape_of(&self, arg: Arg) -> Vec<usize> {
        match arg {
            Arg::Input(i) => self.program.inputs[i].shape.clone(),
            Arg::Step(i) => self.shapes[i].clone(),
            Arg::Number(_) => Vec::new(),
        }
    }

    /// Adds a step; `None` if it does not take its arguments.
    fn push(&mut self, step: Step) -> Option<Arg> {
        let args: Vec<_> = step.args.iter().filter(|arg| !matches!(arg, Arg::Number(_))).map(|&arg| self.shape_of(arg)).collect();
        let shape = step.shape(&args)?;
        if shape.iter().product::<usize>() > 4096 || shape.len() > 5 {
            return None;
        }
        self.shapes.push(shape);
        self.program.steps.push(step);
        Some(Arg::Step(self.program.steps.len() - 1))
    }

    /// An earlier value of this shape, or a new input.
    fn other(&mut self, shape: &[usize]) -> Arg {
        let steps = (0..self.shapes.len()).filter(|&i| self.shapes[i] == shape).map(Arg::Step);
        let inputs = (0..self.program.inputs.len()).filter(|&i| self.program.inputs[i].shape == shape).map(Arg::Input);
        let earlier: Vec<Arg> = steps.chain(inputs).collect();
        match self.rng.choice(earlier) {
            Some(arg) if self.rng.u8(0..3) > 0 => arg,
            _ => self.input(shape.to_vec()),
        }
    }

    /// `|x| + 0.5`.
    fn positive(&mut self, x: Arg) -> Arg {
        let abs = self.push(Step::new("abs", vec![x])).unwrap_or(x);
        self.push(Step::new("add", vec![abs, Arg::Number(0.5)])).unwrap_or(abs)
    }

    /// One operation more; `at` itself where the drawn one does not apply.
    fn step(&mut self, at: Arg) -> Arg {
        let shape = self.shape_of(at);
        let made = match self.rng.u8(0..20) {
            0..=4 => self.unary(at),
            5..=9 => self.binary(at, &shape),
            10..=11 => self.reduction(at, &shape),
            12..=14 => self.moved(at, &shape),
            15..=16 => self.along(at, &shape),
            17..=18 => self.product(at, &shape),
            _ => {
                let [b, c, d] = [(); 3].map(|()| self.other(&shape));
                self.push(Step::new("where", vec![at, b, c, d]))
            }
        };
        made.unwrap_or(at)
    }

    fn unary(&mut self, at: Arg) -> Option<Arg> {
        let op = UNARY[self.rng.usize(0..UNARY.len())];
        let x = match op {
            "log" | "sqrt" | "rsqrt" | "reciprocal" => self.positive(at),
            "log1p" => self.push(Step::new("abs", vec![at]))?,
            // Of large numbers only infinity would remain.
            "exp" => self.push(Step::new("clamp", vec![at]).with("min", -6.0).with("max", 6.0))?,
            _ => at,
        };
        let step = Step::new(op, vec![x]);
        self.push(match op {
            "clamp" => step.with("min", -0.5).with("max", 1.0),
            "leaky_relu" => step.with("slope", 0.1),
            _ => step,
        })
    }

    fn binary(&mut self, at: Arg, shape: &[usize]) -> Option<Arg> {
        let op = BINARY[self.rng.usize(0..BINARY.len())];
        if self.rng.u8(0..4) == 0 {
            let number = Arg::Number([0.5, -1.5, 2.0, 3.25][self.rng.usize(0..4)]);
            let x = if matches!(op, "div" | "pow") { self.positive(at) } else { at };
            let is_first = self.rng.bool() && op != "pow";
            return self.push(Step::new(op, if is_first { vec![number, x] } else { vec![x, number] }));
        }
        // Some lengths 1, and leading ones left out.
        let mut part: Vec<usize> = shape.iter().map(|&length| if self.rng.u8(0..4) == 0 { 1 } else { length }).collect();
        if self.rng.u8(0..3) == 0 && !part.is_empty() {
            part.drain(..self.rng.usize(0..part.len()));
        }
        let other = self.other(&part);
        let (a, b) = match op {
            "div" => (at, self.positive(other)),
            "pow" => (self.positive(at), self.push(Step::new("tanh", vec![other]))?),
            _ if self.rng.bool() => (other, at),
            _ => (at, other),
        };
        self.push(Step::new(op, vec![a, b]))
    }

    fn reduction(&mut self, at: Arg, shape: &[usize]) -> Option<Arg> {
        let mut dims: Vec<usize> = (0..shape.len()).filter(|_| self.rng.bool()).collect();
        if dims.is_empty() && !shape.is_empty() {
            dims.push(self.rng.usize(0..shape.len()));
        }
        let op = REDUCTIONS[self.rng.usize(0..REDUCTIONS.len())];
        let step = Step::new(op, vec![at]).with("dims", dims).with("keepdim", self.rng.bool());
        let correction = self.rng.u64(0..2);
        self.push(if matches!(op, "var" | "std") { step.with("correction", correction) } else { step })
    }

    fn moved(&mut self, at: Arg, shape: &[usize]) -> Option<Arg> {
        let rank = shape.len();
        if rank == 0 {
            return None;
        }
        let dim = self.rng.usize(0..rank);
        match self.rng.u8(0..7) {
            0 => {
                let mut dims: Vec<usize> = (0..rank).collect();
                self.rng.shuffle(&mut dims);
                self.push(Step::new("permute", vec![at]).with("dims", dims))
            }
            1 => {
                let n: usize = shape.iter().product();
                let divisors: Vec<usize> = (1..=n).filter(|rows| n.is_multiple_of(*rows)).collect();
                let rows = self.rng.choice(divisors).unwrap_or(1);
                self.push(Step::new("reshape", vec![at]).with("shape", vec![rows, n / rows]))
            }
            2 => {
                let mut wider: Vec<usize> =
                    shape.iter().map(|&length| if length == 1 { self.rng.usize(1..6) } else { length }).collect();
                if self.rng.bool() && rank < 4 {
                    wider.insert(0, self.rng.usize(1..4));
                }
                self.push(Step::new("expand", vec![at]).with("shape", wider))
            }
            3 => {
                let start = self.rng.usize(0..shape[dim]);
                let length = self.rng.usize(1..=shape[dim] - start);
                self.push(Step::new("narrow", vec![at]).with("dim", dim).with("start", start).with("length", length))
            }
            4 => {
                let mut beside = shape.to_vec();
                beside[dim] = self.rng.usize(1..5);
                let other = self.other(&beside);
                self.push(Step::new("concat", vec![at, other]).with("dim", dim))
            }
            5 => {
                let indices: Vec<usize> = (0..self.rng.usize(1..7)).map(|_| self.rng.usize(0..shape[dim])).collect();
                self.push(Step::new("index_select", vec![at]).with("dim", dim).with("indices", indices))
            }
            _ => self.push(Step::new("flip", vec![at]).with("dims", vec![dim])),
        }
    }

    fn along(&mut self, at: Arg, shape: &[usize]) -> Option<Arg> {
        if shape.is_empty() {
            return None;
        }
        let dim = self.rng.usize(0..shape.len());
        match self.rng.u8(0..5) {
            0 | 1 => {
                let n = *shape.last()?;
                let (weight, bias) = (self.other(&[n]), self.other(&[n]));
                self.push(Step::new("layer_norm", vec![at, weight, bias]).with("eps", 1e-5))
            }
            2 => self.push(Step::new("softmax", vec![at]).with("dim", dim)),
            3 => self.push(Step::new("log_softmax", vec![at]).with("dim", dim)),
            _ => self.push(Step::new("cumsum", vec![at]).with("dim", dim)),
        }
    }

    fn product(&mut self, at: Arg, shape: &[usize]) -> Option<Arg> {
        match *shape {
            [_, k] if self.rng.bool() => {
                let n = self.rng.usize(1..20);
                let (weight, bias) = (self.other(&[n, k]), self.other(&[n]));
                let activation = ["identity", "relu", "gelu", "silu", "tanh"][self.rng.usize(0..5)];
                self.push(Step::new("linear", vec![at, weight, bias]).with("activation", activation))
            }
            [_, k] => {
                let n = self.rng.usize(1..20);
                let other = self.other(&[k, n]);
                self.push(Step::new("matmul", vec![at, other]))
            }
            [b, _, k] => {
                let n = self.rng.usize(1..9);
                let other = self.other(&[b, k, n]);
                self.push(Step::new("batched_matmul", vec![at, other]))
            }
            _ => None,
        }
    }

    fn loss(&mut self, at: Arg) -> Arg {
        let shape = self.shape_of(at);
        let op = LOSSES[self.rng.usize(0..LOSSES.len())];
        let target = self.input(shape);
        if let Some(input) = self.program.inputs.last_mut() {
            input.has_gradient = false;
            if op == "bce_with_logits" {
                input.values.iter_mut().for_each(|value| *value = f32::from(u8::from(*value > 0.0)));
            }
        }
        let reduction = if op == "mse_loss" || self.rng.bool() { "mean" } else { "sum" };
        let step = Step::new(op, vec![at, target]).with("reduction", reduction);
        self.push(step).unwrap_or(at)
    }
}
