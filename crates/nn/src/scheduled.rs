use brisk_kernels::{DType, Number, Rule, StepCount, StepValue, Update};
use brisk_tensor::{Error, Graph, Persistent};

use crate::optimizer::Optimizer;
use crate::parameters::{ParameterId, Parameters};
use crate::schedule::Schedule;
use crate::step_inputs::StepInputs;

/// An optimizer with a separate schedule, for example for a bias that is only trained in the first epochs. Combine it in
/// [`CombinedOptimizer`](crate::CombinedOptimizer) with optimizers that follow the run's schedule.
///
/// The rates of all steps are a table on the device, from which each step reads its rate; the last one is used for all further
/// steps.
///
/// # Examples
/// ```
/// use brisk_nn::{Activation, Linear, ParameterGroup, ParametersBuilder, Schedule, Scheduled, Sgd, CombinedOptimizer};
///
/// let mut builder = ParametersBuilder::new();
/// Linear::new(&mut builder, "head", 8, 2, Activation::identity());
/// let params = builder.build(0);
/// let group = |name| ParameterGroup::new(params.ids_where(|entry| entry.name == name));
/// let [weight, bias] = ["head.weight", "head.bias"].map(group);
/// // The bias is trained in the first 100 steps of 400.
/// let early = Schedule::PiecewiseLinear { points: vec![(0.into(), 0.1), (100.into(), 0.0)] };
/// let bias = Scheduled::new(Sgd::new(&params).groups(&params, &[bias])?, &early, 400);
/// let optimizer = CombinedOptimizer::new().and(Sgd::new(&params).groups(&params, &[weight])?).and(bias);
/// # Ok::<(), brisk_nn::Error>(())
/// ```
#[derive(Debug)]
pub struct Scheduled<O> {
    optimizer: O,
    rates: Vec<f32>,
    rate: Persistent,
    /// Whether the schedule can be followed.
    check: Result<(), Error>,
}

impl<O: Optimizer> Scheduled<O> {
    /// `optimizer` with the rates of `schedule` in a run of `total_steps`, including skipped steps. An invalid schedule is an
    /// error when the step is recorded.
    pub fn new(optimizer: O, schedule: &Schedule, total_steps: usize) -> Self {
        let check = schedule.check(total_steps.max(1));
        let rates = match &check {
            Ok(()) => schedule.table(0..total_steps.max(1), total_steps.max(1)),
            Err(_) => vec![0.0],
        };
        Self { optimizer, rates, rate: Persistent::new("rate", DType::F32, 1), check }
    }
}

/// The rate of the step, even if it is skipped.
#[derive(Debug, Clone, Copy)]
struct RateAtStep;

impl Rule<1, 0, 1> for RateAtStep {
    fn values(&self) -> [StepValue; 1] {
        [StepValue::Entry { of: StepCount::Steps, every: 1 }]
    }

    #[inline(always)]
    fn takes_place<N: Number>(&self, _is_skipped: N, _: [N; 1]) -> N {
        N::constant(1.0)
    }

    #[inline(always)]
    fn update<N: Number>(&self, [rate]: [N; 1], []: [N; 0], _: [N; 1]) -> [N; 1] {
        [rate]
    }
}

impl<O: Optimizer> Optimizer for Scheduled<O> {
    #[track_caller]
    fn record(&self, graph: &Graph, params: &Parameters, inputs: &StepInputs) {
        if let Err(error) = &self.check {
            return graph.fail(error.clone());
        }
        graph.varies_by("scheduled", &inputs.state);
        let n = self.rates.len();
        let table = graph.constant("rates", &self.rates, &[n]);
        let kernel = Update::new("rate_at_step", RateAtStep, 1).table_len(n);
        graph.push(kernel, &[table.slice(), graph.buffer(&inputs.state), graph.buffer(&self.rate)]);
        self.optimizer.record(graph, params, &StepInputs { lr: self.rate.clone(), state: inputs.state.clone() });
    }

    fn skips(&self) -> bool {
        self.optimizer.skips()
    }

    fn can_shard(&self) -> bool {
        self.optimizer.can_shard()
    }

    #[track_caller]
    fn record_averaged(&self, graph: &Graph, params: &Parameters) -> Option<Parameters> {
        self.optimizer.record_averaged(graph, params)
    }

    fn trains(&self, id: ParameterId) -> bool {
        self.optimizer.trains(id)
    }

    fn described(&self, id: ParameterId) -> String {
        self.optimizer.described(id)
    }

    fn state(&self) -> Vec<(String, &Persistent)> {
        self.optimizer.state()
    }
}
