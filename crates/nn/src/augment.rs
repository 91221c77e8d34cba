use std::fmt::Debug;

use brisk_tensor::{DeviceBatch, Graph, MixedRows, Persistent, Tensor, Windows};

/// How the input of a training batch is made from rows on the device, if they are not only gathered: cropped, mirrored, mixed
/// with noise or with other rows. Evaluation gathers the rows unchanged. Dyn-compatible.
///
/// An implementation records kernels or tensor algebra; nothing runs on the host while an epoch is replayed. Random operations
/// such as [`Tensor::dropout`] and [`Graph::uniform`] draw new numbers in each step.
///
/// # Examples
/// Inputs of which a tenth is missing, a different tenth each time:
/// ```
/// use brisk_nn::tensor::Graph;
/// use brisk_nn::{Augment, Augmented, BatchSource};
///
/// #[derive(Debug)]
/// struct Missing;
///
/// impl Augment for Missing {
///     fn record(&self, graph: &Graph, rows: &BatchSource<'_>) -> Augmented {
///         rows.gather(graph).dropout(0.1).into()
///     }
/// }
/// ```
pub trait Augment: Debug {
    /// Records the input of a batch, which is passed to the model.
    ///
    /// # Errors
    /// Like all recording, it returns no error; an implementation reports invalid arguments with [`Graph::failed`].
    fn record(&self, graph: &Graph, rows: &BatchSource<'_>) -> Augmented;
}

impl<A: Augment + ?Sized> Augment for Box<A> {
    #[track_caller]
    fn record(&self, graph: &Graph, rows: &BatchSource<'_>) -> Augmented {
        (**self).record(graph, rows)
    }
}

/// The input of a training batch. A tensor [converts](Self::from) to an input whose rows are not mixed.
#[derive(Debug, Clone)]
pub struct Augmented {
    /// `[n, …]`: an entry for each row of the batch.
    pub x: Tensor,
    /// Rows that the rows of the batch are mixed with, whose labels count for their share of the loss; `None` if no rows are
    /// mixed.
    pub mixed: Option<MixedLabels>,
}

/// The rows that the rows of a batch are mixed with, and the shares of their labels.
#[derive(Debug, Clone)]
pub struct MixedLabels {
    /// The row that each row is mixed with.
    pub partners: DeviceBatch,
    /// `[n]` f32: the share of the partner's label in each row, 0 to 1.
    pub shares: Tensor,
}

impl From<Tensor> for Augmented {
    fn from(x: Tensor) -> Self {
        Self { x, mixed: None }
    }
}

impl From<MixedRows> for MixedLabels {
    fn from(MixedRows { partners, shares, .. }: MixedRows) -> Self {
        Self { partners, shares }
    }
}

/// The rows of a batch in a table on the device.
#[derive(Debug, Clone, Copy)]
pub struct BatchSource<'a> {
    /// Which rows of the table they are.
    pub batch: &'a DeviceBatch,
    /// The features of all rows: `[n_rows, n_cols]`, f32 or u8.
    pub features: &'a Windows,
    /// The mean of each column, as the run standardises it.
    pub mean: &'a Persistent,
    /// One over the standard deviation of each column.
    pub inv_std: &'a Persistent,
}

impl BatchSource<'_> {
    /// Records the gathering of the rows, standardised: `[n, n_cols]`, the input of a run without augmentation.
    #[track_caller]
    pub fn gather(&self, graph: &Graph) -> Tensor {
        graph.gather(self.batch, self.features, self.mean, self.inv_std)
    }
}
