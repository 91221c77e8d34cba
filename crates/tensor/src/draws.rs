//! Tensors of random numbers.

use brisk_kernels::expr::Expr;
use brisk_kernels::{DType, Draws, Map, MapInput, MapOutput};
use brisk_program::Slice;

use crate::graph::Graph;
use crate::graph::tensor::Tensor;

impl Graph {
    /// Random numbers, uniform in `[0, 1)`, new in each step: for noise, or your own decisions. They have no gradient.
    ///
    /// # Examples
    /// Stochastic depth, which skips a block for some rows:
    /// ```
    /// use brisk_tensor::{Graph, Tensor};
    ///
    /// fn residual(graph: &Graph, x: &Tensor, block: &Tensor, p: f32) -> Tensor {
    ///     let u = graph.uniform(&[x.shape()[0], 1]);
    ///     x + block * u.map(|u| u.lt(p).select(0.0, 1.0 / (1.0 - p)))
    /// }
    /// ```
    /// # Errors
    /// [`Error::Program`](crate::Error::Program) for a shape without elements.
    /// # Reference
    /// `torch.rand`.
    #[track_caller]
    pub fn uniform(&self, shape: &[usize]) -> Tensor {
        self.drawn("uniform", shape, 1, Expr::input(0))
    }

    /// Random numbers, normal with mean 0 and variance 1, new ones in each step. No gradient passes through them.
    ///
    /// # Errors
    /// As [`uniform`](Self::uniform).
    /// # Reference
    /// `torch.randn`; Box & Muller 1958.
    #[track_caller]
    pub fn normal(&self, shape: &[usize]) -> Tensor {
        let [u, v] = [0, 1].map(Expr::input);
        self.drawn("normal", shape, 2, ((1.0 - u).log() * -2.0).sqrt() * (v * std::f32::consts::TAU).cos())
    }

    #[track_caller]
    fn drawn(&self, op: &'static str, shape: &[usize], n: usize, expr: Expr) -> Tensor {
        let draws: Vec<(Draws, Slice)> = (0..n).map(|_| self.draw(op, shape, None)).collect();
        let inputs = draws.iter().map(|(draws, _)| MapInput::uniform(shape, *draws)).collect();
        let map = Map { shape: shape.to_vec(), inputs, outputs: vec![MapOutput { expr, dtype: DType::F32 }] };
        let y = self.transient(op, DType::F32, map.len());
        let args: Vec<Slice> = draws.iter().map(|(_, state)| *state).chain([y]).collect();
        match self.try_push(map, &args) {
            Ok(()) => self.wrap(y, shape),
            Err(error) => self.failed(error, DType::F32, shape),
        }
    }
}
