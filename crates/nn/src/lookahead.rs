use brisk_kernels::{DType, Lookahead as Kernel, LookaheadPhase};
use brisk_tensor::program::Slice;
use brisk_tensor::{Error, Graph, Persistent};

use crate::{Optimizer, Parameters, StepInputs};

/// An optimizer whose weights are pulled back to slow weights, every few steps: `slow = d slow + (1 - d) weights`, and the weights are set to that. Running statistics
/// and other buffers of the model are treated as the weights are.
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
    slow: Persistent,
    /// The slow values of buffers, one after the other, each from a multiple of 64 elements on. As long as the weights, as the state of any optimizer is.
    slow_buffers: Persistent,
}

/// The elements at multiples of which slices may start.
const ALIGN: usize = 64;

impl<O: Optimizer> Lookahead<O> {
    /// `optimizer` with slow weights that are updated after every `every` steps, the i-th time with the i-th of `decays`, or with the last.
    pub fn new(optimizer: O, params: &Parameters, every: u32, decays: Vec<f32>) -> Self {
        let state = |name| Persistent::new(name, DType::F32, params.state_len());
        let (slow, slow_buffers) = (state("lookahead.slow"), state("lookahead.slow_buffers"));
        Self { optimizer, every, decays, slow, slow_buffers }
    }

    fn record_phase(&self, graph: &Graph, params: &Parameters, inputs: &StepInputs, phase: LookaheadPhase) {
        let n_decays = self.decays.len();
        let decays = graph.constant("decays", &self.decays, &[n_decays]);
        let push = |n, weights: Slice, slow: Slice| {
            let kernel = Kernel { n, every: self.every, n_decays, phase };
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
        if let Err(error) = params.check_whole("lookahead") {
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

    fn state(&self) -> Vec<(String, &Persistent)> {
        let own = [("lookahead.slow", &self.slow), ("lookahead.slow_buffers", &self.slow_buffers)];
        let own = own.into_iter().map(|(name, buffer)| (name.to_owned(), buffer));
        self.optimizer.state().into_iter().chain(own).collect()
    }
}
