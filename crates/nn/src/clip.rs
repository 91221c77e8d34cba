use brisk_kernels::{DType, MapReduce, Reducer, clip_by_norm, clip_by_value};
use brisk_tensor::{Error, Graph, Tensor};

use crate::parameters::Parameters;

/// Clipping is an error, [`Error::Refused`](brisk_tensor::Error::Refused), before the backward pass of a graph in which the
/// parameters are bound, after the optimizer's step, and for other parameters than those of its loss.
impl Parameters {
    /// Records that the gradients are scaled down so that their norm, taken over all of them, is at most `max_norm`. Call it
    /// after the backward pass and before the optimizer. The result is the norm before scaling, on the device.
    ///
    /// # Errors
    /// [`Error::Program`](brisk_tensor::Error::Program) if `max_norm` is negative or NaN.
    /// # Reference
    /// `torch.nn.utils.clip_grad_norm_`.
    #[track_caller]
    pub fn clip_grad_norm(&self, graph: &Graph, max_norm: f32) -> Tensor {
        let norm = self.grad_norm(graph);
        self.clip_grads_with_norm(graph, &norm, max_norm);
        norm
    }

    /// Records the norm of all gradients, on the device; if they are [sharded](Self::sharded), of those that this replica keeps.
    ///
    /// # Reference
    /// `torch.nn.utils.get_total_norm`.
    #[track_caller]
    pub fn grad_norm(&self, graph: &Graph) -> Tensor {
        self.check_gradients("grad_norm", graph);
        let norm = graph.with_program(|program| program.transient("norm", DType::F32, 1));
        let grads = graph.buffer(self.grads());
        graph.push(MapReduce::of(Reducer::Norm, &[grads.len()], &[0]), &[grads, norm]);
        graph.wrap(norm, &[])
    }

    /// Records that gradients are scaled by the factor that brings `norm` to at most `max_norm`.
    ///
    /// # Errors
    /// [`Error::Program`](brisk_tensor::Error::Program) if `max_norm` is negative or NaN, or if `norm` is not a single number.
    /// # Reference
    /// `torch.nn.utils.clip_grads_with_norm_`.
    #[track_caller]
    pub fn clip_grads_with_norm(&self, graph: &Graph, norm: &Tensor, max_norm: f32) {
        self.check_before_step("clip_grads_with_norm", graph);
        let grads = graph.buffer(self.grads());
        graph.record(|program| program.push(clip_by_norm(grads.len(), max_norm)?, &[norm.slice(), grads]));
    }

    /// Records that each gradient is clamped to `-limit..=limit`.
    ///
    /// # Errors
    /// [`Error::Program`](brisk_tensor::Error::Program) if `limit` is negative or NaN.
    /// # Reference
    /// `torch.nn.utils.clip_grad_value_`.
    #[track_caller]
    pub fn clip_grad_value(&self, graph: &Graph, limit: f32) {
        self.check_before_step("clip_grad_value", graph);
        let grads = graph.buffer(self.grads());
        graph.record(|program| program.push(clip_by_value(grads.len(), limit)?, &[grads]));
    }

    /// Records an error as [`check_gradients`](Self::check_gradients) does, and one if a step has used the gradients already.
    #[track_caller]
    pub(crate) fn check_before_step(&self, op: &'static str, graph: &Graph) {
        self.check_gradients(op, graph);
        if graph.has_backward() && self.is_changed_in(graph) {
            let found = "parameters that a step of this graph has changed".to_owned();
            graph.fail(Error::Refused {
                op,
                found,
                expected: "a call before the optimizer's `record`, which uses the gradients",
            });
        }
    }

    /// Refuses a graph that binds the parameters, to train them, and has no step of them yet.
    pub(crate) fn check_after_step(&self, op: &'static str, graph: &Graph) -> Result<(), Error> {
        if graph.gradients_of(self.values()).is_none() || self.is_changed_in(graph) {
            return Ok(());
        }
        let found = "parameters that no step of this graph has changed yet".to_owned();
        Err(Error::Refused { op, found, expected: "a call after the optimizer's `record`" })
    }

    fn is_changed_in(&self, graph: &Graph) -> bool {
        let values = graph.buffer(self.values());
        graph.with_program(|program| program.n_writes(values)) > 0
    }

    /// Records an error if the graph computes gradients, but not yet, or not these.
    #[track_caller]
    pub(crate) fn check_gradients(&self, op: &'static str, graph: &Graph) {
        if let Err(error) = self.with_gradient(op, graph) {
            graph.fail(error);
        }
    }
}
