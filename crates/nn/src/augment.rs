use std::fmt::Debug;

use brisk_tensor::{Batch, Graph, Persistent, Tensor, Windows};

/// How the input of a training batch is made from rows on the device, where it is more than gathered: cropped, mirrored, mixed with noise. Evaluation
/// gathers the rows as they are. Dyn-compatible.
///
/// An implementation records kernels or tensor algebra; nothing runs on the host while an epoch is replayed.
///
/// # Examples
/// Inputs of which a tenth is missing, each time another one:
/// ```
/// use brisk_nn::tensor::{Graph, Tensor};
/// use brisk_nn::{Augment, BatchSource};
///
/// #[derive(Debug)]
/// struct Missing;
///
/// impl Augment for Missing {
///     fn record(&self, graph: &Graph, rows: &BatchSource<'_>) -> Tensor {
///         rows.gather(graph).dropout(0.1, 7, rows.state)
///     }
/// }
/// ```
pub trait Augment: Debug {
    /// Records the input of a batch: `[n, …]`, with an entry for each of its rows, from which the model computes.
    ///
    /// # Errors
    /// Like all recording, it returns no error; an implementation refuses its arguments by [`Graph::failed`].
    fn record(&self, graph: &Graph, rows: &BatchSource<'_>) -> Tensor;
}

/// The rows of a batch in a table on the device.
#[derive(Debug, Clone, Copy)]
pub struct BatchSource<'a> {
    /// Which rows they are.
    pub batch: &'a Batch,
    /// The features of all rows: `[n_rows, n_cols]`, f32 or u8.
    pub features: &'a Windows,
    /// The mean of each column, as the run standardises it.
    pub mean: &'a Persistent,
    /// One over the standard deviation of each column.
    pub inv_std: &'a Persistent,
    /// The state of the run, by which random operations such as [`Tensor::dropout`] draw anew in each step.
    pub state: &'a Persistent,
}

impl BatchSource<'_> {
    /// Records the gathering of the rows, standardised: `[n, n_cols]`, the input of a run without augmentation.
    #[track_caller]
    pub fn gather(&self, graph: &Graph) -> Tensor {
        graph.gather(self.batch, self.features, self.mean, self.inv_std)
    }
}
