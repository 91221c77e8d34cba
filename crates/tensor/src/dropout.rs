use brisk_kernels::Dropout;
use brisk_program::{Persistent, Slice};

use crate::operation::check_kernel;
use crate::{Backward, Error, Forward, Mode, Operation, Tensor};

impl Tensor {
    /// Sets each element to 0 with probability `p` and divides the others by `1 - p`. A graph for inference leaves all elements as they are.
    ///
    /// The draw depends on `seed`, the position of this operation in the graph, the number of steps in `state` and the element. So a run is
    /// reproducible, and each step draws a new mask if the graph ends with [`Graph::advance`](crate::Graph::advance).
    ///
    /// # Errors
    /// [`Error::Program`] if `p` is not within 0 to 1, or `state` is not [`Graph::state_buffer`](crate::Graph::state_buffer)'s.
    /// # Reference
    /// `torch.nn.functional.dropout`.
    #[track_caller]
    pub fn dropout(&self, p: f32, seed: u64, state: &Persistent) -> Self {
        let graph = self.graph();
        let kernel = Dropout { n: self.n_elements(), p, seed, stream: graph.n_uncast() as u32 };
        if graph.mode() == Mode::Inference {
            return match check_kernel(&kernel) {
                Ok(()) => self.clone(),
                Err(error) => self.refused(error, self.shape()),
            };
        }
        let state = graph.with_program(|program| program.persistent(state));
        graph.apply(Draw { kernel, state }, &[self])
    }
}

#[derive(Debug)]
struct Draw {
    kernel: Dropout,
    state: Slice,
}

impl Operation for Draw {
    fn name(&self) -> &'static str {
        "dropout"
    }

    fn input_names(&self) -> &'static [&'static str] {
        &["x"]
    }

    fn output_shape(&self, inputs: &[&Tensor]) -> Result<Vec<usize>, Error> {
        check_kernel(&self.kernel)?;
        Ok(inputs[0].shape().to_vec())
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        let (x, y) = (forward.input(0), forward.output());
        forward.push(self.kernel, &[x, self.state, y])
    }

    fn backward(&self, backward: &mut Backward<'_>) -> Result<(), Error> {
        let dy = backward.grad();
        backward.give(0, self.kernel, &[dy, self.state])
    }
}
