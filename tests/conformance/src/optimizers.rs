//! Optimizers over a given sequence of gradients, and learning-rate schedules.

use anyhow::Result;
use brisk_kernels::{SCALER_LEN, Unscale, UpdateScale};
use brisk_nn::{
    Adam, GradScaler, GradScalerConfig, Init, Momentum, Optimizer, Parameters, ParametersBuilder, Schedule, Sgd, StepInputs,
    Steps, WeightDecay,
};
use brisk_program::{Device, Program};
use brisk_tensor::{DType, Graph, Persistent, Precision};

use crate::case::{Case, Outputs};
use crate::form::Form;

pub(crate) fn run(case: &Case, device: &Device, _: Form) -> Result<Option<Outputs>> {
    if let Some(schedule) = schedule(case)? {
        let n_steps = case.tensor("out.lr")?.floats.len();
        return Ok(Some(vec![("out.lr".to_owned(), schedule.table(0..n_steps, n_steps))]));
    }
    match case.op.as_str() {
        "clip_grad_norm" => return clip_grad_norm(case, device).map(Some),
        "grad_scaler" => return grad_scaler(case, device).map(Some),
        _ => {}
    }
    if !matches!(case.op.as_str(), "sgd" | "sgd_nesterov" | "adam" | "adamw") {
        return Ok(None);
    }
    let start = &case.tensor("in.param")?.floats;
    let grads = case.tensor("in.grads")?;
    let mut builder = ParametersBuilder::new();
    let id = builder.add("param", &[start.len()], Init::Constant(0.0));
    let mut params = builder.build(0);
    params.set_initial(id, start)?;
    params.write_initial(device)?;
    let optimizer = make(case, case.op.as_str(), &params)?;
    let inputs = StepInputs { lr: Persistent::new("lr", DType::F32, 1), state: Graph::state_buffer() };
    device.write(&inputs.lr, &[case.number("lr")? as f32])?;
    let graph = Graph::training("optimizer");
    optimizer.record(&graph, &params, &inputs);
    graph.advance(&inputs.state);
    let step = graph.compile(device)?;
    let mut path = Vec::with_capacity(grads.floats.len());
    for grad in grads.floats.chunks_exact(start.len()) {
        device.write_at(params.grads(), 0, grad)?;
        step.run(1)?;
        path.extend_from_slice(&device.read::<f32>(params.values())?[..start.len()]);
    }
    Ok(Some(vec![("out.params".to_owned(), path)]))
}

/// The optimizer that the case's parameters describe, by its name in PyTorch's fixtures.
pub(crate) fn make(case: &Case, name: &str, params: &Parameters) -> Result<Box<dyn Optimizer>> {
    let decay = case.number("weight_decay").unwrap_or(0.0) as f32;
    let beta = |i: usize, default: f64| case.params["betas"][i].as_f64().unwrap_or(default) as f32;
    let adam = || Adam::new(params).betas(beta(0, 0.9), beta(1, 0.999)).eps(case.number("eps").unwrap_or(1e-8) as f32);
    Ok(match name {
        "adam" => Box::new(adam().weight_decay(WeightDecay::Gradient(decay))),
        "adamw" => Box::new(adam().weight_decay(WeightDecay::Decoupled(decay))),
        _ => {
            let form = if case.flag("nesterov") { Momentum::Nesterov } else { Momentum::Heavy };
            Box::new(Sgd::new(params).momentum(case.number("momentum")? as f32, form).weight_decay(decay))
        }
    })
}

/// Keeps small gradients in the range of f16, with a scale for which those of the cases fit: no step is skipped.
pub(crate) fn scaler(form: Form) -> Result<GradScaler> {
    let enabled = matches!(form, Form::Stored(Precision::F16) | Form::Rounded(Precision::F16));
    Ok(GradScaler::new(GradScalerConfig { init_scale: 1024.0, enabled, ..GradScalerConfig::default() })?)
}

/// The gradients of several tensors, clipped together, and their norm before.
fn clip_grad_norm(case: &Case, device: &Device) -> Result<Outputs> {
    let mut builder = ParametersBuilder::new();
    let mut parts = Vec::new();
    while case.has(&format!("in.{}", parts.len())) {
        let part = case.tensor(&format!("in.{}", parts.len()))?;
        builder.add(format!("{}", parts.len()), &part.shape, Init::Constant(0.0));
        parts.push(part);
    }
    let params = builder.build(0);
    for (entry, part) in params.entries().iter().zip(parts) {
        device.write_at(params.grads(), entry.range.start, &part.floats)?;
    }
    let graph = Graph::training("clip");
    let norm = params.clip_grad_norm(&graph, case.number("max_norm")? as f32);
    let stored = Persistent::new("norm", DType::F32, 1);
    graph.store(&norm, &Graph::state_buffer(), &stored);
    graph.compile(device)?.run(1)?;
    let grads: Vec<f32> = device.read(params.grads())?;
    let part = |entry: &brisk_nn::Entry| (format!("out.{}", entry.name), grads[entry.range.clone()].to_vec());
    let mut outputs: Outputs = params.entries().iter().map(part).collect();
    outputs.push(("out.norm".to_owned(), device.read(&stored)?));
    Ok(outputs)
}

/// The loss scale after each step, given the steps whose gradients are not finite.
fn grad_scaler(case: &Case, device: &Device) -> Result<Outputs> {
    let kernel = UpdateScale {
        growth_factor: case.number("growth_factor")?,
        backoff_factor: case.number("backoff_factor")?,
        growth_interval: case.number("growth_interval")? as u32,
    };
    let (grad, scale) = (Persistent::new("grad", DType::F32, 1), Persistent::new("scale", DType::F32, 1));
    let (scaler, state) = (Persistent::new("scaler", DType::U32, SCALER_LEN), Graph::state_buffer());
    let mut program = Program::new("grad_scaler");
    let [grad_, scale_, scaler_, state_] = [&grad, &scale, &scaler, &state].map(|buffer| program.persistent(buffer));
    program.push(Unscale { n: 1 }, &[scale_, grad_, scaler_, state_])?;
    program.push(kernel, &[scale_, scaler_])?;
    let step = device.compile(&program)?;
    device.write(&scale, &[case.number("init_scale")? as f32])?;
    let mut scales = Vec::new();
    for &found in &case.tensor("in.found_inf")?.floats {
        device.write(&grad, &[if found > 0.0 { f32::INFINITY } else { 1.0 }])?;
        step.run(1)?;
        scales.push(device.read::<f32>(&scale)?[0]);
    }
    Ok(vec![("out.scale".to_owned(), scales)])
}

fn schedule(case: &Case) -> Result<Option<Schedule>> {
    Ok(Some(match case.op.as_str() {
        "one_cycle_lr" => Schedule::OneCycle {
            max_lr: case.number("max_lr")?,
            pct_start: case.number("pct_start")?,
            div_factor: case.number("div_factor")?,
            final_div_factor: case.number("final_div_factor")?,
            total_steps: Steps::Count(case.number("total_steps")? as usize),
        },
        "cosine_annealing_lr" => Schedule::CosineAnnealing {
            lr: case.number("lr")?,
            t_max: Steps::Count(case.number("t_max")? as usize),
            eta_min: case.number("eta_min")?,
        },
        "step_lr" => Schedule::step(case.number("lr")?, case.number("step_size")? as usize, case.number("gamma")?),
        _ => return Ok(None),
    }))
}
