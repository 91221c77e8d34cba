//! Optimizers over a given path of gradients, and learning-rate schedules.

use anyhow::Result;
use brisk_kernels::{Momentum, WeightDecay};
use brisk_nn::{Adam, Init, Optimizer, Parameters, ParametersBuilder, Schedule, Sgd, StepInputs};
use brisk_program::Device;
use brisk_tensor::{DType, Graph, Persistent};

use crate::case::{Case, Outputs};

pub(crate) fn run(case: &Case, device: &Device) -> Result<Option<Outputs>> {
    if let Some(schedule) = schedule(case)? {
        let n_steps = case.tensor("out.lr")?.floats.len();
        return Ok(Some(vec![("out.lr".to_owned(), schedule.table(0..n_steps))]));
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
    optimizer.record(&graph, &params, &inputs)?;
    graph.advance(&inputs.state)?;
    let step = graph.compile(device)?;
    let mut path = Vec::with_capacity(grads.floats.len());
    for grad in grads.floats.chunks_exact(start.len()) {
        device.write_at(params.grads(), 0, grad)?;
        step.run(1)?;
        path.extend_from_slice(&device.read::<f32>(params.values())?[..start.len()]);
    }
    Ok(Some(vec![("out.params".to_owned(), path)]))
}

/// The optimizer that the case's parameters describe, under the name PyTorch's fixtures have for it.
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

fn schedule(case: &Case) -> Result<Option<Schedule>> {
    Ok(Some(match case.op.as_str() {
        "one_cycle_lr" => Schedule::OneCycle {
            max_lr: case.number("max_lr")?,
            pct_start: case.number("pct_start")?,
            div_factor: case.number("div_factor")?,
            final_div_factor: case.number("final_div_factor")?,
            total_steps: case.number("total_steps")? as usize,
        },
        "cosine_annealing_lr" => Schedule::CosineAnnealing {
            lr: case.number("lr")?,
            t_max: case.number("t_max")? as usize,
            eta_min: case.number("eta_min")?,
        },
        "step_lr" => {
            Schedule::Step { lr: case.number("lr")?, step_size: case.number("step_size")? as usize, gamma: case.number("gamma")? }
        }
        _ => return Ok(None),
    }))
}
