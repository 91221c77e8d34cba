use std::ops::ControlFlow;

use brisk_loader::Order;
use brisk_nn::tensor::program::{Device, Executable};
use brisk_nn::tensor::{DType, Graph, Persistent, Precision};
use brisk_nn::{Module, Parameters};

use crate::feed::{Cursor, Feed, OpenFeed};
use crate::{Error, ResidentRows, Standardisation};

/// A model's outputs over a whole table: recorded without a tape, scores collected on the device and read once, or once a chunk of
/// a table that is streamed.
#[derive(Debug)]
pub struct Scorer<'a> {
    graph: Graph,
    executable: Executable,
    state: Persistent,
    scores: Persistent,
    feed: Feed<'a>,
    /// Batches whose scores are collected before they are read.
    turn_batches: usize,
}

impl<'a> Scorer<'a> {
    /// Records and compiles the evaluation of `model`, which gives one number a row, over rows that are on the device, with products in
    /// any precision.
    ///
    /// # Errors
    /// [`Error::Tensor`] if the model does not take such rows, or the device has no room.
    pub fn new(
        device: &Device,
        model: &dyn Module,
        params: &Parameters,
        rows: &ResidentRows,
        scale: &Standardisation,
        batch_rows: usize,
        precision: Precision,
    ) -> Result<Self, Error> {
        Self::of_feed(device, model, params, &Feed::of_resident(rows, Order::Sequential, batch_rows), scale, precision)
    }

    /// The same over the rows of a feed, resident or streamed.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn of_feed(
        device: &Device,
        model: &dyn Module,
        params: &Parameters,
        feed: &Feed<'a>,
        scale: &Standardisation,
        precision: Precision,
    ) -> Result<Self, Error> {
        let batch_rows = feed.batch_rows();
        let fits = device.max_binding_bytes() / (batch_rows * size_of::<f32>());
        let turn_batches = feed.turn_batches().min(fits).max(1);
        let graph = Graph::inference("evaluate");
        let state = Graph::state_buffer();
        let scores = Persistent::new("scores", DType::F32, (turn_batches * batch_rows).min(feed.n_rows()));
        let batch = feed.record(&graph, scale, &state)?;
        let bound = params.bind(&graph)?;
        let logits = graph.autocast(precision, || batch.forward(model, &bound)?.cast(DType::F32))?;
        graph.store(&logits, &state, &scores)?;
        graph.advance(&state)?;
        let executable = graph.compile(device)?;
        Ok(Self { graph, executable, state, scores, feed: feed.clone(), turn_batches })
    }

    /// The model's output for every row, in the order of the feed's first epoch: the table's, unless it is shuffled.
    ///
    /// # Errors
    /// [`Error::Tensor`] if the device fails; [`Error::Stream`] if the source of streamed rows does.
    pub fn scores(&self) -> Result<Vec<f32>, Error> {
        self.feed.open(self.executable.device(), |open| self.scores_of(open))
    }

    /// The same with the feed's threads running.
    pub(crate) fn scores_of(&self, open: &mut OpenFeed<'_>) -> Result<Vec<f32>, Error> {
        let device = self.executable.device();
        let mut all = Vec::with_capacity(self.feed.n_rows());
        open.each_turn(0, Cursor::Turn, self.turn_batches, |turn| {
            device.write(&self.state, &[0_u32; 4])?;
            self.executable.run(turn.n_batches)?;
            let scores: Vec<f32> = device.read(&self.scores)?;
            all.extend_from_slice(&scores[..turn.n_rows]);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(all)
    }

    /// What is replayed, to plan memory with.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The rows.
    pub fn feed(&self) -> &Feed<'a> {
        &self.feed
    }
}
