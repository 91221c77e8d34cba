use brisk_kernels::DType;
use brisk_tensor::{Graph, Persistent};

/// The inputs of every optimizer besides the gradients.
#[derive(Debug, Clone)]
pub struct StepInputs {
    /// Learning rates, f32, one for each batch of the epoch; the last one is used for all further batches. They must be written
    /// before the first step.
    pub lr: Persistent,
    /// The state of the run: the batch index, the number of steps, whether to skip this step, and the number of skipped steps
    /// ([`STATE_LEN`](brisk_kernels::STATE_LEN)).
    pub state: Persistent,
}

impl StepInputs {
    /// Learning rates of `n_batches` batches, and the [state](Graph::state) of the graph, from which its random numbers follow. A
    /// second optimizer in the same graph has a [state](Graph::state_buffer) of its own.
    pub fn new(graph: &Graph, n_batches: usize) -> Self {
        Self { lr: Persistent::required("lr", DType::F32, n_batches), state: graph.state() }
    }
}
