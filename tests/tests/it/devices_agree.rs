//! Training with shaders gives the same as training with twins.

use brisk_nn::{
    AdamConfig, CombinedOptimizer, Init, Momentum, Muon, MuonNorm, NAdamConfig, Optimizer, OptimizerConfig, ParameterGroup,
    Parameters, ParametersBuilder, Philox, RmsPropConfig, Sgd, SgdConfig, StepInputs,
};
use brisk_program::{Device, Persistent};
use brisk_tensor::{DType, Graph};
use brisk_train::{Error, TrainerConfig};

use crate::gpu::{cpu, gpu};
use crate::run::{Setting, history};

#[test]
fn loss_curves_and_auc_are_those_of_the_cpu() -> Result<(), Error> {
    let Some(gpu) = gpu() else { return Ok(()) };
    let default = Setting::default();
    // Small, since software adapters are slow.
    let setting = Setting { n_rows: 600, config: TrainerConfig { max_epochs: 2, ..default.config.clone() }, ..default };
    let (expected, values) = setting.ready().fit(&cpu(2))?;
    let (found, gpu_values) = setting.ready().fit(&gpu)?;
    assert_eq!(found.history.len(), expected.history.len(), "as many epochs");
    for (epoch, (found, expected)) in history(&found).iter().zip(&history(&expected)).enumerate() {
        let off = (found.0 - expected.0).abs() / expected.0;
        assert!(off <= 1e-3, "epoch {epoch}: the loss is {} and {} on the cpu", found.0, expected.0);
        assert!((found.1 - expected.1).abs() <= 2e-3, "epoch {epoch}: the AUC is {} and {} on the cpu", found.1, expected.1);
    }
    let furthest = gpu_values.iter().zip(&values).fold(0.0_f32, |furthest, (a, b)| furthest.max((a - b).abs()));
    // Adam's steps have the size of the rate, whatever the gradient: if a gradient is only rounding error, its sign may differ.
    assert!(furthest <= 20.0 * 3e-3, "a parameter is {furthest} away from the cpu's");
    Ok(())
}

/// Three steps.
fn three_steps(device: &Device, params: &Parameters, optimizer: &dyn Optimizer) -> Result<Vec<f32>, brisk_nn::Error> {
    let inputs = StepInputs { lr: Persistent::new("lr", DType::F32, 1), state: Graph::state_buffer() };
    let graph = Graph::inference("step");
    optimizer.record(&graph, params, &inputs);
    graph.advance(&inputs.state);
    let executable = graph.compile(device)?;
    params.write_initial(device)?;
    device.write(&inputs.lr, &[0.1_f32])?;
    for step in 0..3 {
        let grads: Vec<f32> = (0..params.len() as u64).map(|i| Philox::new(7).normal(step, i)).collect();
        device.write(params.grads(), &grads)?;
        executable.run(1)?;
    }
    Ok(device.read(params.values())?)
}

/// Muon with batched and single matrices, wide and high ones, together with gradient descent in groups.
#[test]
fn optimizers_of_groups_and_matrices_step_as_on_the_cpu() -> Result<(), brisk_nn::Error> {
    let Some(gpu) = gpu() else { return Ok(()) };
    let mut builder = ParametersBuilder::new();
    for (i, shape) in [&[24, 40][..], &[24, 40], &[40], &[24, 40], &[40, 24], &[33, 3, 3, 5], &[300], &[9]].iter().enumerate() {
        builder.add(format!("p{i}"), shape, Init::FanIn(30));
    }
    let params = builder.build(1);
    let matrices = params.ids_where(|entry| entry.shape.len() > 1);
    let [slow, fast] = [40, 300].map(|len| ParameterGroup::new(params.ids_where(|entry| entry.shape == [len])));
    for norm in [MuonNorm::Free, MuonNorm::SqrtRows] {
        let muon = Muon::new(&params, &matrices)?.norm(norm);
        let sgd = Sgd::new(&params).weight_decay(0.1).groups(&params, &[slow.clone().lr_factor(0.5), fast.clone()])?;
        let optimizer = CombinedOptimizer::new().and(muon).and(sgd);
        check(&gpu, &params, &optimizer)?;
    }
    Ok(())
}

#[test]
fn rules_of_optimizers_step_as_on_the_cpu() -> Result<(), brisk_nn::Error> {
    let Some(gpu) = gpu() else { return Ok(()) };
    let adam = AdamConfig { amsgrad: true, ..AdamConfig::default() };
    for config in [
        OptimizerConfig::Adam(adam),
        OptimizerConfig::AdamW(adam),
        OptimizerConfig::NAdam(NAdamConfig::default()),
        OptimizerConfig::RmsProp(RmsPropConfig { momentum: 0.9, centered: true, ..RmsPropConfig::default() }),
        OptimizerConfig::Sgd(SgdConfig { momentum: 0.9, form: Momentum::Heavy, weight_decay: 0.1, dampening: 0.5 }),
    ] {
        let mut builder = ParametersBuilder::new();
        builder.add("p", &[300], Init::FanIn(30));
        let params = builder.build(1);
        check(&gpu, &params, &*config.build(&params)?)?;
    }
    Ok(())
}

fn check(gpu: &Device, params: &Parameters, optimizer: &dyn Optimizer) -> Result<(), brisk_nn::Error> {
    let (expected, found) = (three_steps(&cpu(2), params, optimizer)?, three_steps(gpu, params, optimizer)?);
    let furthest = found.iter().zip(&expected).fold(0.0_f32, |furthest, (a, b)| furthest.max((a - b).abs()));
    assert!(furthest <= 2e-5, "{optimizer:?}: a parameter is {furthest} away from the cpu's");
    Ok(())
}
