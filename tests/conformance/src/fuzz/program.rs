//! A program of tensor operations as a list of steps, and the shapes of its results.

use serde_json::{Map, Value, json};

/// A program: its last step is the result.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) inputs: Vec<Input>,
    pub(crate) steps: Vec<Step>,
}

/// A tensor that the program starts from.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Vec<f32>,
    /// Whether its gradient is compared.
    pub(crate) has_gradient: bool,
}

/// One operation.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) op: &'static str,
    pub(crate) args: Vec<Arg>,
    pub(crate) options: Map<String, Value>,
}

/// An argument of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Arg {
    Input(usize),
    Step(usize),
    Number(f32),
}

impl Step {
    pub(crate) fn new(op: &'static str, args: Vec<Arg>) -> Self {
        Self { op, args, options: Map::new() }
    }

    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.options.insert(name.to_owned(), value.into());
        self
    }

    fn list(&self, name: &str) -> Vec<usize> {
        let list = self.options.get(name).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(|item| Some(item.as_u64()? as usize)).collect()
    }

    fn whole(&self, name: &str) -> usize {
        self.options.get(name).and_then(Value::as_u64).unwrap_or_default() as usize
    }

    fn flag(&self, name: &str) -> bool {
        self.options.get(name).and_then(Value::as_bool).unwrap_or_default()
    }

    /// The shape of the result for tensors of these shapes; `None` if the operation does not take them.
    pub(crate) fn shape(&self, args: &[Vec<usize>]) -> Option<Vec<usize>> {
        let x = args.first()?;
        let dim_exists = |dim: usize| dim < x.len();
        match self.op {
            "add" | "sub" | "mul" | "div" | "pow" | "maximum" | "minimum" | "where" => broadcast(args),
            "sum" | "mean" | "max" | "min" | "norm" | "var" | "std" | "logsumexp" => {
                let dims = self.list("dims");
                if dims.is_empty() || !dims.iter().all(|&dim| dim_exists(dim)) {
                    return None;
                }
                let n: usize = dims.iter().map(|&dim| x[dim]).product();
                if n <= self.whole("correction") {
                    return None;
                }
                let keep = self.flag("keepdim");
                let kept = |(dim, &length): (usize, &usize)| match dims.contains(&dim) {
                    true => keep.then_some(1),
                    false => Some(length),
                };
                Some(x.iter().enumerate().filter_map(kept).collect())
            }
            "permute" => {
                let dims = self.list("dims");
                (dims.len() == x.len()).then(|| dims.iter().map(|&dim| x[dim]).collect())
            }
            "reshape" => {
                let shape = self.list("shape");
                (shape.iter().product::<usize>() == x.iter().product::<usize>()).then_some(shape)
            }
            "expand" => {
                let shape = self.list("shape");
                (broadcast(&[x.clone(), shape.clone()]).as_ref() == Some(&shape)).then_some(shape)
            }
            "narrow" => {
                let (dim, start, length) = (self.whole("dim"), self.whole("start"), self.whole("length"));
                (dim_exists(dim) && start + length <= x[dim]).then(|| replaced(x, dim, length))
            }
            "index_select" => {
                let (dim, indices) = (self.whole("dim"), self.list("indices"));
                (dim_exists(dim) && indices.iter().all(|&index| index < x[dim])).then(|| replaced(x, dim, indices.len()))
            }
            "concat" => {
                let dim = self.whole("dim");
                let fits = |other: &Vec<usize>| other.len() == x.len() && replaced(other, dim, 0) == replaced(x, dim, 0);
                (dim_exists(dim) && args.iter().all(fits)).then(|| replaced(x, dim, args.iter().map(|shape| shape[dim]).sum()))
            }
            "softmax" | "log_softmax" | "cumsum" => dim_exists(self.whole("dim")).then(|| x.clone()),
            "flip" => self.list("dims").iter().all(|&dim| dim_exists(dim)).then(|| x.clone()),
            "layer_norm" => {
                let n = *x.last()?;
                (n > 1 && args[1..].iter().all(|shape| *shape == [n])).then(|| x.clone())
            }
            "matmul" => match (&x[..], &args.get(1)?[..]) {
                (&[m, k], &[other, n]) if k == other => Some(vec![m, n]),
                _ => None,
            },
            "batched_matmul" => match (&x[..], &args.get(1)?[..]) {
                (&[b, m, k], &[same, other, n]) if k == other && b == same => Some(vec![b, m, n]),
                _ => None,
            },
            "linear" => match (&x[..], &args.get(1)?[..], &args.get(2)?[..]) {
                (&[m, k], &[n, other], &[bias]) if k == other && n == bias => Some(vec![m, n]),
                _ => None,
            },
            "l1_loss" | "smooth_l1_loss" | "huber_loss" | "mse_loss" | "bce_with_logits" => {
                (args.get(1) == Some(x) && !x.is_empty()).then(Vec::new)
            }
            _ => Some(x.clone()),
        }
    }
}

fn replaced(shape: &[usize], dim: usize, length: usize) -> Vec<usize> {
    let mut shape = shape.to_vec();
    if let Some(at) = shape.get_mut(dim) {
        *at = length;
    }
    shape
}

/// The shape that NumPy's rules give.
pub(crate) fn broadcast(shapes: &[Vec<usize>]) -> Option<Vec<usize>> {
    let rank = shapes.iter().map(Vec::len).max()?;
    (0..rank)
        .map(|dim| {
            let lengths = shapes.iter().filter_map(|shape| (dim + shape.len()).checked_sub(rank).map(|dim| shape[dim]));
            lengths.into_iter().try_fold(1, |length, other| match (length, other) {
                (1, other) => Some(other),
                (length, other) => (other == 1 || other == length).then_some(length),
            })
        })
        .collect()
}

impl Program {
    /// The shape of an argument; `None` of a number, or if a step does not take what it is given.
    pub(crate) fn shapes(&self) -> Option<Vec<Vec<usize>>> {
        let mut shapes: Vec<Vec<usize>> = Vec::new();
        for step in &self.steps {
            let args = step.args.iter().filter_map(|&arg| match arg {
                Arg::Input(i) => Some(self.inputs[i].shape.clone()),
                Arg::Step(i) => Some(shapes[i].clone()),
                Arg::Number(_) => None,
            });
            let shape = step.shape(&args.collect::<Vec<_>>())?;
            shapes.push(shape);
        }
        Some(shapes)
    }

    /// Without inputs and steps that the result does not depend on.
    pub(crate) fn pruned(&self) -> Self {
        let mut is_used = vec![false; self.steps.len()];
        if let Some(last) = is_used.last_mut() {
            *last = true;
        }
        for i in (0..self.steps.len()).rev() {
            if !is_used[i] {
                continue;
            }
            for arg in &self.steps[i].args {
                if let Arg::Step(j) = arg {
                    is_used[*j] = true;
                }
            }
        }
        let mut pruned = Self { inputs: Vec::new(), steps: Vec::new() };
        let (mut inputs, mut steps) = (vec![None; self.inputs.len()], vec![0; self.steps.len()]);
        for (i, step) in self.steps.iter().enumerate().filter(|(i, _)| is_used[*i]) {
            let mut step = step.clone();
            for arg in &mut step.args {
                *arg = match *arg {
                    Arg::Input(j) => Arg::Input(*inputs[j].get_or_insert_with(|| {
                        pruned.inputs.push(self.inputs[j].clone());
                        pruned.inputs.len() - 1
                    })),
                    Arg::Step(j) => Arg::Step(steps[j]),
                    number => number,
                };
            }
            steps[i] = pruned.steps.len();
            pruned.steps.push(step);
        }
        pruned
    }

    /// The steps as a conformance case has them.
    pub(crate) fn params(&self) -> Value {
        let arg = |arg: &Arg| match *arg {
            Arg::Input(i) => json!(name(i)),
            Arg::Step(i) => json!(i),
            Arg::Number(number) => json!(number),
        };
        let step = |step: &Step| {
            let mut object = step.options.clone();
            object.insert("op".to_owned(), step.op.into());
            object.insert("args".to_owned(), step.args.iter().map(arg).collect());
            Value::Object(object)
        };
        json!({ "steps": self.steps.iter().map(step).collect::<Vec<_>>() })
    }
}

/// The name of an input.
pub(crate) fn name(input: usize) -> String {
    format!("v{input}")
}
