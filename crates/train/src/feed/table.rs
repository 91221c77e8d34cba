use std::ops::Range;
use std::sync::Arc;

use brisk_loader::Shuffle;
use brisk_nn::tensor::program::kernels::{ORDER_LEN, order_in_epoch, sequential_order, shuffled_order};
use brisk_nn::tensor::program::{Device, Upload, Uploads};
use brisk_nn::tensor::{DType, DeviceBatch, Graph, Mode, Persistent, Reduction, Tensor, Windows};
use brisk_nn::{Augment, Augmented, BatchSource, Bound, MixedLabels, Module};

use crate::error::Error;
use crate::error::phrases::count;
use crate::rows::{Features, RowLayout};
use crate::standardisation::Standardisation;
use crate::task::{LabelledRows, Task, record_loss};

/// Rows on a device, in windows if they are too many for one binding, and the order in which batches take them.
#[derive(Debug, Clone)]
pub(crate) struct DeviceTable {
    features: Windows,
    labels: Windows,
    /// Leaves labels unchanged when they are gathered: a mean of 0 and a factor of 1 for each of several columns of numbers.
    label_scale: Option<[Persistent; 2]>,
    categories: Option<Windows>,
    weights: Option<Windows>,
    /// Of all rows of each batch, if the table has a part of them.
    batch_weights: Option<Windows>,
    /// The numbers of the rows in the source, if batches are augmented and the table has only some of the rows.
    ids: Option<Windows>,
    /// Of the rows in the table.
    order: Persistent,
    /// Of all rows, if the table has a part of each batch.
    order_of_all: Option<Persistent>,
    /// The device that the rows are on; `None` for a table that is only planned.
    device: Option<Arc<Device>>,
}

/// The order in which batches take the rows that are on the device.
#[derive(Debug, Clone)]
pub(crate) struct EpochOrder<'a> {
    pub(crate) epoch: u32,
    /// `None` for the table's order.
    pub(crate) shuffle: Option<&'a Shuffle>,
    pub(crate) n_rows: usize,
    pub(crate) batch_rows: usize,
    /// The rows of each batch that the table has.
    pub(crate) part: Range<usize>,
}

/// Consecutive rows, as they are copied to a device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chunk<'a> {
    /// Of the layout's type.
    pub(crate) features: Features<'a>,
    pub(crate) labels: &'a [f32],
    /// Empty if rows have none.
    pub(crate) categories: &'a [u32],
    /// Ignored if rows have none.
    pub(crate) weights: &'a [f32],
    /// Those of all rows of each batch; ignored if the table has all rows of each.
    pub(crate) batch_weights: &'a [f32],
    /// Ignored if the table has all rows.
    pub(crate) ids: &'a [u32],
}

/// A batch as tensors of a graph.
#[derive(Debug, Clone)]
pub struct BatchTensors {
    /// `[n, n_cols]`, standardised; if batches are [augmented](crate::Feed::augmented), after augmentation.
    pub x: Tensor,
    /// `[n, n_categories]` u32, if rows have categories.
    pub categories: Option<Tensor>,
    /// `[n]`, or `[n, n_labels]` if rows have several labels or none: f32, or u32 for [class numbers](crate::Labels::Classes).
    pub labels: Tensor,
    /// `[n]`: the weight of each row, 1 if rows have no weights; 0 for the padding of a short last batch.
    pub weights: Tensor,
    /// `[n]`: 1 for each row, 0 for the padding of a short last batch.
    pub counts: Tensor,
    /// Further labels, if rows are [mixed](brisk_nn::Augmented::mixed) with others. [`loss`](Self::loss) takes them into account.
    pub partners: Option<PartnerLabels>,
}

/// The labels of the rows that those of a batch are mixed with.
#[derive(Debug, Clone)]
pub struct PartnerLabels {
    /// As [`BatchTensors::labels`].
    pub labels: Tensor,
    /// `[n]`: their shares, 0 to 1.
    pub shares: Tensor,
}

impl DeviceTable {
    pub(crate) fn new(max_binding_bytes: usize, name: &str, layout: RowLayout, n_rows: usize) -> Self {
        let windows =
            |what: &str, dtype, n_cols| Windows::new(&format!("{name}.{what}"), dtype, n_rows, n_cols, max_binding_bytes);
        let is_scaled = layout.labels == DType::F32 && layout.n_labels != 1;
        let label_scale = |what: &str| Persistent::new(format!("{name}.{what}"), DType::F32, layout.n_labels);
        Self {
            label_scale: is_scaled.then(|| ["label_mean", "label_inv_std"].map(label_scale)),
            features: windows("features", layout.dtype, layout.n_cols),
            labels: windows("labels", layout.labels, layout.n_labels),
            categories: (layout.n_categories > 0).then(|| windows("categories", DType::U32, layout.n_categories)),
            weights: layout.has_weights.then(|| windows("weights", DType::F32, 1)),
            batch_weights: None,
            ids: None,
            order: Graph::order_buffer(),
            order_of_all: None,
            device: None,
        }
    }

    /// The same table, whose rows are written on `device`.
    pub(crate) fn on(self, device: &Device) -> Self {
        Self { device: Some(Arc::new(device.clone())), ..self }
    }

    pub(crate) fn device(&self) -> Option<&Device> {
        self.device.as_deref()
    }

    /// Whether both are the same rows on the same device, as clones are.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.device.as_ref().zip(other.device.as_ref()).is_some_and(|(a, b)| Arc::ptr_eq(a, b))
    }

    /// The same table for a part of each batch, and the weights of `n_weights` rows of whole batches.
    pub(crate) fn of_parts(self, max_binding_bytes: usize, n_weights: usize) -> Self {
        let weights = |n_rows| Windows::new("batch_weights", DType::F32, n_rows, 1, max_binding_bytes);
        let batch_weights = Some(n_weights).filter(|&n| n > 0).map(weights);
        Self { order_of_all: Some(Graph::order_buffer()), batch_weights, ..self }
    }

    /// The same table for some of the source's rows, with their row numbers in the source.
    pub(crate) fn with_ids(self, max_binding_bytes: usize) -> Self {
        let ids = Windows::new("ids", DType::U32, self.n_rows(), 1, max_binding_bytes);
        Self { ids: Some(ids), ..self }
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.features.n_rows()
    }

    pub(crate) fn n_cols(&self) -> usize {
        self.features.n_cols()
    }

    pub(crate) fn len_bytes(&self) -> usize {
        let optional = [&self.categories, &self.weights, &self.batch_weights, &self.ids].map(Option::as_ref);
        let parts = [&[Some(&self.features), Some(&self.labels)], &optional[..]].concat();
        parts.into_iter().flatten().map(Windows::len_bytes).sum()
    }

    /// Replaces the rows, starting at `first`.
    pub(crate) fn write(&self, uploads: &mut Uploads, first: usize, chunk: Chunk<'_>) -> Result<(), Error> {
        let mut parts = Vec::with_capacity(8);
        match chunk.features {
            Features::F32(features) => add_parts(&mut parts, &self.features, first, features)?,
            Features::U8(features) => add_parts(&mut parts, &self.features, first, features)?,
        }
        let classes: Vec<u32>;
        if self.labels.dtype() == DType::U32 {
            classes = chunk.labels.iter().map(|&label| label as u32).collect();
            add_parts(&mut parts, &self.labels, first, &classes)?;
        } else {
            add_parts(&mut parts, &self.labels, first, chunk.labels)?;
        }
        let (zeros, ones) = (vec![0.0_f32; self.labels.n_cols()], vec![1.0_f32; self.labels.n_cols()]);
        if let Some([mean, inv_std]) = self.label_scale.as_ref().filter(|_| first == 0 && !zeros.is_empty()) {
            parts.extend([Upload::new(mean, 0, &zeros), Upload::new(inv_std, 0, &ones)]);
        }
        for (table, values) in [(&self.categories, chunk.categories), (&self.ids, chunk.ids)] {
            table.as_ref().map_or(Ok(()), |table| add_parts(&mut parts, table, first, values))?;
        }
        for (table, values) in [(&self.weights, chunk.weights), (&self.batch_weights, chunk.batch_weights)] {
            table.as_ref().map_or(Ok(()), |table| add_parts(&mut parts, table, first, values))?;
        }
        Ok(uploads.write(&parts)?)
    }

    /// Sets which rows the batches take: batch `b` of the run's state takes the rows of batch `b + offset`, modulo 2³², of those
    /// that the order has.
    pub(crate) fn set_order(&self, device: &Device, order: &EpochOrder<'_>, offset: u32) -> Result<(), Error> {
        let EpochOrder { epoch, shuffle, n_rows, batch_rows, part } = order;
        let numbers = |n_rows: usize, batch_rows: usize, part_start: usize| {
            let (n, stride) = (n_rows as u32, batch_rows as u32);
            // Positions are counted from the first row of the whole batch, and modulo 2^32.
            let offset = offset.wrapping_mul(stride).wrapping_sub(part_start as u32);
            let numbers: [u32; ORDER_LEN] = match shuffle {
                None => sequential_order(n, stride, offset),
                Some(shuffle) => shuffled_order(n, shuffle.bits(), shuffle.keys(), stride, offset),
            };
            order_in_epoch(numbers, *epoch)
        };
        let Some(order_of_all) = &self.order_of_all else {
            return Ok(device.write(&self.order, &numbers(*n_rows, *batch_rows, 0))?);
        };
        device.write(order_of_all, &numbers(*n_rows, *batch_rows, 0))?;
        let n_last = (n_rows % batch_rows).clamp(part.start, part.end) - part.start;
        let n_of_part = n_rows / batch_rows * part.len() + n_last;
        Ok(device.write(&self.order, &numbers(n_of_part, part.len(), part.start))?)
    }

    pub(crate) fn has_weights(&self) -> bool {
        self.weights.is_some()
    }

    /// Records the weight of each row of the batch.
    pub(crate) fn record_weights(&self, graph: &Graph, scale: &Standardisation, state: &Persistent, batch_rows: usize) -> Tensor {
        let [_, _, zero, one] = &scale.buffers;
        let batch = graph.batch(self.order_of_all.as_ref().unwrap_or(&self.order), state, batch_rows);
        match self.batch_weights.as_ref().or(self.weights.as_ref()) {
            Some(weights) => batch.weights.multiply(&graph.gather(&batch, weights, zero, one).reshape(&[batch_rows])),
            None => batch.weights,
        }
    }

    /// Records the gathering of some rows of the batch whose index is in `state`.
    pub(crate) fn record_part(
        &self,
        graph: &Graph,
        scale: &Standardisation,
        state: &Persistent,
        part: Range<usize>,
        augment: Option<&dyn Augment>,
    ) -> BatchTensors {
        let n = part.len();
        let [mean, inv_std, zero, one] = &scale.buffers;
        let batch = graph.batch_part(&self.order, state, part);
        let batch = self.ids.as_ref().map_or_else(|| batch.clone(), |ids| batch.of_part(ids));
        let column = |table: &Windows| graph.gather(&batch, table, zero, one).reshape(&[n]);
        let source = BatchSource { batch: &batch, features: &self.features, mean, inv_std };
        let augmented = augment.map(|augment| augment.record(graph, &source));
        let Augmented { x, mixed } = augmented.unwrap_or_else(|| source.gather(graph).into());
        let categories = self.categories.as_ref().map(|table| graph.gather_categories(&batch, table));
        let labels = |batch: &DeviceBatch| {
            let labels = match (self.labels.dtype(), &self.label_scale) {
                (DType::U32, _) => graph.gather_categories(batch, &self.labels),
                (_, Some([mean, inv_std])) => graph.gather(batch, &self.labels, mean, inv_std),
                (_, None) => graph.gather(batch, &self.labels, zero, one),
            };
            if self.labels.n_cols() == 1 { labels.reshape(&[n]) } else { labels }
        };
        let partners = mixed.map(|MixedLabels { partners, shares }| PartnerLabels { labels: labels(&partners), shares });
        if let (Some(augment), Some(_), Some(_)) = (augment, &partners, &categories) {
            let found = format!("{augment:?} over rows with categories");
            let expected = "rows of numbers only, since categories cannot be mixed";
            graph.fail(brisk_nn::Error::Refused { op: "augment", found, expected });
        }
        let weights = match &self.weights {
            Some(weights) => batch.weights.multiply(&column(weights)),
            None => batch.weights.clone(),
        };
        BatchTensors { x, categories, labels: labels(&batch), weights, counts: batch.weights.clone(), partners }
    }
}

impl BatchTensors {
    /// The mean of the losses of rows, weighted by the weights of the rows, so that the padding of a short last batch does not
    /// count. Where a row has several losses, the mean of these is its loss.
    ///
    /// # Shapes
    /// `losses`: `[n]` or `[n, n_labels]`; the result has no dimensions.
    /// # Errors
    /// [`Shape`](brisk_nn::Error::Shape) for any other shape.
    #[track_caller]
    pub fn mean(&self, losses: &Tensor) -> Tensor {
        self.labelled(Reduction::Mean).reduce(losses)
    }

    /// Records the loss of a task. For rows that are mixed with others it is `Σ w ((1 - s) l + s l')`, where `l` is the loss of a
    /// row by its own label, `l'` that by the label of its partner, `s` the share of the partner and `w` the weight of the row. A
    /// mean divides it by `Σ w`, even if classes have different weights, as PyTorch's cross-entropy does for probabilities as
    /// targets.
    ///
    /// # Shapes
    /// As [`Task::loss`].
    #[track_caller]
    pub fn loss(&self, task: &dyn Task, outputs: &Tensor, reduction: Reduction) -> Tensor {
        let rows = self.labelled(reduction);
        let Some(partners) = &self.partners else { return record_loss(task, outputs, &rows) };
        let weights = match reduction {
            Reduction::Mean => self.weights.shares(),
            Reduction::Sum => self.weights.clone(),
        };
        let of_partners = weights.multiply(&partners.shares);
        let own = &weights - &of_partners;
        let loss = |labels: &Tensor, weights: Tensor| {
            let rows = LabelledRows { labels: labels.clone(), weights, reduction: Reduction::Sum, ..rows.clone() };
            record_loss(task, outputs, &rows)
        };
        loss(&self.labels, own) + loss(&partners.labels, of_partners)
    }

    /// Records the loss of `task` for the outputs of `module`.
    #[track_caller]
    pub(crate) fn task_loss(&self, module: &dyn Module, params: &Bound, task: &dyn Task, reduction: Reduction) -> Tensor {
        self.loss(task, &self.outputs(module, params, task), reduction)
    }

    /// The rows as a task's loss takes them, without partners. Your loss can [reduce](LabelledRows::reduce) those of rows.
    pub fn labelled(&self, reduction: Reduction) -> LabelledRows {
        LabelledRows {
            x: self.x.clone(),
            categories: self.categories.clone(),
            labels: self.labels.clone(),
            weights: self.weights.clone(),
            reduction,
        }
    }

    /// How many operations read the weights of the rows.
    pub(crate) fn n_readers_of_weights(&self) -> usize {
        self.weights.n_readers()
    }

    /// Records `module` over the batch, whose outputs must be those that `task` requires.
    #[track_caller]
    pub(crate) fn outputs(&self, module: &dyn Module, params: &Bound, task: &dyn Task) -> Tensor {
        let outputs = self.forward(module, params);
        let expected = [self.x.shape()[0], task.n_outputs()];
        let is_of_members =
            matches!(outputs.shape(), [_, rows @ ..] if rows == expected) && outputs.graph().mode() == Mode::Training;
        if outputs.shape() == expected || is_of_members {
            return outputs;
        }
        let outputs_per_row = count(task.n_outputs(), "output");
        let expected_shape =
            format!("{expected:?}: the task takes {outputs_per_row} for each row; change the model's last layer, or the task");
        let found = outputs.shape().to_vec();
        let error = brisk_nn::Error::Shape { op: "train", arg: "the model's output", expected: expected_shape, found };
        outputs.graph().failed(error, outputs.dtype(), &expected)
    }

    /// Records `model` over the batch, with its categories if the rows have some.
    ///
    /// # Errors
    /// Those of the model, if it does not take such rows.
    pub fn forward(&self, model: &dyn Module, params: &Bound) -> Tensor {
        let n_categories = self.categories.as_ref().map_or(0, |codes| codes.shape()[1]);
        let expected = params.categorical_columns().len();
        if n_categories != expected {
            let expected = format!(
                "[n_rows, {expected}], the categorical columns that the model takes; see `Parameters::categorical_columns`"
            );
            let found = vec![self.x.shape()[0], n_categories];
            let error = brisk_nn::Error::Shape { op: "forward", arg: "categories", expected, found };
            return self.x.graph().failed(error, self.x.dtype(), self.x.shape());
        }
        model.forward(&params.with_categories(&self.categories), &self.x)
    }
}

fn add_parts<'a, T: bytemuck::Pod>(
    parts: &mut Vec<Upload<'a>>,
    table: &'a Windows,
    first: usize,
    values: &'a [T],
) -> Result<(), Error> {
    table.each_window(first, values, |window, at, values| {
        parts.push(Upload::new(window, at, values));
        Ok(())
    })
}
