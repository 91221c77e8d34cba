use brisk_kernels::expr::Expr;
use brisk_kernels::{Activation, Draws, Map, MapInput};
use brisk_program::Slice;

use crate::error::Error;
use crate::graph::Mode;
use crate::graph::backward::Backward;
use crate::graph::operation::{Forward, Operation, Signature};
use crate::graph::tensor::Tensor;

impl Tensor {
    /// Sets each element to 0 with probability `p` and divides the others by `1 - p`: a new mask in each step. A graph for
    /// inference leaves all elements as they are.
    ///
    /// The mask follows from the graph's [state](crate::Graph::state) and [seed](crate::Graph::seed).
    ///
    /// # Errors
    /// [`Error::Refused`] if `p` is not within 0 to 1; [`Error::SameDraws`] when the graph is [compiled](crate::Graph::compile),
    /// if it does not advance its state.
    /// # Reference
    /// `torch.nn.functional.dropout`.
    #[track_caller]
    pub fn dropout(&self, p: f32) -> Self {
        self.dropout_from(p, None)
    }

    /// [`dropout`](Self::dropout) with a seed of its own.
    ///
    /// # Errors
    /// As [`dropout`](Self::dropout).
    #[track_caller]
    pub fn dropout_seeded(&self, p: f32, seed: u64) -> Self {
        self.dropout_from(p, Some(seed))
    }

    #[track_caller]
    fn dropout_from(&self, p: f32, seed: Option<u64>) -> Self {
        if !(0.0..=1.0).contains(&p) {
            let error = Error::Refused { op: "dropout", found: format!("p = {p}"), expected: "a probability, 0 to 1" };
            return self.refused(error, self.shape());
        }
        if self.graph().mode() == Mode::Inference || p == 0.0 {
            return self.clone();
        }
        let (draws, state) = self.graph().draw("dropout", self.shape(), seed);
        self.graph().apply(Dropout { p, draws, state }, &[self])
    }
}

#[derive(Debug)]
struct Dropout {
    p: f32,
    draws: Draws,
    state: Slice,
}

impl Dropout {
    fn kernel(&self, n: usize) -> Map {
        Map::dropout(n, self.p, self.draws)
    }
}

impl Operation for Dropout {
    fn signature(&self) -> Signature {
        Signature::new("dropout", &["x"])
    }

    fn output_shape(&self, inputs: &[&Tensor]) -> Result<Vec<usize>, Error> {
        crate::graph::operation::check_kernel(&self.kernel(inputs[0].n_elements()))?;
        Ok(inputs[0].shape().to_vec())
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        let (x, y) = (forward.input(0), forward.output());
        forward.push(self.kernel(x.len()), &[x, self.state, y])
    }

    fn backward(&self, backward: &mut Backward<'_>) -> Result<(), Error> {
        let (dy, y) = (backward.grad(), backward.output());
        let Some(slope) = backward.activation_below(0).and_then(Activation::grad_from_output) else {
            return backward.give(0, self.kernel(dy.len()), &[dy, self.state]);
        };
        // The gradient before the activation, whose output is `y` divided by the scale where it is kept: the activation's own
        // output need not be kept.
        let scale = 1.0 / (1.0 - self.p);
        let [of_dy, of_y, u] = [0, 1, 2].map(Expr::input);
        let grad = slope.substitute(&[of_dy * scale, of_y / scale]);
        if slope.evaluate(&[1.0, 0.0]) == 0.0 {
            // As for ReLU, 0 where an element was dropped.
            return backward.give_through(0, Map::flat(dy.len(), grad), &[dy, y]);
        }
        let mut kernel = Map::flat(dy.len(), grad);
        kernel.inputs.push(MapInput::uniform(&[dy.len()], self.draws));
        kernel.outputs[0].expr = u.lt(self.p).select(0.0, &kernel.outputs[0].expr);
        backward.give_through(0, kernel, &[dy, y, self.state])
    }
}
