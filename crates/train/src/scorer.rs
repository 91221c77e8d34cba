use std::ops::ControlFlow;

use brisk_nn::tensor::program::kernels::STATE_LEN;
use brisk_nn::tensor::program::{Device, Executable};
use brisk_nn::tensor::{DType, Graph, Persistent, Precision, Reduction};
use brisk_nn::{Module, Parameters};

use crate::data_parallel::DataParallel;
use crate::error::Error;
use crate::feed::{BatchTensors, CountFrom, Feed, OpenFeed};
use crate::standardisation::Standardisation;
use crate::task::Task;

/// Rows scored at a time when evaluating.
pub(crate) const EVALUATION_ROWS: usize = 1024;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Evaluation {
    /// `[n_rows, n_outputs]`, row-major.
    pub(crate) outputs: Vec<f32>,
    /// The rows that they are of, unless these are the first rows of the table, in its order.
    pub(crate) rows: Option<Vec<u32>>,
    /// The mean loss of the rows, each of which counts once; `None` if no task was given.
    pub(crate) loss: Option<f64>,
}

/// A model's outputs for all rows of a table: recorded without a tape, collected on the device and read back once, or once per
/// chunk of a streamed table.
#[derive(Debug)]
pub struct Scorer<'a> {
    recorded: RecordedScorer<'a>,
    executable: Executable,
}

/// An evaluation that has been recorded but does not occupy memory yet.
#[derive(Debug)]
pub(crate) struct RecordedScorer<'a> {
    pub(crate) graph: Graph,
    state: Persistent,
    scores: Persistent,
    n_outputs: usize,
    /// The summed loss of each batch.
    losses: Option<Persistent>,
    feed: Feed<'a>,
    params: Parameters,
    scale: Standardisation,
    /// Batches whose scores are collected before they are read.
    range_batches: usize,
    /// The replicas that share the rows of each batch.
    replicas: &'a DataParallel,
}

impl<'a> Scorer<'a> {
    /// Records and compiles the evaluation of `model` over the rows of a feed, resident or streamed, whose columns are
    /// standardised by `scale`, with products in any precision.
    ///
    /// # Errors
    /// [`Error::Setting`] if the rows are on another device; [`Error::Tensor`] if the model does not take such rows, or the
    /// device has no room.
    #[track_caller]
    pub fn new(
        device: &Device,
        model: &dyn Module,
        params: &Parameters,
        feed: &Feed<'a>,
        scale: &Standardisation,
        precision: Precision,
    ) -> Result<Self, Error> {
        RecordedScorer::record(device, model, params, feed, scale, precision, DataParallel::single(), None)?.compile(device)
    }

    /// The same with each replica scoring its part of every batch. All of them get all scores. Replicas compare their rows first,
    /// by digests unless their sources have the same [fingerprint](brisk_loader::RowSource::fingerprint): create it before
    /// training.
    ///
    /// # Errors
    /// As [`new`](Self::new); [`Error::Setting`] if there are fewer rows than replicas; [`Error::Replica`] if replicas
    /// have different rows.
    #[track_caller]
    pub fn with_replicas(
        device: &Device,
        model: &dyn Module,
        params: &Parameters,
        feed: &Feed<'a>,
        scale: &Standardisation,
        precision: Precision,
        replicas: &'a DataParallel,
    ) -> Result<Self, Error> {
        replicas.agree_on_rows(feed)?;
        RecordedScorer::record(device, model, params, feed, scale, precision, replicas, None)?.compile(device)
    }

    /// The outputs of the model with the [newest](Parameters::newest) parameters for every row, `[n_rows, n_outputs]`, in the
    /// order of the feed's first epoch: the table's, unless it is shuffled. Of [lanes](brisk_loader::Order::Lanes) without a
    /// seed, scores are put into the table's order.
    ///
    /// # Errors
    /// [`Error::Setting`] if the parameters were trained on features with another standardisation; [`Error::Tensor`] if the
    /// device fails; [`Error::Stream`] if the source of streamed rows does.
    pub fn scores(&self) -> Result<Vec<f32>, Error> {
        let expected = "that of their training: of the step, or `Model::standardisation`, which `Model::trained_by` sets";
        Standardisation::check(Some(&self.recorded.scale), &self.recorded.params, expected)?;
        self.recorded.params.write_newest(self.executable.device())?;
        Ok(self.recorded.feed.open(self.executable.device(), |open| self.evaluate(open))?.outputs)
    }

    /// Columns of the model's output.
    pub fn n_outputs(&self) -> usize {
        self.recorded.n_outputs
    }

    /// The same with the feed's threads running.
    pub(crate) fn evaluate(&self, open: &mut OpenFeed<'_>) -> Result<Evaluation, Error> {
        self.evaluate_first(open, self.recorded.feed.n_batches())
    }

    /// The same for the first `n_batches` batches only.
    pub(crate) fn evaluate_first(&self, open: &mut OpenFeed<'_>, n_batches: usize) -> Result<Evaluation, Error> {
        let n_batches = n_batches.min(self.recorded.feed.n_batches());
        let (device, RecordedScorer { state, scores, losses, feed, range_batches, replicas, n_outputs, .. }) =
            (self.executable.device(), &self.recorded);
        let part_len = scores.len() / range_batches;
        let mut mine = Vec::with_capacity(n_batches * part_len);
        let mut sum_of_losses = 0.0;
        open.for_each_range(0, CountFrom::Range, *range_batches, |range| {
            let n_in_range = range.n_batches.min(n_batches - range.first_batch);
            device.write(state, &[0_u32; STATE_LEN])?;
            self.executable.run(n_in_range)?;
            let scores: Vec<f32> = device.read(scores)?;
            mine.extend_from_slice(&scores[..n_in_range * part_len]);
            if let Some(losses) = losses {
                let losses: Vec<f32> = device.read(losses)?;
                sum_of_losses += losses[..n_in_range].iter().map(|&loss| f64::from(loss)).sum::<f64>();
            }
            let is_last = range.first_batch + n_in_range == n_batches;
            Ok(if is_last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        let mut all = replicas.gather_rows(mine, n_batches, feed.batch_rows(), *n_outputs)?;
        let n_rows = feed.n_rows().min(n_batches * feed.batch_rows());
        all.truncate(n_rows * n_outputs);
        let sum_of_losses = losses.as_ref().map(|_| replicas.sum(sum_of_losses)).transpose()?;
        let loss = sum_of_losses.map(|sum| sum / n_rows as f64);
        let rows = feed.lane_rows().map(|mut rows| {
            rows.truncate(n_rows);
            rows
        });
        let outputs = match &rows {
            Some(rows) if n_rows == feed.n_rows() => in_table_order(&all, rows, *n_outputs),
            _ => all,
        };
        Ok(Evaluation { outputs, rows: rows.filter(|_| n_rows < feed.n_rows()), loss })
    }

    /// The recorded program, for [`Graph::planned_peak_bytes`].
    pub fn graph(&self) -> &Graph {
        &self.recorded.graph
    }

    /// The rows.
    pub fn feed(&self) -> &Feed<'a> {
        &self.recorded.feed
    }
}

/// The scores of all rows in the order of the table, given those of `rows`, each of which occurs once.
fn in_table_order(scores: &[f32], rows: &[u32], n_outputs: usize) -> Vec<f32> {
    let mut ordered = vec![0.0; scores.len()];
    for (&row, scores) in rows.iter().zip(scores.chunks_exact(n_outputs.max(1))) {
        ordered[row as usize * n_outputs..][..n_outputs].copy_from_slice(scores);
    }
    ordered
}

impl<'a> RecordedScorer<'a> {
    #[expect(clippy::too_many_arguments, reason = "an evaluation consists of all of them, each of another type")]
    #[track_caller]
    pub(crate) fn record(
        device: &Device,
        model: &dyn Module,
        params: &Parameters,
        feed: &Feed<'a>,
        scale: &Standardisation,
        precision: Precision,
        replicas: &'a DataParallel,
        task: Option<&dyn Task>,
    ) -> Result<Self, Error> {
        feed.check_on(device)?;
        replicas.check_feed(feed)?;
        let part = replicas.part_of(feed.batch_rows());
        let batch_rows = part.len();
        let graph = Graph::inference("evaluate");
        let _caller = graph.enter_from_caller();
        let state = Graph::state_buffer();
        let batch = feed.record_part(&graph, scale, &state, part);
        replicas.check_shards(params)?;
        let bound = params.bind(&graph);
        let (outputs, loss) = graph.autocast(precision, || match task {
            None => (batch.forward(model, &bound), None),
            Some(task) => {
                let outputs = batch.outputs(model, &bound, task);
                let batch = BatchTensors { weights: batch.counts.clone(), ..batch.clone() };
                let loss = batch.loss(task, &outputs, Reduction::Sum);
                (outputs, Some(loss))
            }
        });
        let n_outputs = outputs.n_elements() / batch_rows.max(1);
        let fits = device.max_binding_bytes() / (outputs.n_elements().max(1) * size_of::<f32>());
        let range_batches = feed.range_batches().min(fits).max(1);
        let scores = Persistent::new("scores", DType::F32, range_batches * outputs.n_elements());
        graph.store(&outputs.cast(DType::F32), &state, &scores);
        let losses = loss.map(|loss| {
            let losses = Persistent::new("valid_losses", DType::F32, range_batches);
            graph.store(&loss.cast(DType::F32), &state, &losses);
            losses
        });
        graph.advance(&state);
        replicas.gather_parameters(&graph, params, &bound);
        let (feed, params, scale) = (feed.clone(), params.clone(), scale.clone());
        Ok(Self { graph, state, scores, n_outputs, losses, feed, params, scale, range_batches, replicas })
    }

    pub(crate) fn compile(self, device: &Device) -> Result<Scorer<'a>, Error> {
        let executable = self.graph.compile(device)?;
        self.scale.write(device)?;
        Ok(Scorer { recorded: self, executable })
    }
}
