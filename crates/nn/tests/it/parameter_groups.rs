//! Rates and decays per group, compared with PyTorch, and several optimizers as one.

use brisk_nn::tensor::program::Device;
use brisk_nn::tensor::{DType, Graph, Persistent};
use brisk_nn::{
    Adam, CombinedOptimizer, Error, Init, Momentum, Muon, Optimizer, ParameterGroup, ParameterId, Parameters, ParametersBuilder,
    Sgd, StepInputs, WeightDecay,
};

/// Numbers without a pattern, the same as in the program that computed the expected values.
fn values(n: usize, k: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * i * 37 + i * k * 11 + k * 53 + 7) % 101) as f32 / 50.0 - 1.0).collect()
}

fn parameters(shapes: &[&[usize]]) -> Parameters {
    let mut builder = ParametersBuilder::new();
    let ids: Vec<ParameterId> =
        (shapes.iter().enumerate()).map(|(i, shape)| builder.add(format!("p{i}"), shape, Init::Constant(0.0))).collect();
    let mut params = builder.build(0);
    for (i, id) in ids.into_iter().enumerate() {
        let start = values(params.entry(id).range.len(), i);
        params.set_initial(id, &start).expect("as many as there are");
    }
    params
}

/// Each parameter after three steps with a rate of 0.1.
fn after_three_steps(params: &Parameters, optimizer: &dyn Optimizer) -> Result<Vec<Vec<f32>>, Error> {
    let inputs = StepInputs { lr: Persistent::new("lr", DType::F32, 1), state: Graph::state_buffer() };
    let graph = Graph::inference("step");
    optimizer.record(&graph, params, &inputs);
    graph.advance(&inputs.state);
    let device = Device::cpu()?;
    let executable = graph.compile(&device)?;
    params.write_initial(&device)?;
    device.write(&inputs.lr, &[0.1_f32])?;
    for step in 0..3 {
        for (i, entry) in params.entries().iter().enumerate() {
            device.write_at(params.grads(), entry.range.start, &values(entry.range.len(), 10 + 3 * step + i))?;
        }
        executable.run(1)?;
    }
    let flat: Vec<f32> = device.read(params.values())?;
    Ok(params.entries().iter().map(|entry| flat[entry.range.clone()].to_vec()).collect())
}

/// The first parameter with the optimizer's decay, the third with eight times the rate and no decay; the second is in no group.
#[track_caller]
fn check<O: Optimizer>(optimizer: impl Fn(&Parameters, &[ParameterGroup]) -> Result<O, Error>, expected: [&[f32]; 3]) {
    let params = parameters(&[&[3], &[2], &[2]]);
    let ids = params.ids_where(|_| true);
    let groups = [ParameterGroup::new([ids[0]]), ParameterGroup::new([ids[2]]).lr_factor(8.0).weight_decay(0.0)];
    let optimizer = optimizer(&params, &groups).expect("groups that fit");
    let found = after_three_steps(&params, &optimizer).expect("the steps can be recorded and run");
    for (found, expected) in found.iter().zip(expected) {
        let are_close = found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 2e-6);
        assert!(are_close && found.len() == expected.len(), "{found:?}, expected {expected:?}");
    }
}

#[test]
fn rates_and_decays_are_those_of_pytorchs_groups() {
    check(
        |params, groups| {
            Sgd::new(params).momentum(0.9, Momentum::Nesterov).groups(params, groups).map(|sgd| sgd.weight_decay(0.3))
        },
        [&[-0.7467729, -0.3921937, -0.0414316], &[0.2, -0.86], &[-2.056688, -0.064096]],
    );
    check(
        |params, groups| Adam::new(params).weight_decay(WeightDecay::Gradient(0.3)).groups(params, groups),
        [&[-0.7417043, -0.3946781, -0.0382187], &[0.2, -0.86], &[-0.7319183, 0.91975]],
    );
    check(
        |params, groups| Adam::new(params).weight_decay(WeightDecay::Decoupled(0.3)).groups(params, groups),
        [&[-0.7567565, -0.3848706, -0.0380077], &[0.2, -0.86], &[-0.7319183, 0.91975]],
    );
}

#[test]
fn one_group_of_all_is_as_none() -> Result<(), Error> {
    let params = parameters(&[&[100], &[2, 40], &[1]]);
    let all = ParameterGroup::new(params.ids_where(|_| true));
    let sgd = || Sgd::new(&params).momentum(0.9, Momentum::Heavy).weight_decay(0.1);
    let expected = after_three_steps(&params, &sgd())?;
    assert_eq!(after_three_steps(&params, &sgd().groups(&params, &[all])?)?, expected, "bit-identical");
    Ok(())
}

#[test]
fn several_optimizers_step_as_each_alone() -> Result<(), Error> {
    let params = parameters(&[&[3, 4], &[3], &[2]]);
    let ids = params.ids_where(|_| true);
    let group = |i: usize| [ParameterGroup::new([ids[i]])];
    let muon = Muon::new(&params, &[ids[0]])?;
    let sgd = Sgd::new(&params).momentum(0.9, Momentum::Nesterov).groups(&params, &group(1))?;
    let adam = Adam::new(&params).groups(&params, &group(2))?;
    let alone = [
        after_three_steps(&params, &muon)?.remove(0),
        after_three_steps(&params, &sgd)?.remove(1),
        after_three_steps(&params, &adam)?.remove(2),
    ];
    let together = CombinedOptimizer::new().and(muon).and(sgd).and(adam);
    assert_eq!(after_three_steps(&params, &together)?, alone, "bit-identical");
    assert!(together.skips(), "all of them do");
    let names: Vec<String> = together.state().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["0.muon.momentum", "1.sgd.momentum", "2.adam.m", "2.adam.v"], "no two alike");
    Ok(())
}

/// The rate of the second optimizer is 0 from its second step on, so it takes one step.
#[test]
fn one_of_several_may_have_rates_of_its_own() -> Result<(), Error> {
    let params = parameters(&[&[3], &[2]]);
    let ids = params.ids_where(|_| true);
    let sgd = |i: usize| Sgd::new(&params).groups(&params, &[ParameterGroup::new([ids[i]])]);
    let own = Persistent::new("own", DType::F32, 2);
    let together = CombinedOptimizer::new().and(sgd(0)?).and_at(&own, sgd(1)?);
    let inputs = StepInputs { lr: Persistent::new("lr", DType::F32, 1), state: Graph::state_buffer() };
    let graph = Graph::inference("step");
    together.record(&graph, &params, &inputs);
    graph.advance(&inputs.state);
    let device = Device::cpu()?;
    device.write(&inputs.lr, &[0.25_f32])?;
    device.write(params.values(), &vec![0.0_f32; params.len()])?;
    device.write(&own, &[0.5_f32, 0.0])?;
    device.write(params.grads(), &vec![1.0_f32; params.len()])?;
    graph.compile(&device)?.run(3)?;
    let values: Vec<f32> = device.read(params.values())?;
    let [first, second] = [0, 1].map(|i| values[params.entries()[i].range.start]);
    assert_eq!((first, second), (-0.75, -0.5), "three steps of 0.25, one of 0.5");
    Ok(())
}

#[test]
fn groups_that_do_not_fit_are_refused() {
    let params = parameters(&[&[3], &[2]]);
    let ids = params.ids_where(|_| true);
    let refused = |groups: &[ParameterGroup], message: &str| {
        let errors = [Adam::new(&params).groups(&params, groups).err(), Sgd::new(&params).groups(&params, groups).err()];
        for error in errors {
            assert_eq!(error.expect("they do not fit").to_string(), format!("parameter groups: {message}"));
        }
    };
    let group = |ids: &[ParameterId]| ParameterGroup::new(ids);
    refused(&[group(&ids), group(&ids[1..])], "`p1` twice is not supported, expected each parameter in one group");
    refused(&[group(&[ids[0], ids[0]])], "`p0` twice is not supported, expected each parameter in one group");
    for (factor, name) in [(-1.0, "-1"), (f32::NAN, "NaN"), (f32::INFINITY, "inf")] {
        let message = format!("lr_factor = {name} is not supported, expected a finite number that is not negative");
        refused(&[group(&ids).lr_factor(factor)], &message);
    }
}
