//! Loss scaling compared with PyTorch: trajectories, several optimizers, clipping, states, and refused calls.

use std::cell::Cell;

use brisk_nn::tensor::program::Device;
use brisk_nn::tensor::{DType, Graph, Persistent, Tensor};
use brisk_nn::{
    Accumulate, Adam, Ema, Error, GradScaler, GradScalerConfig, Init, Momentum, Optimizer, Parameters, ParametersBuilder, Sgd,
    StepInputs, Unscaled, WeightDecay,
};

/// The input for PyTorch: the gradients of ten steps, unscaled.
const GRADS: [f32; 10] = [f32::INFINITY, 0.5, -0.25, f32::NAN, 0.125, f32::INFINITY, f32::NEG_INFINITY, 1.0, 0.75, -0.5];
/// The scale and the count of good steps after each, from 1024 and with an interval of 2.
const SCALES: [(f32, u32); 10] =
    [(512.0, 0), (512.0, 1), (1024.0, 0), (512.0, 0), (512.0, 1), (256.0, 0), (128.0, 0), (128.0, 1), (256.0, 0), (256.0, 1)];
const CONFIG: GradScalerConfig =
    GradScalerConfig { init_scale: 1024.0, growth_factor: 2.0, backoff_factor: 0.5, growth_interval: 2, enabled: true };

/// One parameter with the value 1, the gradient that a run sets for it, and the inputs of a step.
struct Setting {
    params: Parameters,
    inputs: StepInputs,
    graph: Graph,
}

impl Setting {
    fn new(n_rates: usize) -> Self {
        let mut builder = ParametersBuilder::new();
        builder.add("p", &[1], Init::Constant(1.0));
        let inputs = StepInputs { lr: Persistent::new("lr", DType::F32, n_rates), state: Graph::state_buffer() };
        Self { params: builder.build(0), inputs, graph: Graph::training("step") }
    }

    /// `p` times a factor that the host writes: the gradient of the loss is that factor.
    fn loss(&self, factor: &Persistent) -> Tensor {
        self.params.bind(&self.graph).tensors()[0].multiply(&self.graph.tensor(factor, &[1])).sum(..)
    }
}

/// The same with two losses.
fn sum(a: &Tensor, b: &Tensor) -> Tensor {
    a.reshape(&[1]).concat(&[&b.reshape(&[1])], 0).sum(..)
}

/// Runs the ten steps, with a rate of 0.1 divided by the number of the batch, and compares scale and parameter after each.
#[track_caller]
fn check(optimizer: impl Fn(&Parameters) -> Box<dyn Optimizer>, max_norm: Option<f32>, expected: [f32; 10]) {
    let found = trajectory(optimizer, max_norm).expect("the step can be recorded and run");
    let are_close = found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 1e-6);
    assert!(are_close, "the parameter went {found:?}, PyTorch's {expected:?}");
}

fn trajectory(optimizer: impl Fn(&Parameters) -> Box<dyn Optimizer>, max_norm: Option<f32>) -> Result<Vec<f32>, Error> {
    let setting = Setting::new(GRADS.len());
    let Setting { params, inputs, graph } = &setting;
    let (scaler, factor) = (GradScaler::new(CONFIG)?, Persistent::new("factor", DType::F32, 1));
    scaler.backward(&setting.loss(&factor))?;
    match max_norm {
        Some(max_norm) => {
            let unscaled = scaler.unscale(graph, params, inputs);
            params.clip_grad_norm(graph, max_norm);
            unscaled.step(&*optimizer(params));
        }
        None => scaler.step(graph, &*optimizer(params), params, inputs),
    }
    scaler.update(graph);
    graph.advance(&inputs.state);

    let device = Device::cpu()?;
    let executable = graph.compile(&device)?;
    params.write_initial(&device)?;
    scaler.write_initial(&device)?;
    let rates: Vec<f32> = (1..=GRADS.len()).map(|batch| 0.1 / batch as f32).collect();
    device.write(&inputs.lr, &rates)?;
    let step = |(grad, scale): (f32, (f32, u32))| {
        device.write(&factor, &[grad])?;
        executable.run(1)?;
        let report = scaler.report(&device)?;
        assert_eq!((report.scale, report.growth_tracker), scale, "scale and count, bit-identical");
        Ok(device.read::<f32>(params.values())?[0])
    };
    let values = GRADS.into_iter().zip(SCALES).map(step).collect();
    assert_eq!(device.read::<u32>(&inputs.state)?, [10, 10, 0, 4], "ten batches, four of them skipped");
    let report = scaler.report(&device)?;
    assert_eq!((report.n_skipped, report.n_skipped_in_a_row), (4, 0), "{report:?}");
    values
}

#[test]
fn adam_skips_as_pytorchs_and_corrects_its_bias_for_the_steps_it_took() {
    let expected =
        [1.0, 0.95, 0.941_122_1, 0.941_122_1, 0.934_313_5, 0.934_313_5, 0.934_313_5, 0.926_277_4, 0.917_910_3, 0.913_597_6];
    check(|params| Box::new(Adam::new(params)), None, expected);
    let expected =
        [1.0, 0.94, 0.924_855_5, 0.924_855_5, 0.914_347_5, 0.914_347_5, 0.914_347_5, 0.904_025_5, 0.893_649_4, 0.887_549_4];
    check(|params| Box::new(Adam::new(params).weight_decay(WeightDecay::Decoupled(0.2))), None, expected);
}

#[test]
fn gradient_descent_skips_as_pytorchs() {
    let nesterov = |params: &Parameters| Box::new(Sgd::new(params).momentum(0.9, Momentum::Nesterov)) as Box<dyn Optimizer>;
    let expected =
        [1.0, 0.9525, 0.954_833_3, 0.954_833_3, 0.946_843_3, 0.946_843_3, 0.946_843_3, 0.920_005_2, 0.892_701_4, 0.886_835_3];
    check(nesterov, None, expected);
    let decayed =
        |params: &Parameters| Box::new(Sgd::new(params).momentum(0.9, Momentum::Heavy).weight_decay(0.1)) as Box<dyn Optimizer>;
    let expected = [1.0, 0.97, 0.9571, 0.9571, 0.945_719_8, 0.945_719_8, 0.945_719_8, 0.925_636_3, 0.900_207_6, 0.883_710_3];
    check(decayed, None, expected);
}

#[test]
fn gradients_are_clipped_between_unscale_and_step() {
    let heavy = |params: &Parameters| Box::new(Sgd::new(params).momentum(0.9, Momentum::Heavy)) as Box<dyn Optimizer>;
    let expected =
        [1.0, 0.985, 0.984_333_3, 0.984_333_3, 0.981_473_3, 0.981_473_3, 0.981_473_3, 0.976_114_6, 0.968_494_2, 0.965_321_8];
    check(heavy, Some(0.3), expected);
}

#[test]
fn a_scaled_loss_has_the_gradient_that_a_scaled_backward_gives() -> Result<(), Error> {
    let grad = |backward: &dyn Fn(&GradScaler, &Setting, &Tensor) -> Result<(), Error>| {
        let (setting, scaler) = (Setting::new(1), GradScaler::new(CONFIG)?);
        let factor = Persistent::new("factor", DType::F32, 1);
        backward(&scaler, &setting, &setting.loss(&factor))?;
        let device = Device::cpu()?;
        let executable = setting.graph.compile(&device)?;
        setting.params.write_initial(&device)?;
        scaler.write_initial(&device)?;
        device.write(&factor, &[0.7_f32])?;
        executable.run(1)?;
        Ok::<_, Error>(device.read::<f32>(setting.params.grads())?[0])
    };
    let of_backward = grad(&|scaler, _, loss| scaler.backward(loss))?;
    assert_eq!(of_backward, 0.7 * 1024.0, "the gradient times the scale");
    assert_eq!(grad(&|scaler, setting, loss| setting.graph.backward(&scaler.scale(loss)))?, of_backward, "by a scaled loss");
    Ok(())
}

#[test]
fn of_several_optimizers_only_those_skip_whose_gradients_are_not_finite() -> Result<(), Error> {
    let graph = Graph::training("two models");
    let (scaler, device) = (GradScaler::new(CONFIG)?, Device::cpu()?);
    let models = [Setting::new(1), Setting::new(1)].map(|setting| Setting { graph: graph.clone(), ..setting });
    let factors = ["a", "b"].map(|name| Persistent::new(name, DType::F32, 1));
    let [a, b] = [0, 1].map(|i| models[i].loss(&factors[i]));
    scaler.backward(&sum(&a, &b))?;
    for Setting { params, inputs, .. } in &models {
        scaler.step(&graph, &Sgd::new(params), params, inputs);
    }
    scaler.update(&graph);
    for Setting { params, inputs, .. } in &models {
        graph.advance(&inputs.state);
        params.write_initial(&device)?;
        device.write(&inputs.lr, &[0.5_f32])?;
    }
    scaler.write_initial(&device)?;
    let executable = graph.compile(&device)?;
    let states = |grads: [f32; 2]| {
        factors.iter().zip(grads).try_for_each(|(factor, grad)| device.write(factor, &[grad]))?;
        executable.run(1)?;
        let of = |setting: &Setting| {
            let n_skipped = device.read::<u32>(&setting.inputs.state)?[3];
            Ok::<_, Error>((device.read::<f32>(setting.params.values())?[0], n_skipped))
        };
        Ok::<_, Error>((of(&models[0])?, of(&models[1])?, scaler.report(&device)?.scale))
    };
    assert_eq!(states([1.0, f32::INFINITY])?, ((0.5, 0), (1.0, 1), 512.0), "the second skips, and the scale backs off");
    assert_eq!(states([f32::NAN, 1.0])?, ((0.5, 1), (0.5, 1), 256.0), "the first skips");
    assert_eq!(states([f32::NAN, f32::NAN])?, ((0.5, 2), (0.5, 2), 128.0), "both skip, and it backs off once");
    assert_eq!(states([1.0, 2.0])?, ((0.0, 2), (-0.5, 2), 128.0), "neither");
    Ok(())
}

#[test]
fn gradients_of_several_losses_are_summed_under_one_scale() -> Result<(), Error> {
    let (setting, scaler, device) = (Setting::new(1), GradScaler::new(CONFIG)?, Device::cpu()?);
    let Setting { params, inputs, graph } = &setting;
    let factors = ["a", "b"].map(|name| Persistent::new(name, DType::F32, 1));
    let p = params.bind(graph).tensors()[0].clone();
    let loss = |factor: &Persistent| p.multiply(&graph.tensor(factor, &[1])).sum(..);
    graph.backward(&sum(&scaler.scale(&loss(&factors[0])), &scaler.scale(&loss(&factors[1]))))?;
    scaler.step(graph, &Sgd::new(params), params, inputs);
    scaler.update(graph);
    graph.advance(&inputs.state);
    let executable = graph.compile(&device)?;
    params.write_initial(&device)?;
    scaler.write_initial(&device)?;
    device.write(&inputs.lr, &[0.5_f32])?;
    device.write(&factors[0], &[0.25_f32])?;
    device.write(&factors[1], &[0.5_f32])?;
    executable.run(1)?;
    assert_eq!(device.read::<f32>(params.values())?[0], 1.0 - 0.5 * 0.75, "a step by the sum");
    device.write(&factors[1], &[f32::INFINITY])?;
    executable.run(1)?;
    assert_eq!(device.read::<f32>(params.values())?[0], 1.0 - 0.5 * 0.75, "skipped for one of them");
    Ok(())
}

#[test]
fn an_average_leaves_skipped_steps_out() -> Result<(), Error> {
    let (setting, scaler, device) = (Setting::new(1), GradScaler::new(CONFIG)?, Device::cpu()?);
    let Setting { params, inputs, graph } = &setting;
    let (factor, ema) = (Persistent::new("factor", DType::F32, 1), Ema::new(params, 0.5));
    scaler.backward(&setting.loss(&factor))?;
    scaler.step(graph, &Sgd::new(params), params, inputs);
    ema.record(graph, params, &inputs.state);
    scaler.update(graph);
    graph.advance(&inputs.state);
    let executable = graph.compile(&device)?;
    params.write_initial(&device)?;
    scaler.write_initial(&device)?;
    device.write(&inputs.lr, &[1.0_f32])?;
    // The first step that is not skipped copies the parameters.
    for (grad, expected) in [(f32::NAN, 0.0), (1.0, 0.0), (f32::NAN, 0.0), (1.0, -0.5)] {
        device.write(&factor, &[grad])?;
        executable.run(1)?;
        assert_eq!(device.read::<f32>(ema.average())?[0], expected, "with a gradient of {grad}");
    }
    Ok(())
}

#[test]
fn a_scaler_that_is_not_enabled_records_what_there_would_be_without() -> Result<(), Error> {
    let (setting, factor) = (Setting::new(1), Persistent::new("factor", DType::F32, 1));
    let Setting { params, inputs, graph } = &setting;
    let scaler = GradScaler::new(GradScalerConfig { enabled: false, ..CONFIG })?;
    graph.backward(&scaler.scale(&setting.loss(&factor)))?;
    scaler.unscale(graph, params, inputs).step(&Sgd::new(params));
    scaler.update(graph);
    assert_eq!(
        graph.with_program(|program| program.kernel_names().filter(|name| name.contains("scale")).count()),
        0,
        "{graph:?}"
    );
    let device = Device::cpu()?;
    assert_eq!(scaler.report(&device)?.scale, 1.0, "as PyTorch's `get_scale`");
    assert_eq!(scaler.state(&device)?, [], "there is nothing to keep");
    let nothing: [(&str, f64); 0] = [];
    scaler.load_state(&device, &nothing)
}

#[test]
fn a_state_has_pytorchs_names_and_goes_on() -> Result<(), Error> {
    let device = Device::cpu()?;
    let scaler = GradScaler::new(CONFIG)?;
    scaler.write_initial(&device)?;
    scaler.set_scale(&device, 96.0)?;
    let state = scaler.state(&device)?;
    let expected =
        [("scale", 96.0), ("growth_factor", 2.0), ("backoff_factor", 0.5), ("growth_interval", 2.0), ("_growth_tracker", 0.0)];
    assert_eq!(state, expected, "as `state_dict`");

    let other = GradScaler::new(GradScalerConfig::default())?;
    let kept =
        [("_growth_tracker", 7.0), ("scale", 0.375), ("growth_factor", 1.1), ("backoff_factor", 0.25), ("growth_interval", 9.0)];
    other.load_state(&device, &kept)?;
    let report = other.report(&device)?;
    assert_eq!((report.scale, report.growth_tracker), (0.375, 7), "what it had");
    let expected =
        GradScalerConfig { growth_factor: 1.1, backoff_factor: 0.25, growth_interval: 9, ..GradScalerConfig::default() };
    assert_eq!(other.config(), expected, "its factors, too");
    other.set_scale(&device, 8.0)?;
    assert_eq!(other.report(&device)?.growth_tracker, 7, "another scale leaves the count");
    Ok(())
}

#[track_caller]
fn refused(result: Result<(), Error>, expected: &str) {
    let error = result.expect_err("it makes no sense");
    assert!(error.to_string().contains(expected), "{error}");
}

/// Checks that the graph of a new setting refuses what `record` records with a new scaler.
#[track_caller]
fn check_refused(record: impl FnOnce(&Setting, &GradScaler), expected: &str) {
    let (setting, scaler) = (Setting::new(1), GradScaler::new(CONFIG).expect("the configuration is valid"));
    record(&setting, &scaler);
    let error = setting.graph.check();
    let place = error.as_ref().err().and_then(Error::place).expect("errors of recording have a place");
    assert_eq!(place.outer().unwrap_or(place.location()).file(), file!(), "it is that of the caller");
    refused(error, expected);
}

impl Setting {
    fn factor_loss(&self) -> Tensor {
        self.loss(&Persistent::new("factor", DType::F32, 1))
    }

    fn scaled(&self, scaler: &GradScaler) {
        scaler.backward(&self.factor_loss()).expect("the loss can be differentiated");
    }

    fn unscale<'a>(&'a self, scaler: &'a GradScaler) -> Unscaled<'a> {
        scaler.unscale(&self.graph, &self.params, &self.inputs)
    }

    fn step(&self, scaler: &GradScaler) {
        scaler.step(&self.graph, &Sgd::new(&self.params), &self.params, &self.inputs);
    }
}

#[test]
fn what_is_recorded_out_of_turn_is_refused() -> Result<(), Error> {
    check_refused(
        |setting, scaler| _ = setting.unscale(scaler),
        "unscale: no loss has been scaled, expected a call of `scale` or `backward` before",
    );
    check_refused(|setting, scaler| setting.step(scaler), "unscale: no loss has been scaled");
    check_refused(
        |setting, scaler| scaler.update(&setting.graph),
        "update: no gradients have been unscaled since the last update, expected `step` before",
    );
    let pair = |setting: &Setting| setting.graph.constant("pair", &[1.0, 2.0], &[2]);
    check_refused(
        |setting, scaler| drop(scaler.scale(&pair(setting))),
        "scale: the loss has shape [2], expected one number; reduce the loss first",
    );
    check_refused(
        |setting, scaler| {
            setting.scaled(scaler);
            _ = setting.unscale(scaler);
            _ = setting.unscale(scaler);
        },
        "unscale: `gradients` have been unscaled since the last update, expected once before `update`",
    );
    check_refused(
        |setting, scaler| {
            setting.scaled(scaler);
            _ = setting.unscale(scaler);
            setting.step(scaler);
        },
        "unscale: `gradients` have been unscaled since the last update",
    );
    check_refused(
        |setting, scaler| {
            setting.scaled(scaler);
            setting.step(scaler);
            _ = setting.unscale(scaler);
        },
        "unscale: `gradients` have been unscaled since the last update",
    );
    check_refused(
        |setting, scaler| {
            setting.scaled(scaler);
            setting.step(scaler);
            setting.step(scaler);
        },
        "unscale: `gradients` have been unscaled since the last update, expected once before `update`, and then `Unscaled::step`; combine several",
    );
    check_refused(
        |setting, scaler| {
            setting.scaled(scaler);
            setting.step(scaler);
            scaler.update(&setting.graph);
            scaler.update(&setting.graph);
        },
        "update: no gradients have been unscaled since the last update",
    );
    Ok(())
}

#[test]
fn a_loss_of_several_numbers_leaves_the_scaler_as_it_was() -> Result<(), Error> {
    let (setting, scaler) = (Setting::new(1), GradScaler::new(CONFIG)?);
    let pair = setting.graph.constant("pair", &[1.0, 2.0], &[2]);
    refused(scaler.backward(&pair), "the loss has shape [2]");
    _ = setting.unscale(&scaler);
    refused(setting.graph.check(), "no loss has been scaled");
    Ok(())
}

#[test]
fn a_step_is_three_kernels_and_may_be_followed_by_another() -> Result<(), Error> {
    let (setting, scaler) = (Setting::new(1), GradScaler::new(CONFIG)?);
    setting.scaled(&scaler);
    let n_kernels = || setting.graph.with_program(|program| program.n_kernels());
    for _ in 0..2 {
        let n_before = n_kernels();
        setting.unscale(&scaler).step(&Sgd::new(&setting.params));
        scaler.update(&setting.graph);
        assert_eq!(n_kernels(), n_before + 3);
    }
    setting.graph.check()
}

/// An optimizer that does not support skipping.
#[derive(Debug)]
struct Own(Cell<u32>);

impl Optimizer for Own {
    fn record(&self, _: &Graph, _: &Parameters, _: &StepInputs) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn an_optimizer_that_does_not_skip_is_refused() -> Result<(), Error> {
    let own = Own(Cell::new(0));
    check_refused(
        |Setting { params, inputs, graph }, scaler| scaler.step(graph, &own, params, inputs),
        "step: the optimizer does not say that its steps can be skipped",
    );
    assert_eq!(own.0.get(), 0, "it recorded nothing");
    let Setting { params, inputs, graph } = &Setting::new(1);
    GradScaler::new(GradScalerConfig { enabled: false, ..CONFIG })?.step(graph, &own, params, inputs);
    assert_eq!(own.0.get(), 1, "without scaling there is nothing to skip");
    Ok(())
}

#[test]
fn settings_and_states_that_make_no_sense_are_refused() -> Result<(), Error> {
    let new = |config| GradScaler::new(config).map(drop);
    let growth = GradScalerConfig { growth_factor: 1.0, ..CONFIG };
    refused(new(growth), "GradScalerConfig: growth_factor = 1, expected more than 1");
    let backoff = GradScalerConfig { backoff_factor: 1.0, ..CONFIG };
    refused(new(backoff), "GradScalerConfig: backoff_factor = 1, expected between 0 and 1");
    let interval = GradScalerConfig { growth_interval: 0, ..CONFIG };
    refused(new(interval), "GradScalerConfig: growth_interval = 0, expected at least 1");
    for init_scale in [0.0, -1.0, f32::NAN, f32::INFINITY, 1e-40] {
        let expected = format!("GradScalerConfig: init_scale is {init_scale:e}, expected a positive number");
        refused(new(GradScalerConfig { init_scale, ..CONFIG }), &expected);
    }

    let (device, scaler) = (Device::cpu()?, GradScaler::new(CONFIG)?);
    let nothing: [(&str, f64); 0] = [];
    refused(scaler.load_state(&device, &nothing), "load_state: the state is empty, as that of a scaler that is not enabled");
    scaler.write_initial(&device)?;
    let state = scaler.state(&device)?;
    refused(scaler.load_state(&device, &state[..4]), "load_state: the state has no `_growth_tracker`");
    let with = |at: usize, value| {
        state.iter().enumerate().map(|(i, &(name, old))| (name, if i == at { value } else { old })).collect::<Vec<_>>()
    };
    refused(scaler.load_state(&device, &with(0, 0.0)), "load_state: `scale` is 0e0");
    refused(scaler.load_state(&device, &with(1, 1.0)), "load_state: growth_factor = 1");
    refused(scaler.load_state(&device, &with(4, 0.5)), "load_state: `_growth_tracker` is 0.5");
    refused(scaler.set_scale(&device, f32::NAN), "set_scale: the scale is NaN");

    let setting = Setting::new(1);
    scaler.backward(&setting.loss(&Persistent::new("factor", DType::F32, 1)))?;
    scaler.step(&setting.graph, &Sgd::new(&setting.params), &setting.params, &setting.inputs);
    scaler.update(&setting.graph);
    refused(scaler.load_state(&device, &with(1, 4.0)), "load the state before anything is recorded");
    scaler.load_state(&device, &with(0, 64.0))?;
    assert_eq!(scaler.report(&device)?.scale, 64.0, "another scale is no other kernel");
    Ok(())
}

#[test]
fn a_loss_is_scaled_once() {
    check_refused(
        |setting, scaler| {
            let scaled = scaler.scale(&setting.factor_loss());
            let refusal = scaler.backward(&scaled);
            refused(refusal, "backward: the loss has been scaled by `scale`, expected an unscaled loss");
        },
        "backward: the loss has been scaled by `scale`",
    );
    check_refused(
        |setting, scaler| drop(scaler.scale(&scaler.scale(&setting.factor_loss()))),
        "scale: the loss has been scaled by `scale`",
    );
}

#[test]
fn gradients_are_summed_over_batches_before_they_are_unscaled() -> Result<(), Error> {
    let (setting, scaler) = (Setting::new(1), GradScaler::new(CONFIG)?);
    let Setting { params, inputs, graph } = &setting;
    let (sgd, accumulate) = (Sgd::new(params), Accumulate::new(params, 3));
    scaler.backward(&setting.loss(&Persistent::new("factor", DType::F32, 1)))?;
    accumulate.record(graph, params, &inputs.state);
    let unscaled = scaler.unscale(graph, params, inputs);
    accumulate.record(graph, params, &inputs.state);
    params.clip_grad_norm(graph, 1.0);
    let expected =
        "step: the gradients of batches are accumulated after they were unscaled, expected `backward`, `Accumulate::record`";
    unscaled.step(&sgd);
    refused(graph.check(), expected);
    Ok(())
}

#[test]
fn optimizers_of_one_model_are_one_and_those_of_several_have_a_state_each() -> Result<(), Error> {
    /// Steps a model, and then with a second optimizer those parameters, or those of another model, with one or the other state.
    fn second_step(of_another: bool, with_its_state: bool) -> Result<(), Error> {
        let (a, scaler) = (Setting::new(1), GradScaler::new(CONFIG)?);
        let b = Setting { graph: a.graph.clone(), ..Setting::new(1) };
        scaler.backward(&sum(&a.factor_loss(), &b.factor_loss()))?;
        a.step(&scaler);
        let params = if of_another { &b.params } else { &a.params };
        let inputs = if with_its_state { &b.inputs } else { &a.inputs };
        scaler.step(&a.graph, &Adam::new(params), params, inputs);
        a.graph.check()
    }
    refused(second_step(false, true), "combine several optimizers by `CombinedOptimizer`, or give each its own `Parameters`");
    let shared = "is the state of an optimizer of other gradients, expected a state for each optimizer";
    refused(second_step(true, false), shared);
    second_step(true, true)
}

#[test]
fn a_report_waits_for_an_update() -> Result<(), Error> {
    let (setting, scaler, device) = (Setting::new(1), GradScaler::new(CONFIG)?, Device::cpu()?);
    let Setting { params, inputs, graph } = &setting;
    scaler.write_initial(&device)?;
    scaler.backward(&setting.loss(&Persistent::new("factor", DType::F32, 1)))?;
    scaler.report(&device)?;
    scaler.step(graph, &Sgd::new(params), params, inputs);
    refused(scaler.report(&device).map(drop), "report: gradients are unscaled without an `update` after it");
    refused(scaler.write_initial(&device), "write_initial: gradients are unscaled without an `update` after it");
    refused(scaler.state(&device).map(drop), "state: gradients are unscaled without an `update` after it");
    scaler.update(graph);
    scaler.report(&device).map(drop)
}

#[test]
fn a_scale_of_nothing_is_no_report_but_an_error_that_says_why() -> Result<(), Error> {
    let (setting, scaler, device) = (Setting::new(1), GradScaler::new(CONFIG)?, Device::cpu()?);
    let Setting { params, inputs, graph } = &setting;
    let factor = Persistent::new("factor", DType::F32, 1);
    scaler.backward(&setting.loss(&factor))?;
    scaler.step(graph, &Sgd::new(params), params, inputs);
    scaler.update(graph);
    graph.advance(&inputs.state);
    let executable = graph.compile(&device)?;
    params.write_initial(&device)?;
    device.write(&inputs.lr, &[0.5_f32])?;
    device.write(&factor, &[0.5_f32])?;
    let unwritten =
        "no scale has been written to this device, so that it is 0 and every step is skipped, expected `write_initial`";
    refused(scaler.report(&device).map(drop), &format!("report: {unwritten}"));
    let error = executable.run(3).expect_err("no scale has been written");
    assert!(error.to_string().contains("reads `scaler.scale`, to which nothing has been written"), "{error}");
    refused(scaler.state(&device).map(drop), &format!("state: {unwritten}"));

    scaler.write_initial(&device)?;
    device.write(&factor, &[f32::NAN])?;
    executable.run(136)?;
    let report = scaler.report(&device)?;
    assert_eq!((report.scale, report.n_skipped_in_a_row), (f32::MIN_POSITIVE, 136), "from 2^10 to the least normal number");
    executable.run(30)?;
    refused(scaler.report(&device).map(drop), "report: the scale is 0e0 since 166 steps in a row were skipped");
    refused(scaler.state(&device).map(drop), "state: the scale is 0e0 since 166 steps in a row were skipped");
    refused(scaler.report(&Device::cpu()?).map(drop), "report: no scale has been written to this device");
    scaler.set_scale(&device, 8.0)?;
    device.write(&factor, &[0.5_f32])?;
    executable.run(1)?;
    assert_eq!(scaler.report(&device)?.n_skipped_in_a_row, 0, "it continues with a new scale");
    Ok(())
}
