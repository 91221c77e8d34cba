//! Programs of tensor algebra, executed step by step, and losses composed of it.

use anyhow::{Context, Result, bail};
use brisk_program::{Device, Rewrite};
use brisk_tensor::{Activation, Dims, Expr, LossReduction, Reduction, Tensor, Transpose};
use serde_json::Value;

use crate::case::{Case, Outputs};
use crate::form::Form;
use crate::operators::Workbench;

pub(crate) fn run(case: &Case, device: &Device, form: Form) -> Result<Option<Outputs>> {
    let mut bench = Workbench::new(case, device, form);
    let graph = bench.graph.clone();
    let y = graph.autocast(form.autocast(), || match case.op.as_str() {
        "algebra" => steps(case, &mut bench),
        "loss" => loss(case, &mut bench),
        _ => Ok(None),
    })?;
    y.map(|y| bench.finish(&y)).transpose()
}

/// Runs the steps of a case with the kernels fused as `rewrites` say.
pub(crate) fn run_program(case: &Case, device: &Device, form: Form, rewrites: &[Rewrite]) -> Result<Option<Outputs>> {
    let mut bench = Workbench::new(case, device, form);
    let graph = bench.graph.clone();
    graph.fuse_by(rewrites);
    let y = graph.autocast(form.autocast(), || steps(case, &mut bench))?;
    y.map(|y| bench.finish(&y)).transpose()
}

fn loss(case: &Case, bench: &mut Workbench<'_>) -> Result<Option<Tensor>> {
    let (x, target) = (bench.input("x")?, bench.input("target")?);
    let reduction = match case.word("reduction")? {
        "mean" => LossReduction::Mean,
        "sum" => LossReduction::Sum,
        "none" => LossReduction::None,
        other => bail!("there is no reduction `{other}`"),
    };
    let number = |name: &str| Ok::<_, anyhow::Error>(case.number(name)? as f32);
    Ok(Some(match case.word("name")? {
        "l1" => x.l1_loss(&target, reduction),
        "smooth_l1" => x.smooth_l1_loss(&target, number("beta")?, reduction),
        "huber" => x.huber_loss(&target, number("delta")?, reduction),
        "binary_cross_entropy" => x.binary_cross_entropy(&target, reduction),
        "focal" => x.focal_loss(&target, number("alpha")?, number("gamma")?, reduction),
        "kl_div" => x.kl_div(&target, reduction),
        "hinge" => x.hinge_loss(&target, number("margin")?, reduction),
        "quantile" => x.quantile_loss(&target, number("quantile")?, reduction),
        _ => return Ok(None),
    }))
}

/// An argument of a step.
enum Argument {
    Tensor(Tensor),
    Number(f32),
}

/// The result of the last step; `None` if an operation is not known.
fn steps(case: &Case, bench: &mut Workbench<'_>) -> Result<Option<Tensor>> {
    let steps = case.params["steps"].as_array().context("no list `steps`")?;
    let mut inputs = std::collections::BTreeMap::new();
    let mut results: Vec<Tensor> = Vec::new();
    for step in steps {
        let mut args = Vec::new();
        for arg in step["args"].as_array().context("a step without `args`")? {
            args.push(match (arg.as_str(), arg.as_u64()) {
                (Some(name), _) => {
                    if !inputs.contains_key(name) {
                        inputs.insert(name, bench.input(name)?);
                    }
                    Argument::Tensor(inputs[name].clone())
                }
                (None, Some(step)) => Argument::Tensor(results[step as usize].clone()),
                (None, None) => Argument::Number(arg.as_f64().context("an argument that is no number")? as f32),
            });
        }
        match result(step, &args)? {
            Some(y) => results.push(y),
            None => return Ok(None),
        }
    }
    Ok(results.pop())
}

fn result(step: &Value, args: &[Argument]) -> Result<Option<Tensor>> {
    let op = step["op"].as_str().context("a step without `op`")?;
    let list = |name: &str| -> Result<Vec<usize>> {
        let list = step[name].as_array().with_context(|| format!("{op}: no list `{name}`"))?;
        list.iter().map(|item| Ok(item.as_u64().context("not a whole number")? as usize)).collect()
    };
    let float =
        |name: &str| Ok::<_, anyhow::Error>(step[name].as_f64().with_context(|| format!("{op}: no number `{name}`"))? as f32);
    let whole = |name: &str| Ok::<_, anyhow::Error>(float(name)? as usize);
    let dims = || -> Result<Dims> {
        let dims = Dims::from(&list("dims")?[..]);
        Ok(if step["keepdim"].as_bool().unwrap_or(false) { dims.keep() } else { dims })
    };
    let (x, y) = match args {
        [Argument::Number(number), Argument::Tensor(x)] => {
            let number = Expr::constant(*number);
            return Ok(two(op).map(|f| x.map(|x| f(number, x))));
        }
        [Argument::Tensor(x), Argument::Number(number)] => {
            let number = Expr::constant(*number);
            return Ok(two(op).map(|f| x.map(|x| f(x, number))));
        }
        [Argument::Tensor(x), Argument::Tensor(y), ..] => (x, Some(y)),
        [Argument::Tensor(x)] => (x, None),
        _ => bail!("{op}: arguments that are not of this operation"),
    };
    let others: Vec<&Tensor> = args[1..]
        .iter()
        .filter_map(|arg| match arg {
            Argument::Tensor(tensor) => Some(tensor),
            Argument::Number(_) => None,
        })
        .collect();
    Ok(Some(match (op, y) {
        ("add", Some(y)) => x.add(y),
        ("sub", Some(y)) => x.sub(y),
        ("mul", Some(y)) => x.multiply(y),
        ("div", Some(y)) => x.div(y),
        ("pow", Some(y)) => x.pow(y),
        ("maximum", Some(y)) => x.maximum(y),
        ("minimum", Some(y)) => x.minimum(y),
        ("where", Some(y)) => x.less(y).where_(others[1], others[2]),
        ("matmul", Some(y)) => x.matmul(y, Transpose::None),
        ("concat", _) => x.concat(&others, whole("dim")?),
        ("batched_matmul", Some(y)) => x.batched_matmul(y, Transpose::None),
        ("linear", Some(y)) => x.linear(y, others.get(1).copied(), activation(step["activation"].as_str())?),
        ("layer_norm", Some(y)) => x.layer_norm(Some(y), others.get(1).copied(), float("eps")?),
        ("l1_loss", Some(y)) => x.l1_loss(y, reduction(step)?),
        ("smooth_l1_loss", Some(y)) => x.smooth_l1_loss(y, 1.0, reduction(step)?),
        ("huber_loss", Some(y)) => x.huber_loss(y, 1.0, reduction(step)?),
        ("mse_loss", Some(y)) => x.mse_loss(y, &ones(x, x.shape()[0]), weighted(step)?),
        ("bce_with_logits", Some(y)) => x.bce_with_logits(y, &ones(x, x.n_elements()), weighted(step)?, 1.0),
        ("neg", None) => x.neg(),
        ("abs", None) => x.abs(),
        ("sign", None) => x.sign(),
        ("exp", None) => x.exp(),
        ("log", None) => x.log(),
        ("log1p", None) => x.log1p(),
        ("sqrt", None) => x.sqrt(),
        ("rsqrt", None) => x.rsqrt(),
        ("tanh", None) => x.tanh(),
        ("sigmoid", None) => x.sigmoid(),
        ("relu", None) => x.relu(),
        ("gelu", None) => x.gelu(),
        ("silu", None) => x.silu(),
        ("softplus", None) => x.softplus(),
        ("erf", None) => x.erf(),
        ("sin", None) => x.sin(),
        ("cos", None) => x.cos(),
        ("floor", None) => x.floor(),
        ("square", None) => x.square(),
        ("reciprocal", None) => x.reciprocal(),
        ("clamp", None) => x.clamp(float("min")?, float("max")?),
        ("leaky_relu", None) => x.leaky_relu(float("slope")?),
        ("sum", None) => x.sum(dims()?),
        ("mean", None) => x.mean(dims()?),
        ("max", None) => x.max(dims()?),
        ("min", None) => x.min(dims()?),
        ("norm", None) => x.norm(dims()?),
        ("var", None) => x.var(dims()?, whole("correction")?),
        ("std", None) => x.std(dims()?, whole("correction")?),
        ("expand", None) => x.expand(&expanded(x, &step["shape"])?),
        ("narrow", None) => {
            let start = whole("start")?;
            x.narrow(whole("dim")?, start..start + whole("length")?)
        }
        ("permute", None) => x.permute(&list("dims")?),
        ("reshape", None) => x.reshape(&reshaped(x, &step["shape"])?),
        ("logsumexp", None) => x.logsumexp(dims()?),
        ("flip", None) => x.flip(&list("dims")?[..]),
        ("index_select", None) => {
            let indices: Vec<u32> = list("indices")?.into_iter().map(|index| index as u32).collect();
            x.index_select(whole("dim")?, &indices)
        }
        ("softmax", None) => x.softmax(whole("dim")?),
        ("log_softmax", None) => x.log_softmax(whole("dim")?),
        ("cumsum", None) => x.cumsum(whole("dim")?),
        _ => return Ok(None),
    }))
}

fn activation(name: Option<&str>) -> Result<Activation> {
    Ok(match name {
        Some("identity") => Activation::identity(),
        Some("relu") => Activation::relu(),
        Some("gelu") => Activation::gelu(),
        Some("silu") => Activation::silu(),
        Some("tanh") => Activation::tanh(),
        other => bail!("there is no activation {other:?}"),
    })
}

fn reduction(step: &Value) -> Result<LossReduction> {
    Ok(match step["reduction"].as_str() {
        Some("mean") => LossReduction::Mean,
        Some("sum") => LossReduction::Sum,
        other => bail!("there is no reduction {other:?}"),
    })
}

fn weighted(step: &Value) -> Result<Reduction> {
    Ok(if let LossReduction::Sum = reduction(step)? { Reduction::Sum } else { Reduction::Mean })
}

/// Weights of rows or elements.
fn ones(x: &Tensor, n: usize) -> Tensor {
    x.graph().constant("ones", &vec![1.0; n], &[n])
}

/// The shape that PyTorch's `reshape` gives `x`, where -1 stands for the remaining length.
fn reshaped(x: &Tensor, shape: &Value) -> Result<Vec<usize>> {
    let shape: Vec<i64> = serde_json::from_value(shape.clone())?;
    let given: usize = shape.iter().filter_map(|&length| usize::try_from(length).ok()).product();
    let left = x.n_elements() / given.max(1);
    Ok(shape.iter().map(|&length| usize::try_from(length).unwrap_or(left)).collect())
}

/// The shape that PyTorch's `expand` gives `x`, where -1 stands for the length of `x` in that dimension.
fn expanded(x: &Tensor, shape: &Value) -> Result<Vec<usize>> {
    let shape: Vec<i64> = serde_json::from_value(shape.clone())?;
    let n_new = shape.len().saturating_sub(x.shape().len());
    let own =
        |dim: usize| dim.checked_sub(n_new).and_then(|dim| x.shape().get(dim).copied()).context("expand: -1 for a new dimension");
    shape.iter().enumerate().map(|(dim, &length)| usize::try_from(length).or_else(|_| own(dim))).collect()
}

/// An operation of a tensor and a number.
fn two(op: &str) -> Option<fn(Expr, Expr) -> Expr> {
    Some(match op {
        "add" => |a, b| a + b,
        "sub" => |a, b| a - b,
        "mul" => |a, b| a * b,
        "div" => |a, b| a / b,
        "pow" => |a, b| a.powf(b),
        "maximum" => |a, b| a.max(b),
        "minimum" => |a, b| a.min(b),
        _ => return None,
    })
}
