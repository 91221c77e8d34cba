//! Schedule-free and cautious AdamW and RMSprop compared with plain loops in f64; RMSprop, NAdam, AMSGrad and dampening with
//! PyTorch.

use brisk_nn::tensor::program::Device;
use brisk_nn::tensor::{DType, Graph, Persistent};
use brisk_nn::{
    AdamConfig, CautiousAdamW, Error, Init, Momentum, NAdam, NAdamConfig, Optimizer, OptimizerConfig, ParameterGroup, Parameters,
    ParametersBuilder, RmsProp, RmsPropConfig, ScheduleFreeAdamW, Sgd, SgdConfig, StepInputs,
};

/// Learning rates; the first batches are a warm-up.
const RATES: [f32; 4] = [0.0, 0.05, 0.1, 0.2];
const N: usize = 70;

fn parameters() -> Parameters {
    let mut builder = ParametersBuilder::new();
    builder.add("p", &[N], Init::Constant(1.0));
    builder.add("q", &[3], Init::Constant(-0.5));
    builder.build(0)
}

/// The gradient of element `i` in step `step`.
fn gradient(step: usize, i: usize) -> f32 {
    ((i * i * 37 + i * step * 11 + step * 53 + 7) % 101) as f32 / 50.0 - 0.9
}

/// Runs `n_steps` steps. In step 5, the run's state says to skip.
fn run(optimizer: &dyn Optimizer, params: &Parameters, device: &Device, n_steps: usize) -> Result<(), Error> {
    let inputs = StepInputs { lr: Persistent::new("lr", DType::F32, RATES.len()), state: Graph::state_buffer() };
    let graph = Graph::inference("step");
    optimizer.record(&graph, params, &inputs);
    graph.advance(&inputs.state);
    let executable = graph.compile(device)?;
    params.write_initial(device)?;
    device.write(&inputs.lr, &RATES)?;
    for step in 0..n_steps {
        for entry in params.entries() {
            let grads: Vec<f32> = entry.range.clone().map(|i| gradient(step, i)).collect();
            device.write_at(params.grads(), entry.range.start, &grads)?;
        }
        if step == 5 {
            device.write_at(&inputs.state, 2, &[1_u32])?;
        }
        executable.run(1)?;
    }
    Ok(())
}

#[track_caller]
fn assert_close(name: &str, found: &[f32], expected: &[f64]) {
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!((f64::from(*found) - expected).abs() <= 2e-5, "{name}[{i}] is {found}, expected {expected}");
    }
}

/// The steps that are not skipped, with the number of each among them, from 1, and its rate.
fn steps(n_steps: usize) -> impl Iterator<Item = (usize, i32, f64)> {
    let taken = (0..n_steps).filter(|&step| step != 5);
    taken.zip(1..).map(|(step, t)| (step, t, f64::from(RATES[step.min(RATES.len() - 1)])))
}

#[test]
fn schedule_free_adamw_is_algorithm_1_of_the_paper() -> Result<(), Error> {
    let (params, device) = (parameters(), Device::cpu()?);
    let optimizer = ScheduleFreeAdamW::new(&params).betas(0.8, 0.95).eps(1e-6).weight_decay(0.1);
    run(&optimizer, &params, &device, 20)?;
    let graph = Graph::inference("average");
    let averaged = optimizer.record_averaged(&graph, &params).expect("it averages");
    graph.compile(&device)?.run(1)?;
    let (y, x): (Vec<f32>, Vec<f32>) = (device.read(params.values())?, device.read(averaged.values())?);
    for entry in params.entries() {
        let (mut expected_x, mut expected_y) = (Vec::new(), Vec::new());
        for i in entry.range.clone() {
            let start = if entry.name == "p" { 1.0 } else { -0.5 };
            let (mut x, mut z, mut v, mut sum, mut y) = (start, start, 0.0, 0.0, start);
            for (step, t, lr) in steps(20) {
                let g = f64::from(gradient(step, i));
                v = 0.95 * v + 0.05 * g * g;
                let gamma: f64 = lr * (1.0 - 0.95_f64.powi(t)).sqrt();
                z -= gamma * g / (v.sqrt() + 1e-6) + gamma * 0.1 * y;
                sum += gamma * gamma;
                let c = if sum > 0.0 { gamma * gamma / sum } else { 0.0 };
                x = (1.0 - c) * x + c * z;
                y = 0.2 * z + 0.8 * x;
            }
            expected_x.push(x);
            expected_y.push(y);
        }
        assert_close("y", &y[entry.range.clone()], &expected_y);
        assert_close("x", &x[entry.range.clone()], &expected_x);
    }
    Ok(())
}

#[test]
fn before_its_first_step_the_average_is_the_parameters() -> Result<(), Error> {
    let (params, device) = (parameters(), Device::cpu()?);
    let optimizer = ScheduleFreeAdamW::new(&params);
    params.write_initial(&device)?;
    let graph = Graph::inference("average");
    let averaged = optimizer.record_averaged(&graph, &params).expect("it averages");
    graph.compile(&device)?.run(1)?;
    assert_eq!(device.read::<f32>(averaged.values())?, device.read::<f32>(params.values())?);
    Ok(())
}

#[test]
fn cautious_adamw_moves_what_momentum_and_gradient_agree_on() -> Result<(), Error> {
    let (params, device) = (parameters(), Device::cpu()?);
    // Half the rate for `q`, and no decay.
    let [p, q] = ["p", "q"].map(|name| ParameterGroup::new(params.ids_where(|entry| entry.name == name)));
    let groups = [p, q.lr_factor(0.5).weight_decay(0.0)];
    let optimizer = CautiousAdamW::new(&params).betas(0.7, 0.95).eps(1e-6).weight_decay(0.1).groups(&params, &groups)?;
    run(&optimizer, &params, &device, 20)?;
    let found: Vec<f32> = device.read(params.values())?;
    for entry in params.entries() {
        let (start, factor, decay) = if entry.name == "p" { (1.0, 1.0, 0.1) } else { (-0.5, 0.5, 0.0) };
        let n = entry.range.len();
        let (mut w, mut m, mut v) = (vec![start; n], vec![0.0; n], vec![0.0; n]);
        for (step, t, lr) in steps(20) {
            let grads: Vec<f64> = entry.range.clone().map(|i| f64::from(gradient(step, i))).collect();
            for (i, g) in grads.iter().enumerate() {
                m[i] = 0.7 * m[i] + 0.3 * g;
                v[i] = 0.95 * v[i] + 0.05 * g * g;
            }
            let mean = (0..n).filter(|&i| m[i] * grads[i] > 0.0).count() as f64 / n as f64;
            for i in 0..n {
                let lr = factor * lr;
                w[i] -= lr * decay * w[i];
                if m[i] * grads[i] > 0.0 {
                    let (m_hat, v_hat): (f64, f64) = (m[i] / (1.0 - 0.7_f64.powi(t)), v[i] / (1.0 - 0.95_f64.powi(t)));
                    w[i] -= lr / mean.max(1e-3) * m_hat / (v_hat.sqrt() + 1e-6);
                }
            }
        }
        assert_close(&entry.name, &found[entry.range.clone()], &w);
    }
    Ok(())
}

/// The first elements are those that `torch.optim.RMSprop` of PyTorch 2.15 has after the same steps.
#[test]
fn rms_prop_is_that_of_pytorch() -> Result<(), Error> {
    let device = Device::cpu()?;
    let of_pytorch: [(bool, [f64; 4]); 2] = [
        (false, [2.088_427_3, -0.875_583, -0.306_109_6, 2.612_88]),
        (true, [2.187_969_7, -0.923_160_8, -0.364_425_33, 2.887_705_3]),
    ];
    for (centered, first) in of_pytorch {
        let params = parameters();
        let config = RmsPropConfig { alpha: 0.9, eps: 1e-3, momentum: 0.8, weight_decay: 0.1, centered };
        run(&*OptimizerConfig::RmsProp(config).build(&params)?, &params, &device, 8)?;
        let found = device.read::<f32>(params.values())?;
        assert_close("p", &found[..4], &first);
        for (entry, start) in params.entries().iter().zip([1.0, -0.5]) {
            let expected = entry.range.clone().map(|i| {
                let (mut p, mut v, mut m, mut u): (f64, f64, f64, f64) = (start, 0.0, 0.0, 0.0);
                for (step, _, rate) in steps(8) {
                    let g = f64::from(gradient(step, i)) + 0.1 * p;
                    (v, m) = (0.9 * v + 0.1 * g * g, if centered { 0.9 * m + 0.1 * g } else { 0.0 });
                    u = 0.8 * u + g / ((v - m * m).sqrt() + 1e-3);
                    p -= rate * u;
                }
                p
            });
            assert_close(&entry.name, &found[entry.range.clone()], &expected.collect::<Vec<_>>());
        }
    }
    Ok(())
}

/// The first elements are those of `torch.optim` of PyTorch 2.15 after the same steps.
#[test]
fn further_optimizers_are_those_of_pytorch() -> Result<(), Error> {
    let device = Device::cpu()?;
    let nadam = NAdamConfig { betas: [0.8, 0.95], eps: 1e-3, momentum_decay: 0.1, weight_decay: 0.1, ..NAdamConfig::default() };
    let decoupled = NAdamConfig { momentum_decay: 0.004, decoupled_weight_decay: true, ..nadam };
    let amsgrad = AdamConfig { betas: [0.8, 0.9], eps: 1e-3, weight_decay: Some(0.1), amsgrad: true };
    let sgd = |momentum| OptimizerConfig::Sgd(SgdConfig { momentum, form: Momentum::Heavy, weight_decay: 0.1, dampening: 0.3 });
    let of_pytorch: [(OptimizerConfig, [f64; 4]); 7] = [
        (OptimizerConfig::NAdam(nadam), [-0.096_270_46, 0.091_411_69, -0.378_081_49, 0.089_173_09]),
        (OptimizerConfig::NAdam(decoupled), [0.015_489_92, 0.166_713_15, -0.345_444_83, 0.161_200_25]),
        (OptimizerConfig::NAdam(NAdamConfig::default()), [0.386_516_25, 0.448_847_63, -0.088_404_7, 0.496_121_76]),
        (OptimizerConfig::Adam(amsgrad), [0.129_564_76, 0.128_358_43, -0.300_458_84, 0.291_802_39]),
        (OptimizerConfig::AdamW(amsgrad), [0.301_469_83, 0.269_018_14, -0.187_392_86, 0.426_291_83]),
        (sgd(0.8), [-0.896_713_64, -0.555_763_03, -1.474_358_62, -0.492_585_91]),
        (sgd(0.0), [0.214_845_1, 0.292_054_66, -0.089_286_31, 0.178_364_31]),
    ];
    for (config, expected) in of_pytorch {
        let params = parameters();
        run(&*config.build(&params)?, &params, &device, 20)?;
        assert_close(&format!("{config:?}: p"), &device.read::<f32>(params.values())?[..4], &expected);
    }
    Ok(())
}

#[test]
fn settings_that_make_no_sense_are_refused() -> Result<(), Error> {
    let (params, device) = (parameters(), Device::cpu()?);
    let optimizers: [(Box<dyn Optimizer>, &str); 5] = [
        (Box::new(ScheduleFreeAdamW::new(&params).betas(0.0, 0.9)), "schedule_free: beta1 = 0"),
        (Box::new(CautiousAdamW::new(&params).weight_decay(-0.1)), "cautious_adamw: weight_decay = -0.1"),
        (Box::new(RmsProp::centered(&params).momentum(1.0)), "rms_prop: momentum = 1"),
        (Box::new(NAdam::new(&params).momentum_decay(0.0)), "nadam: momentum_decay = 0"),
        (Box::new(Sgd::new(&params).momentum(0.9, Momentum::Nesterov).dampening(0.1)), "sgd: dampening = 0.1"),
    ];
    for (optimizer, expected) in optimizers {
        let error = run(&*optimizer, &params, &device, 1).expect_err("it is refused").to_string();
        assert!(error.contains(expected), "{error}");
    }
    for make in [OptimizerConfig::CautiousAdamW, OptimizerConfig::ScheduleFreeAdamW] {
        let error = make(AdamConfig { amsgrad: true, ..AdamConfig::default() }).build(&params).map(drop);
        assert!(error.expect_err("it has none").to_string().contains("amsgrad"), "a setting without effect");
    }
    Ok(())
}
