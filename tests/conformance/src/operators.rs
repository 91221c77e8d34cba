//! Operators with a backward pass: each is recorded once and executed once, and its result and gradients are read.

use anyhow::Result;
use brisk_program::Device;
use brisk_tensor::{
    Activation, BatchNormOptions, Conv2dOptions, CrossEntropyOptions, DType, Graph, Persistent, Pool2d, PoolDivisor, Reduction,
    Statistics, Tensor, Transpose,
};

use crate::case::{Case, Outputs};
use crate::form::Form;

pub(crate) fn run(case: &Case, device: &Device, form: Form) -> Result<Option<Outputs>> {
    let mut bench = Workbench::new(case, device, form);
    let graph = bench.graph.clone();
    // There is no result for an unknown operator.
    let y = graph.autocast(form.autocast(), || result(case, &mut bench))?;
    y.map(|y| bench.finish(&y)).transpose()
}

/// The operator's result; `None` if it is not known.
fn result(case: &Case, bench: &mut Workbench<'_>) -> Result<Option<Tensor>> {
    Ok(Some(match case.op.as_str() {
        "matmul" => {
            let transpose = Transpose::of(case.flag("transpose_a"), case.flag("transpose_b"));
            bench.input("a")?.matmul(&bench.input("b")?, transpose)
        }
        "linear" => {
            let bias = if case.flag("bias") { Some(bench.input("bias")?) } else { None };
            let activation = activation(case.word("activation")?, case)?;
            match activation {
                Some(activation) => bench.input("x")?.linear(&bench.input("weight")?, bias.as_ref(), activation),
                None => return Ok(None),
            }
        }
        "conv2d" => {
            let bias = if case.flag("bias") { Some(bench.input("bias")?) } else { None };
            let (stride, padding) = (case.pair("stride", None)?, case.pair("padding", None)?);
            let (dilation, n_groups) = (case.pair("dilation", Some(1))?, case.params["groups"].as_u64().unwrap_or(1) as usize);
            let (x, weight) = (bench.input("x")?, bench.input("weight")?);
            let activation = Activation::identity();
            x.conv2d_with(&weight, bias.as_ref(), &Conv2dOptions { stride, padding, dilation, n_groups, activation })
        }
        "embedding" => {
            let (weight, index) = (bench.input("weight")?, bench.codes("index")?);
            weight.embedding(&index, 0, None)
        }
        "softmax" => along_last(&bench.input("x")?, Tensor::softmax),
        "log_softmax" => along_last(&bench.input("x")?, Tensor::log_softmax),
        "batch_norm" => {
            let (x, weight, bias) = (bench.input("x")?, bench.input("weight")?, bench.input("bias")?);
            let (running_mean, running_var) = (&bench.running("running_mean")?, &bench.running("running_var")?);
            let statistics = match case.flag("training") {
                true => {
                    Statistics::Batch { n_groups: case.number("groups")? as usize, momentum: case.number("momentum")? as f32 }
                }
                false => Statistics::Running,
            };
            let (eps, activation) = (case.number("eps")? as f32, Activation::identity());
            let (weight, bias) = (Some(&weight), Some(&bias));
            x.batch_norm(&BatchNormOptions { weight, bias, running_mean, running_var, statistics, eps, activation })
        }
        "max_pool2d" => bench.input("x")?.max_pool2d(&pool(case)?),
        "avg_pool2d" => bench.input("x")?.avg_pool2d(&pool(case)?, PoolDivisor::Padded),
        "global_max_pool2d" => bench.input("x")?.global_max_pool2d(),
        "global_avg_pool2d" => bench.input("x")?.global_avg_pool2d(),
        "binary_cross_entropy_with_logits" => {
            let x = bench.input("x")?;
            let ones = bench.graph.constant("ones", &vec![1.0; x.n_elements()], &[x.n_elements()]);
            let pos_weight = case.number("pos_weight")? as f32;
            x.bce_with_logits(&bench.input("target")?, &ones, reduction(case)?, pos_weight)
        }
        "layer_norm" => {
            let (weight, bias) = (bench.input("weight")?, bench.input("bias")?);
            bench.input("x")?.layer_norm(Some(&weight), Some(&bias), case.number("eps")? as f32)
        }
        "rms_norm" => bench.input("x")?.rms_norm(Some(&bench.input("weight")?), case.number("eps")? as f32),
        "group_norm" => {
            let (weight, bias, n_groups) = (bench.input("weight")?, bench.input("bias")?, case.number("groups")? as usize);
            bench.input("x")?.group_norm(n_groups, Some(&weight), Some(&bias), case.number("eps")? as f32)
        }
        "cross_entropy" => {
            let x = bench.input("x")?;
            let ones = bench.graph.constant("ones", &vec![1.0; x.shape()[0]], &[x.shape()[0]]);
            let label_smoothing = case.number("label_smoothing")? as f32;
            let options = CrossEntropyOptions { reduction: reduction(case)?, label_smoothing, ..Default::default() };
            x.cross_entropy(&bench.codes("target")?, &ones, options)
        }
        "mse_loss" => {
            let x = bench.input("x")?;
            let ones = bench.graph.constant("ones", &vec![1.0; x.shape()[0]], &[x.shape()[0]]);
            x.mse_loss(&bench.input("target")?, &ones, reduction(case)?)
        }
        name => match activation(name, case)? {
            Some(activation) => bench.input("x")?.activate(activation),
            None => return Ok(None),
        },
    }))
}

/// An operation along the last dimension.
fn along_last(x: &Tensor, of: fn(&Tensor, usize) -> Tensor) -> Tensor {
    of(x, x.shape().len() - 1)
}

fn activation(name: &str, case: &Case) -> Result<Option<Activation>> {
    Ok(Some(match name {
        "identity" => Activation::identity(),
        "relu" => Activation::relu(),
        "celu" => Activation::celu(case.number("alpha")? as f32),
        "gelu" => Activation::gelu(),
        "gelu_tanh" => Activation::gelu_tanh(),
        "silu" => Activation::silu(),
        "sigmoid" => Activation::sigmoid(),
        "tanh" => Activation::tanh(),
        _ => return Ok(None),
    }))
}

fn pool(case: &Case) -> Result<Pool2d> {
    let stride = [case.number("stride")? as usize; 2];
    Ok(Pool2d { stride, ..Pool2d::square(case.number("kernel")? as usize) })
}

fn reduction(case: &Case) -> Result<Reduction> {
    Ok(if case.word("reduction")? == "sum" { Reduction::Sum } else { Reduction::Mean })
}

/// A graph whose inputs are the case's.
pub(crate) struct Workbench<'a> {
    case: &'a Case,
    device: &'a Device,
    form: Form,
    pub(crate) graph: Graph,
    /// A value that is read when the program has been executed, by its name in the fixture.
    results: Vec<(String, Persistent)>,
}

impl<'a> Workbench<'a> {
    pub(crate) fn new(case: &'a Case, device: &'a Device, form: Form) -> Self {
        Self { case, device, form, graph: Graph::training(case.op.clone()), results: Vec::new() }
    }

    /// `in.NAME`, which requires a gradient if the case has one for it. `x`, which in a network is the output of another layer,
    /// is stored in the precision; parameters are not.
    pub(crate) fn input(&mut self, name: &str) -> Result<Tensor> {
        let values = self.case.tensor(&format!("in.{name}"))?;
        let n = values.floats.len();
        let persistent = Persistent::new(name, DType::F32, n);
        self.device.write(&persistent, &values.floats)?;
        let tensor = if self.case.has(&format!("grad.{name}")) {
            let grads = Persistent::new(format!("{name}.grad"), DType::F32, n);
            self.results.push((format!("grad.{name}"), grads.clone()));
            self.graph.parameter(&persistent, &grads, 0..n, &values.shape)
        } else {
            self.graph.tensor(&persistent, &values.shape)
        };
        let is_operand = matches!((self.case.op.as_str(), name), (_, "x") | ("matmul", _) | ("linear" | "conv2d", "weight"));
        let tensor = if is_operand { self.form.operand(&tensor) } else { tensor };
        Ok(if name == "x" { tensor.cast(self.form.autocast().dtype()) } else { tensor })
    }

    /// `in.NAME`, which the operator changes: it is read back as `out.NAME`.
    fn running(&mut self, name: &str) -> Result<Tensor> {
        let values = self.case.tensor(&format!("in.{name}"))?;
        let persistent = Persistent::new(name, DType::F32, values.floats.len());
        self.device.write(&persistent, &values.floats)?;
        self.results.push((format!("out.{name}"), persistent.clone()));
        Ok(self.graph.tensor(&persistent, &values.shape))
    }

    /// `in.NAME` as whole numbers.
    fn codes(&self, name: &str) -> Result<Tensor> {
        let values = self.case.tensor(&format!("in.{name}"))?;
        let codes: Vec<u32> = values.floats.iter().map(|&code| code as u32).collect();
        let persistent = Persistent::new(name, DType::U32, codes.len());
        self.device.write(&persistent, &codes)?;
        Ok(self.graph.tensor(&persistent, &values.shape))
    }

    pub(crate) fn finish(self, y: &Tensor) -> Result<Outputs> {
        let y = &y.cast(DType::F32);
        let (state, result) = (Graph::state_buffer(), Persistent::new("y", DType::F32, y.n_elements()));
        self.graph.store(y, &state, &result);
        // Without a gradient of the output, the case is only for the forward pass.
        if self.case.has("grad_out.y") {
            let dy = self.graph.constant("dy", &self.case.tensor("grad_out.y")?.floats, y.shape());
            // Where the result is stored in the precision, so is its gradient.
            let is_full = matches!(self.case.op.as_str(), "softmax" | "log_softmax" | "layer_norm" | "rms_norm" | "group_norm");
            self.graph.backward_from(y, &if is_full { dy } else { self.form.operand(&dy) })?;
        }
        self.graph.compile(self.device)?.run(1)?;
        let mut outputs = vec![("out.y".to_owned(), self.device.read(&result)?)];
        for (name, persistent) in self.results {
            outputs.push((name, self.device.read(&persistent)?));
        }
        Ok(outputs)
    }
}
