//! Steps in f16 and bf16: the shaders give the same as the twins, and both are close to f32.

use brisk_kernels::Bf16Instructions;
use brisk_nn::{
    Activation, AvgPool2d, BatchNorm, BatchNormConfig, Checkpointed, Conv2d, Conv2dConfig, GlobalAvgPool2d, GradScaler,
    GradScalerConfig, Linear, Module, Parameters, ParametersBuilder, Philox, Sequential, Sgd, StepInputs,
};
use brisk_program::{Device, Persistent};
use brisk_tensor::{CrossEntropyOptions, DType, Error, Graph, Pool2d, PoolDivisor, Precision, Tensor};

use crate::gpu::{cpu, gpu};

const N_IMAGES: usize = 6;

fn model(params: &mut ParametersBuilder) -> Sequential {
    let mut block = |i: usize, n_in: usize, n_out: usize| -> Box<dyn Module> {
        let conv = Conv2dConfig { padding: [1, 1], ..Conv2dConfig::square(n_in, n_out, 3) };
        let norm = BatchNormConfig { activation: Activation::gelu(), ..BatchNormConfig::new(n_out) };
        let modules: Vec<Box<dyn Module>> = vec![
            Box::new(Conv2d::new(params, &format!("{i}.conv"), &conv)),
            Box::new(BatchNorm::new(params, &format!("{i}.norm"), &norm)),
            Box::new(AvgPool2d(Pool2d::square(2), PoolDivisor::Padded)),
        ];
        Box::new(Checkpointed(Sequential(modules)))
    };
    let (first, second) = (block(0, 3, 8), block(1, 8, 12));
    let head = Box::new(Linear::new(params, "head", 12, 5, Activation::identity()));
    Sequential(vec![first, second, Box::new(GlobalAvgPool2d), head])
}

/// The loss, then the gradients, of the second of two steps.
fn second_step(device: &Device, precision: Precision) -> Result<(f32, Vec<f32>), Error> {
    let mut builder = ParametersBuilder::new();
    let model = model(&mut builder);
    let params: Parameters = builder.build(3);
    let config = GradScalerConfig { init_scale: 256.0, enabled: precision == Precision::F16, ..GradScalerConfig::default() };
    let scaler = GradScaler::new(config)?;

    let graph = Graph::training("step");
    let noise: Vec<f32> = (0..N_IMAGES * 8 * 8 * 3).map(|i| Philox::new(1).normal(0, i as u64)).collect();
    let x = graph.constant("x", &noise, &[N_IMAGES, 8, 8, 3]);
    let classes = graph.constant_codes("classes", &[0, 1, 2, 3, 4, 0], &[N_IMAGES]);
    let weights = graph.constant("weights", &[1.0; N_IMAGES], &[N_IMAGES]);
    let bound = params.bind(&graph);
    let loss: Tensor = graph.autocast(precision, || {
        let logits = model.forward(&bound, &x);
        logits.cross_entropy(&classes, &weights, CrossEntropyOptions::default())
    });
    scaler.backward(&loss)?;
    let inputs = StepInputs { lr: Persistent::new("lr", DType::F32, 1), state: Graph::state_buffer() };
    scaler.step(&graph, &Sgd::new(&params), &params, &inputs);
    scaler.update(&graph);
    let losses = Persistent::new("losses", DType::F32, 2);
    graph.store(&loss, &inputs.state, &losses);
    graph.advance(&inputs.state);

    params.write_initial(device)?;
    scaler.write_initial(device)?;
    device.write(&inputs.lr, &[0.5_f32])?;
    graph.compile(device)?.run(2)?;
    assert_eq!(scaler.report(device)?.n_skipped, 0, "nothing overflows in {precision}");
    Ok((device.read::<f32>(&losses)?[1], device.read(params.grads())?))
}

/// The norm of the difference of `found` and `expected`, divided by the norm of the latter.
fn difference(found: &[f32], expected: &[f32]) -> f64 {
    let norm = |values: &[f64]| values.iter().map(|value| value * value).sum::<f64>().sqrt();
    let apart: Vec<f64> = found.iter().zip(expected).map(|(a, b)| f64::from(*a) - f64::from(*b)).collect();
    norm(&apart) / norm(&expected.iter().map(|&value| f64::from(value)).collect::<Vec<_>>())
}

#[track_caller]
fn check_close(found: &(f32, Vec<f32>), expected: &(f32, Vec<f32>), tolerance: f64, what: &str) {
    let off = f64::from((found.0 - expected.0).abs() / expected.0);
    assert!(off <= tolerance, "{what}: the loss is {}, expected {}", found.0, expected.0);
    let off = difference(&found.1, &expected.1);
    assert!(off <= tolerance, "{what}: the gradients are {off} of their norm off");
}

#[test]
fn halves_give_what_f32_gives() -> Result<(), Error> {
    let device = cpu(2);
    let single = second_step(&device, Precision::F32)?;
    for (precision, tolerance) in [(Precision::F16, 0.01), (Precision::Bf16, 0.06)] {
        let found = second_step(&device, precision)?;
        assert_ne!(found.1, single.1, "{precision} is rounded");
        check_close(&found, &single, tolerance, &precision.to_string());
    }
    Ok(())
}

#[test]
fn the_shaders_give_what_the_twins_give() -> Result<(), Error> {
    let Some(gpu) = gpu() else { return Ok(()) };
    for (precision, tolerance) in [(Precision::F32, 1e-4), (Precision::F16, 0.01), (Precision::Bf16, 0.06)] {
        let (expected, found) = (second_step(&cpu(2), precision)?, second_step(&gpu, precision)?);
        check_close(&found, &expected, tolerance, &format!("{precision} on {}", gpu.info()));
    }
    Ok(())
}

#[test]
fn what_a_device_has_of_a_precision_is_said() {
    let said = |device: &Device| Precision::ALL.map(|precision| precision.resolved(device).to_string());
    let expected = [
        "stored in f32, computed in f32",
        "stored in f16, computed in f32, converted by bits",
        "stored in bf16, computed in f32, converted by bits",
    ];
    let instructions = Bf16Instructions::detect();
    let by = instructions.map_or(String::new(), |instructions| format!(", products by {instructions}"));
    let of_f16 = if instructions == Some(Bf16Instructions::Amx) { ", large products by AMX" } else { "" };
    assert_eq!(said(&cpu(1)), [expected[0], &format!("{}{of_f16}", expected[1]), &format!("{}{by}", expected[2])]);
    let Some(gpu) = gpu() else { return };
    let has_f16 = gpu.adapter().is_some_and(|adapter| adapter.features.contains(brisk_kernels::wgpu::Features::SHADER_F16));
    let found = said(&gpu);
    assert_eq!(found[0], expected[0], "{}", gpu.info());
    assert_eq!(found[1].contains("by instructions"), has_f16, "{} on {}", found[1], gpu.info());
    assert_eq!(found[2], expected[2], "{}", gpu.info());
}

#[test]
fn bits_are_the_same_on_any_number_of_threads() -> Result<(), Error> {
    for precision in Precision::ALL {
        let bits = |n_threads| -> Result<Vec<u32>, Error> {
            let (loss, grads) = second_step(&cpu(n_threads), precision)?;
            Ok(grads.iter().chain([&loss]).map(|value| value.to_bits()).collect())
        };
        assert_eq!(bits(1)?, bits(3)?, "{precision}");
    }
    Ok(())
}
