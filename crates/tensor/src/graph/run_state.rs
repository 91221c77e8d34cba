//! The state of the run that replays a graph: the batch index, and what random numbers follow from.

use std::ops::Range;

use brisk_kernels::{Advance, DType, Draws, STATE_LEN};
use brisk_program::{Persistent, Slice};

use crate::error::Error;
use crate::graph::Graph;
use crate::graph::state_use::IndexUse;
use crate::place::Place;

/// # Random numbers
///
/// A graph has a [`state`](Self::state), whose number of steps determines what its operations draw, together with the
/// [seed](Self::seed), the number of earlier draws in the graph, and the element. So every step draws new numbers, a resumed run
/// draws what the uninterrupted one would have drawn, and the backward pass, or a [checkpointed](Self::checkpoint) segment, draws
/// what the forward pass drew. Replicas draw what one device would draw for their rows of the batch if the first dimension of a
/// value is that of rows, such as `[n, …]` or `[n * length, …]`; otherwise they draw different numbers.
impl Graph {
    /// The state of the run that records itself into this graph: batch index, number of steps, whether to skip, and skipped
    /// steps. Give it to the optimizer, and end the step with [`advance`](Self::advance). Created on first use.
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

    /// Makes `state` the [`state`](Self::state) of this graph, such as that of another graph of the same run. Call it before
    /// anything is drawn.
    pub fn share_state(&self, state: &Persistent) {
        self.inner_mut().source.state = Some(state.clone());
    }

    /// Sets the seed of the random numbers that are drawn from now on; 0 by default.
    pub fn seed(&self, seed: u64) {
        self.inner_mut().source.seed = seed;
    }

    /// A buffer for a state, such as that of a second optimizer, besides the graph's own [`state`](Self::state).
    pub fn state_buffer() -> Persistent {
        Persistent::new("state", DType::U32, STATE_LEN)
    }

    /// Declares that this graph does not advance `state`, because another graph or the host does, such as when two graphs
    /// alternate on the same batch. Otherwise [`compile`](Self::compile) refuses a graph that [gathers](Self::batch) batches or
    /// [draws](Self::uniform) random numbers and never advances the state. It holds for what was recorded before.
    pub fn hold(&self, state: &Persistent) {
        let state = self.buffer(state);
        let mut inner = self.inner_mut();
        inner.index_uses.iter_mut().filter(|cursor| cursor.state == state).for_each(|cursor| cursor.is_held = true);
    }

    /// Declares that `op`, which is recorded now, differs from batch to batch by `state`, such as an optimizer with a learning
    /// rate for each of them: [`compile`](Self::compile) refuses a graph that never advances it, unless it is [held](Self::hold).
    #[track_caller]
    pub fn varies_by(&self, op: &'static str, state: &Persistent) {
        let state = self.buffer(state);
        let mut inner = self.inner_mut();
        let place = Place::caller(&inner.scopes, inner.outer);
        inner.index_uses.push(IndexUse { op, state, place, is_held: false, draws: false });
    }

    /// Ends a step: the batch index and the step count increase by one; a skipped step is counted as such. Nothing that uses the
    /// state may be recorded after it, nor a second `advance`: [`compile`](Self::compile) returns [`Error::AfterAdvance`].
    ///
    /// # Errors
    /// [`Error::Program`] if `state` is not [`STATE_LEN`] u32.
    #[track_caller]
    pub fn advance(&self, state: &Persistent) {
        let state = self.buffer(state);
        self.push(Advance, &[state]);
        self.inner_mut().advanced.push(state);
    }

    /// Checks that the states of batches and of random numbers advance, otherwise each replay would see the same, and that
    /// nothing uses one after that, when it is that of the next step.
    pub(super) fn check_cursors(&self) -> Result<(), Error> {
        let inner = self.inner();
        let names: Vec<_> = inner.program.kernel_names().collect();
        let stays = |cursor: &&IndexUse| {
            !cursor.is_held && !inner.program.readers(cursor.state).into_iter().any(|at| names[at] == "advance")
        };
        match inner.index_uses.iter().find(stays) {
            None => inner.advanced.iter().try_for_each(|&state| {
                let mut uses = inner.program.readers(state).into_iter().map(|at| names[at]);
                match uses.find(|&op| op == "advance").and_then(|_| uses.next()) {
                    Some(op) => Err(Error::AfterAdvance { op, graph: inner.program.name().to_owned() }),
                    None => Ok(()),
                }
            }),
            Some(&IndexUse { op, ref place, draws, .. }) => {
                let graph = inner.program.name().to_owned();
                let error = if draws { Error::SameDraws { op, graph } } else { Error::NotAdvanced { op, graph } };
                Err(Error::At { error: Box::new(error), place: place.clone() })
            }
        }
    }

    /// The draws of the next stream for values of `shape`, and the state that they follow from.
    #[track_caller]
    pub(crate) fn draw(&self, op: &'static str, shape: &[usize], seed: Option<u64>) -> (Draws, Slice) {
        let state = self.buffer(&self.state());
        let mut inner = self.inner_mut();
        let place = Place::caller(&inner.scopes, inner.outer);
        inner.index_uses.push(IndexUse { op, state, place, is_held: false, draws: true });
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
