//! Lookahead over several optimizers, one with its own schedule, compared with a plain loop.

use brisk_nn::tensor::program::Device;
use brisk_nn::tensor::{DType, Graph, Persistent};
use brisk_nn::{
    Adam, CombinedOptimizer, Error, Init, Lookahead, Momentum, Optimizer, ParameterGroup, Parameters, ParametersBuilder, Philox,
    Schedule, Scheduled, Sgd, StepInputs,
};

const N_STEPS: usize = 8;
const SKIPPED: usize = 4;
/// The learning rate of each step of the run, and that of the bias.
const RATES: [f32; N_STEPS] = [0.1, 0.2, 0.3, 0.25, 0.2, 0.15, 0.1, 0.05];
const BIAS_RATES: [f32; N_STEPS] = [0.3, 0.2, 0.1, 0.0, 0.0, 0.0, 0.0, 0.0];
const MOMENTUM: f32 = 0.9;
const WEIGHT_DECAY: f32 = 0.05;
const EVERY: usize = 3;
const DECAYS: [f32; 2] = [0.25, 0.75];

/// A weight, a bias and two buffers.
struct Run {
    params: Parameters,
    optimizer: Lookahead<CombinedOptimizer>,
    inputs: StepInputs,
}

impl Run {
    fn new() -> Result<Self, Error> {
        let mut builder = ParametersBuilder::new();
        let weight = ParameterGroup::new([builder.add("weight", &[10, 7], Init::FanIn(7))]).weight_decay(WEIGHT_DECAY);
        let bias = ParameterGroup::new([builder.add("bias", &[5], Init::Constant(1.0))]);
        builder.add_buffer("mean", &[3], 0.0);
        builder.add_buffer("var", &[2], 1.0);
        let params = builder.build(3);
        let weight = Sgd::new(&params).momentum(MOMENTUM, Momentum::FoldedNesterov).groups(&params, &[weight])?;
        let bias = Sgd::new(&params).momentum(MOMENTUM, Momentum::Nesterov).groups(&params, &[bias])?;
        let falling = Schedule::PiecewiseLinear { points: vec![(0.into(), 0.3), (3.into(), 0.0)] };
        let both = CombinedOptimizer::new().and(weight).and(Scheduled::new(bias, &falling, 4));
        let optimizer = Lookahead::new(both, &params, EVERY as u32, DECAYS.to_vec()).ending_at(N_STEPS);
        let inputs = StepInputs { lr: Persistent::new("lr", DType::F32, N_STEPS), state: Graph::state_buffer() };
        Ok(Self { params, optimizer, inputs })
    }

    /// The floats that a checkpoint contains.
    fn saved(&self) -> Vec<&Persistent> {
        let buffers = self.params.buffers().iter().map(|buffer| buffer.values());
        let state = self.optimizer.state().into_iter().map(|(_, persistent)| persistent);
        [self.params.values()].into_iter().chain(buffers).chain(state).collect()
    }

    /// Runs these steps on a new device, after loading the checkpoint of the previous steps. Returns weight, bias and both
    /// buffers after each step, and the new checkpoint.
    fn steps(&self, steps: std::ops::Range<usize>, saved: Option<Saved>) -> Result<(Vec<Values>, Saved), Error> {
        let device = Device::cpu()?;
        let graph = Graph::inference("step");
        self.optimizer.record(&graph, &self.params, &self.inputs);
        graph.advance(&self.inputs.state);
        let executable = graph.compile(&device)?;
        self.params.write_initial(&device)?;
        device.write(&self.inputs.lr, &RATES)?;
        if let Some((state, floats)) = saved {
            device.write(&self.inputs.state, &state)?;
            for (persistent, values) in self.saved().into_iter().zip(floats) {
                device.write(persistent, &values)?;
            }
        }
        let mut found = Vec::new();
        for step in steps {
            for (tensor, entry) in self.params.entries().iter().enumerate() {
                device.write_at(self.params.grads(), entry.range.start, &gradient(step, tensor, entry.range.len()))?;
            }
            for buffer in self.params.buffers() {
                device.write(buffer.values(), &forward(device.read(buffer.values())?))?;
            }
            device.write_at(&self.inputs.state, 2, &[u32::from(step == SKIPPED)])?;
            executable.run(1)?;
            let flat: Vec<f32> = device.read(self.params.values())?;
            let tensors = self.params.entries().iter().map(|entry| Ok(flat[entry.range.clone()].to_vec()));
            let buffers = self.params.buffers().iter().map(|buffer| Ok(device.read(buffer.values())?));
            found.push(tensors.chain(buffers).collect::<Result<_, Error>>()?);
        }
        let floats = self.saved().into_iter().map(|persistent| device.read(persistent)).collect::<Result<_, _>>()?;
        Ok((found, (device.read(&self.inputs.state)?, floats)))
    }

    /// The same with a loop over the formulas.
    fn expected(&self) -> Vec<Values> {
        let initial = self.params.initial();
        let tensors = self.params.entries().iter().map(|entry| initial[entry.range.clone()].to_vec());
        let mut fast: Values = tensors.chain(self.params.buffers().iter().map(|buffer| buffer.initial())).collect();
        let mut velocities = [0, 1].map(|tensor: usize| vec![0.0; fast[tensor].len()]);
        let (mut slow, mut n_done, mut found) = (Values::new(), 0, Vec::new());
        for step in 0..N_STEPS {
            fast[2..].iter_mut().for_each(|buffer| *buffer = forward(std::mem::take(buffer)));
            if step == 0 {
                slow = fast.clone();
            }
            if step != SKIPPED {
                for (i, g) in gradient(step, 0, fast[0].len()).into_iter().enumerate() {
                    let descent = -RATES[step] * (g + WEIGHT_DECAY * fast[0][i]);
                    velocities[0][i] = MOMENTUM * velocities[0][i] + descent;
                    fast[0][i] += descent + MOMENTUM * velocities[0][i];
                }
                for (i, g) in gradient(step, 1, fast[1].len()).into_iter().enumerate() {
                    velocities[1][i] = MOMENTUM * velocities[1][i] + g;
                    fast[1][i] -= BIAS_RATES[step] * (g + MOMENTUM * velocities[1][i]);
                }
                n_done += 1;
                if n_done % EVERY == 0 {
                    let d = DECAYS[(n_done / EVERY - 1).min(DECAYS.len() - 1)];
                    for (slow, fast) in slow.iter_mut().flatten().zip(fast.iter().flatten()) {
                        *slow = d * *slow + (1.0 - d) * fast;
                    }
                    fast.clone_from(&slow);
                }
            }
            if step + 1 == N_STEPS {
                fast.clone_from(&slow);
            }
            found.push(fast.clone());
        }
        found
    }
}

/// Weight, bias, mean and variance.
type Values = Vec<Vec<f32>>;
/// The state of the run, and the floats of a checkpoint.
type Saved = (Vec<u32>, Vec<Vec<f32>>);

fn gradient(step: usize, tensor: usize, n: usize) -> Vec<f32> {
    (0..n as u64).map(|i| Philox::new(5 + tensor as u64).normal(step as u32, i)).collect()
}

/// The effect of a forward pass on running statistics.
fn forward(buffer: Vec<f32>) -> Vec<f32> {
    buffer.into_iter().enumerate().map(|(i, value)| 0.6 * value + 0.4 * (i as f32 + 2.0)).collect()
}

#[test]
fn weights_and_buffers_are_those_of_a_plain_loop() -> Result<(), Error> {
    let run = Run::new()?;
    let (found, _) = run.steps(0..N_STEPS, None)?;
    for (step, (found, expected)) in found.iter().zip(run.expected()).enumerate() {
        for (name, (found, expected)) in ["weight", "bias", "mean", "var"].iter().zip(found.iter().zip(expected)) {
            let furthest = found.iter().zip(&expected).fold(0.0_f32, |furthest, (a, b)| furthest.max((a - b).abs()));
            assert!(furthest <= 2e-6, "step {step}: `{name}` is {found:?}, expected {expected:?}");
        }
    }
    Ok(())
}

#[test]
fn a_resumed_run_is_bit_identical() -> Result<(), Error> {
    let (whole, _) = Run::new()?.steps(0..N_STEPS, None)?;
    for stop in [1, 3, SKIPPED, SKIPPED + 1, N_STEPS - 1] {
        let (_, saved) = Run::new()?.steps(0..stop, None)?;
        let (resumed, _) = Run::new()?.steps(stop..N_STEPS, Some(saved))?;
        assert_eq!(resumed, whole[stop..], "resumed after {stop} steps");
    }
    Ok(())
}

#[test]
fn it_refuses_the_parameters_of_another_model() -> Result<(), Error> {
    let (run, other) = (Run::new()?, Run::new()?);
    let optimizer = Lookahead::new(Adam::new(&other.params), &run.params, 5, vec![0.5]);
    let graph = Graph::inference("step");
    optimizer.record(&graph, &other.params, &run.inputs);
    let error = graph.check().expect_err("slow weights of another model").to_string();
    assert!(error.starts_with("lookahead: ") && error.contains("one for each model"), "{error}");
    Ok(())
}
