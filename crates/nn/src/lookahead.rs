use brisk_kernels::{DType, Lookahead as Kernel, LookaheadPhase};
use brisk_tensor::program::Slice;
use brisk_tensor::{Error, Graph, Persistent};

use crate::origin::Origin;
use crate::{Optimizer, ParameterId, Parameters, StepInputs};

/// An optimizer whose weights are pulled back to slow weights every few steps: `slow = d slow + (1 - d) weights`, and the weights are set to `slow`.
///
/// Running statistics and other buffers of the model are averaged in the same way. The slow weights start as the initial weights, and the slow buffers as the buffers
/// after the first forward pass. Skipped steps do not count.
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
    /// The slow values of the buffers, each at a multiple of 64 elements. As long as the weights, as required of an optimizer's state.
    slow_buffers: Persistent,
}

/// Slices may start at multiples of this many elements.
const ALIGN: usize = 64;

impl<O: Optimizer> Lookahead<O> {
    /// `optimizer` with slow weights that are updated after every `every` steps: the i-th update uses the i-th of `decays`, or the last of them.
    pub fn new(optimizer: O, params: &Parameters, every: u32, decays: Vec<f32>) -> Self {
        let state = |name| Persistent::new(name, DType::F32, params.state_len());
        let (slow, slow_buffers) = (state("lookahead.slow"), state("lookahead.slow_buffers"));
        Self { optimizer, every, decays, end: None, origin: params.origin(), slow, slow_buffers }
    }

    /// Sets the weights to the slow weights after step number `total_steps` of the run, including skipped steps: the result of the run is then the average, even if the
    /// steps since the last update are fewer than `every`.
    pub fn ending_at(mut self, total_steps: usize) -> Self {
        self.end = Some(u32::try_from(total_steps).unwrap_or(u32::MAX));
        self
    }

    fn record_phase(&self, graph: &Graph, params: &Parameters, inputs: &StepInputs, phase: LookaheadPhase) {
        let n_decays = self.decays.len();
        let decays = graph.constant("decays", &self.decays, &[n_decays]);
        let push = |n, weights: Slice, slow: Slice| {
            let kernel = Kernel { n, every: self.every, n_decays, end: self.end, phase };
            graph.push(kernel, &[decays.slice(), graph.buffer(&inputs.state), weights, slow]);
        };
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
        self.record_phase(graph, params, inputs, LookaheadPhase::Start);
        self.optimizer.record(graph, params, inputs);
        self.record_phase(graph, params, inputs, LookaheadPhase::End);
    }

    fn skips(&self) -> bool {
        self.optimizer.skips()
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
