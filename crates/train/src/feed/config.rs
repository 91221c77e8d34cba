use std::fmt;

use brisk_loader::{Ahead, Order};
use brisk_nn::tensor::DType;

/// How rows reach the device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedConfig {
    /// Resident, streamed, or whichever fits.
    pub choice: FeedChoice,
    /// Bytes of the device that rows may take. `None` uses the amount of free memory where it is known: on a device whose memory is the host's.
    pub budget_bytes: Option<usize>,
    /// Bytes of a chunk of a streamed feed, which is rounded to whole batches, at least one. The device holds one chunk, the host
    /// [`Ahead::depth`] and two more, and for a GPU two in staging memory.
    pub chunk_bytes: usize,
    /// How many chunks in advance, and by how many threads, the host gathers the chunks of a streamed feed. Neither changes any batch.
    pub ahead: Ahead,
    /// In which order the training rows come; `None` shuffles all of them by the run's seed.
    pub order: Option<Order>,
    /// How labels are stored on the device: f32, or u32 for class numbers. A trainer sets the dtype that its [task](crate::Labels::dtype) takes.
    pub labels: DType,
}

/// Whether rows are resident or streamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum FeedChoice {
    /// Resident if they fit, else streamed.
    #[default]
    Auto,
    /// All of them on the device before the run.
    Resident,
    /// Streamed chunk by chunk, again in each epoch.
    Streamed,
}

impl Default for FeedConfig {
    fn default() -> Self {
        let ahead = Ahead { depth: 2, workers: 1 };
        Self { choice: FeedChoice::Auto, budget_bytes: None, chunk_bytes: 32 << 20, ahead, order: None, labels: DType::F32 }
    }
}

/// Whether rows are resident or streamed, and why. Its `Display` is a line for people.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FeedReason {
    /// Resident, as requested.
    ResidentAsked {
        /// What the rows take.
        len_bytes: usize,
    },
    /// Resident, since the rows fit into the budget; if no budget is known, since the device had room for them.
    ResidentFits {
        /// What the rows take.
        len_bytes: usize,
        /// What they may take.
        budget_bytes: Option<usize>,
    },
    /// Streamed, as requested.
    StreamedAsked {
        /// What a chunk takes on the device.
        chunk_bytes: usize,
    },
    /// Streamed, since the rows exceed the budget.
    StreamedBeyondBudget {
        /// What the rows would take.
        len_bytes: usize,
        /// What they may take.
        budget_bytes: usize,
        /// What a chunk takes on the device.
        chunk_bytes: usize,
    },
    /// Streamed, since the device had no room for the rows.
    StreamedDeviceFull {
        /// What the rows would take.
        len_bytes: usize,
        /// What a chunk takes on the device.
        chunk_bytes: usize,
    },
    /// Streamed, since only the host computes this order.
    StreamedForOrder {
        /// What a chunk takes on the device.
        chunk_bytes: usize,
    },
}

impl FeedReason {
    /// Whether rows are streamed.
    pub fn is_streamed(&self) -> bool {
        !matches!(self, Self::ResidentAsked { .. } | Self::ResidentFits { .. })
    }
}

impl fmt::Display for FeedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: &usize| format!("{:.1} MiB", *bytes as f64 / f64::from(1 << 20));
        match self {
            Self::ResidentAsked { len_bytes } => write!(f, "resident, {}, as asked for", mib(len_bytes)),
            Self::ResidentFits { len_bytes, budget_bytes: Some(budget) } => {
                write!(f, "resident, {} of the {} there are", mib(len_bytes), mib(budget))
            }
            Self::ResidentFits { len_bytes, budget_bytes: None } => write!(f, "resident, {}", mib(len_bytes)),
            Self::StreamedAsked { chunk_bytes } => write!(f, "streamed in chunks of {}, as asked for", mib(chunk_bytes)),
            Self::StreamedBeyondBudget { len_bytes, budget_bytes, chunk_bytes } => {
                let (len, budget) = (mib(len_bytes), mib(budget_bytes));
                write!(f, "streamed in chunks of {}: {len} of rows, a budget of {budget}", mib(chunk_bytes))
            }
            Self::StreamedDeviceFull { len_bytes, chunk_bytes } => {
                write!(f, "streamed in chunks of {}: the device has no room for {}", mib(chunk_bytes), mib(len_bytes))
            }
            Self::StreamedForOrder { chunk_bytes } => {
                write!(f, "streamed in chunks of {}, in an order that the host computes", mib(chunk_bytes))
            }
        }
    }
}
