use brisk_kernels::{DType, Interval, Number, Rule, StepCount, StepValue, Update};
use brisk_tensor::program::Slice;
use brisk_tensor::{Error, Graph, Persistent};

use crate::optimizer::{Optimizer, refused_average};
use crate::origin::Origin;
use crate::parameters::{ParameterId, Parameters};
use crate::step_inputs::StepInputs;

/// An optimizer whose weights are pulled back to slow weights every few steps: `slow = d slow + (1 - d) weights`, and the weights
/// are set to `slow`.
///
/// Running statistics and other buffers of the model are averaged in the same way. The slow weights start as the initial weights,
/// and the slow buffers as the buffers after the first forward pass. Skipped steps do not count.
///
/// # Reference
/// Zhang et al. 2019, *Lookahead Optimizer: k steps forward, 1 step back*, arXiv:1907.08610, with `d = 1 - α`.
/// # Examples
/// ```
/// use brisk_nn::{Activation, Linear, Lookahead, ParametersBuilder, Sgd};
///
/// let mut builder = ParametersBuilder::new();
/// Linear::new(&mut builder, "head", 8, 2, Activation::identity());
/// let params = builder.build(0);
/// let optimizer = Lookahead::new(Sgd::new(&params), &params, 5, vec![0.5]);
/// ```
#[derive(Debug)]
pub struct Lookahead<O> {
    optimizer: O,
    every: u32,
    decays: Vec<f32>,
    end: Option<u32>,
    origin: Origin,
    slow: Persistent,
    /// The slow values of the buffers, each at a multiple of 64 elements. As long as the weights, as required of an optimizer's
    /// state.
    slow_buffers: Persistent,
}

/// Slices may start at multiples of this many elements.
const ALIGN: usize = 64;

impl<O: Optimizer> Lookahead<O> {
    /// `optimizer` with slow weights that are updated after every `every` steps: the i-th update uses the i-th of `decays`, or
    /// the last of them.
    pub fn new(optimizer: O, params: &Parameters, every: u32, decays: Vec<f32>) -> Self {
        let state = |name| Persistent::new(name, DType::F32, params.state_len());
        let (slow, slow_buffers) = (state("lookahead.slow"), state("lookahead.slow_buffers"));
        Self { optimizer, every, decays, end: None, origin: params.origin(), slow, slow_buffers }
    }

    /// Sets the weights to the slow weights after step number `total_steps` of the run, including skipped steps: the result of
    /// the run is then the average, even if the steps since the last update are fewer than `every`.
    pub fn ending_at(mut self, total_steps: usize) -> Self {
        self.end = Some(u32::try_from(total_steps).unwrap_or(u32::MAX));
        self
    }

    /// Calls `push` with the number, the weights and the slow weights of all parameters, then those of each buffer.
    fn each(&self, graph: &Graph, params: &Parameters, push: impl Fn(usize, Slice, Slice)) {
        push(params.values().len(), graph.buffer(params.values()), graph.buffer(&self.slow));
        let mut at = 0;
        for buffer in params.buffers() {
            let n = buffer.values().len();
            if at + n > self.slow_buffers.len() {
                let found = format!("buffers of more than {} elements, as many as the weights", self.slow_buffers.len());
                return graph.fail(Error::Refused {
                    op: "lookahead",
                    found,
                    expected: "a model with fewer buffers than weights",
                });
            }
            push(n, graph.buffer(buffer.values()), graph.buffer(&self.slow_buffers).slice(at..at + n));
            at = (at + n).next_multiple_of(ALIGN);
        }
    }
}

/// Before the optimizer: the slow weights are the weights before the first step.
#[derive(Debug, Clone, Copy)]
struct Start;

impl Rule<1, 1, 1> for Start {
    fn values(&self) -> [StepValue; 1] {
        [StepValue::UpTo { of: StepCount::Updates, last: 1 }]
    }

    #[inline(always)]
    fn takes_place<N: Number>(&self, _is_skipped: N, [is_first]: [N; 1]) -> N {
        is_first
    }

    #[inline(always)]
    fn update<N: Number>(&self, _: [N; 1], [weight]: [N; 1], _: [N; 1]) -> [N; 1] {
        [weight]
    }
}

/// After the optimizer: the weights and the slow weights become a mean of both every few steps, and the weights become the slow
/// weights at the end of the run.
#[derive(Debug, Clone, Copy)]
struct Pull {
    every: u32,
    end: Option<u32>,
}

impl Rule<4, 0, 2> for Pull {
    fn values(&self) -> [StepValue; 4] {
        let (of, every) = (StepCount::Updates, self.every);
        let is_last = StepValue::Due { of: StepCount::Steps, first: self.end.unwrap_or(u32::MAX), every: u32::MAX };
        [StepValue::Due { of, first: every, every }, StepValue::Skipped, is_last, StepValue::Entry { of, every }]
    }

    fn settings(&self) -> Vec<(&'static str, f32, Interval)> {
        vec![("end", self.end.unwrap_or(u32::MAX) as f32, Interval::Positive)]
    }

    #[inline(always)]
    fn takes_place<N: Number>(&self, is_skipped: N, [is_due, _, is_last, _]: [N; 4]) -> N {
        (is_due * (-is_skipped + 1.0) + is_last).is_positive()
    }

    #[inline(always)]
    fn update<N: Number>(&self, [is_due, is_skipped, _, decay]: [N; 4], []: [N; 0], [weight, slow]: [N; 2]) -> [N; 2] {
        let mean = decay * slow + (-decay + 1.0) * weight;
        let slow = (is_due * (-is_skipped + 1.0)).select(mean, slow);
        [slow, slow]
    }
}

impl<O: Optimizer> Optimizer for Lookahead<O> {
    #[track_caller]
    fn record(&self, graph: &Graph, params: &Parameters, inputs: &StepInputs) {
        let check_state = || params.check_state("lookahead", self.origin, &self.slow);
        if let Err(error) = params.check_whole("lookahead").and_then(|()| check_state()) {
            return graph.fail(error);
        }
        if self.decays.is_empty() || !self.decays.iter().all(|decay| (0.0..=1.0).contains(decay)) {
            let found = format!("decays {:?}", self.decays);
            return graph.fail(Error::Refused { op: "lookahead", found, expected: "at least one, each from 0 to 1" });
        }
        let state = graph.buffer(&inputs.state);
        self.each(graph, params, |n, weights, slow| graph.push(Update::new("lookahead", Start, n), &[weights, state, slow]));
        self.optimizer.record(graph, params, inputs);
        let (pull, n_decays) = (Pull { every: self.every, end: self.end }, self.decays.len());
        let decays = graph.constant("decays", &self.decays, &[n_decays]).slice();
        self.each(graph, params, |n, weights, slow| {
            graph.push(Update::new("lookahead", pull, n).table_len(n_decays), &[decays, state, weights, slow]);
        });
    }

    fn skips(&self) -> bool {
        self.optimizer.skips()
    }

    /// Fails for an optimizer with an average, which knows nothing of the slow weights.
    #[track_caller]
    fn record_averaged(&self, graph: &Graph, params: &Parameters) -> Option<Parameters> {
        refused_average(graph, "lookahead", self.optimizer.record_averaged(graph, params))
    }

    fn trains(&self, id: ParameterId) -> bool {
        self.optimizer.trains(id)
    }

    fn described(&self, id: ParameterId) -> String {
        self.optimizer.described(id)
    }

    fn state(&self) -> Vec<(String, &Persistent)> {
        let own = [("lookahead.slow", &self.slow), ("lookahead.slow_buffers", &self.slow_buffers)];
        let own = own.into_iter().map(|(name, buffer)| (name.to_owned(), buffer));
        self.optimizer.state().into_iter().chain(own).collect()
    }
}
