//! Random numbers, from the graph that records the operation that reads them.

use std::ops::Range;

use brisk_kernels::expr::Expr;
use brisk_kernels::{DType, Draws, Map, MapInput, MapOutput};
use brisk_program::{Persistent, Slice};

use crate::graph::Graph;
use crate::place::Place;
use crate::rows::Cursor;
use crate::tensor::Tensor;

/// Where a graph's random numbers come from.
#[derive(Debug, Default)]
pub(crate) struct Source {
    state: Option<Persistent>,
    seed: u64,
    /// Streams so far: each operation that draws has one or more.
    n_streams: u32,
    /// The rows of the whole batch that the graph computes.
    pub(crate) rows: Range<usize>,
}

/// # Random numbers
///
/// A graph has a [`state`](Self::state), whose number of steps determines what its operations draw, together with the [seed](Self::seed), the number of earlier draws in
/// the graph, and the element. So every step draws new numbers, a resumed run draws what the uninterrupted one would have drawn, and the backward pass, or a
/// [checkpointed](Self::checkpoint) segment, draws what the forward pass drew. Replicas draw what one device would draw for their rows of the batch if the first dimension of
/// a value is that of rows, such as `[n, …]` or `[n * length, …]`; otherwise they draw different numbers.
impl Graph {
    /// The state of the run that records itself into this graph: batch index, number of steps, whether to skip, and skipped steps. Give it to the optimizer, and end the step with
    /// [`advance`](Self::advance). Created on first use.
    ///
    /// # Examples
    /// ```
    /// use brisk_tensor::Graph;
    /// use brisk_tensor::program::Device;
    ///
    /// let graph = Graph::training("step");
    /// let x = graph.constant("x", &[1.0; 8], &[8]).dropout(0.5);
    /// // … a loss, its backward pass and an optimizer with `graph.state()`
    /// graph.advance(&graph.state());
    /// graph.compile(&Device::cpu()?)?;
    /// # Ok::<(), brisk_tensor::Error>(())
    /// ```
    pub fn state(&self) -> Persistent {
        self.inner_mut().source.state.get_or_insert_with(Self::state_buffer).clone()
    }

    /// Makes `state` the [`state`](Self::state) of this graph, such as that of another graph of the same run. Call it before anything is drawn.
    pub fn share_state(&self, state: &Persistent) {
        self.inner_mut().source.state = Some(state.clone());
    }

    /// Sets the seed of the random numbers that are drawn from now on; 0 by default.
    pub fn seed(&self, seed: u64) {
        self.inner_mut().source.seed = seed;
    }

    /// Random numbers, uniform in `[0, 1)`, new ones in each step: for noise, or for decisions of your own. No gradient passes through them.
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

    /// The draws of the next stream for values of `shape`, and the state that they follow from.
    #[track_caller]
    pub(crate) fn draw(&self, op: &'static str, shape: &[usize], seed: Option<u64>) -> (Draws, Slice) {
        let state = self.buffer(&self.state());
        let mut inner = self.inner_mut();
        let place = Place::caller(&inner.scopes, inner.outer);
        inner.cursors.push(Cursor { op, state, place, is_held: false });
        let source = &mut inner.source;
        let draws = Draws { seed: seed.unwrap_or(source.seed), stream: source.n_streams, ..Draws::default() };
        source.n_streams += 1;
        let Range { start, end } = source.rows;
        let n_rows = end - start;
        let by_row = shape.first().is_some_and(|n| n_rows > 0 && n % n_rows == 0);
        let of_row = shape.iter().product::<usize>().checked_div(n_rows).unwrap_or(0);
        // Indices wrap, as those of the kernel do.
        let draws =
            if by_row { Draws { first: (start * of_row) as u32, ..draws } } else { Draws { part: start as u32, ..draws } };
        (draws, state)
    }
}
