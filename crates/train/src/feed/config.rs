use std::fmt;

use brisk_loader::{Ahead, Order, Shard};
use brisk_nn::tensor::DType;

use crate::error::Error;

/// How rows reach the device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedConfig {
    /// Resident, streamed, or whichever fits.
    pub choice: FeedChoice,
    /// Bytes of the device that rows may take. `None` is what is free, where that is known: on devices with the host's memory.
    pub budget_bytes: Option<usize>,
    /// Bytes of a chunk of a streamed feed, which is rounded to whole batches, at least one. The device holds one chunk, the host
    /// [`Ahead::depth`] and two more, and for a GPU two in staging memory.
    pub chunk_bytes: usize,
    /// How far ahead, and by how many threads, the host gathers the chunks of a streamed feed. Neither changes a batch.
    pub ahead: Ahead,
    /// In which order the training rows come; `None` shuffles all of them by the run's seed. If a source that [reads
    /// blocks](brisk_loader::Layout::reads_blocks), such as a table on a server, is streamed, a [`Trainer`](crate::Trainer)
    /// shuffles its rows [by blocks](brisk_loader::Order::by_blocks) instead. Neither order depends on the number of replicas.
    /// [`Feed::order`](crate::Feed::order) returns the one that is used.
    pub order: Option<Order>,
    /// Which part of each batch this replica computes, of [`Shard::parts`]; all of it by default. A [`Trainer`](crate::Trainer)
    /// sets the part of its [replica](crate::Trainer::replicas). Rows that are streamed are read by part. Those with weights are
    /// so only by a trainer, which knows the weights of all rows from the pass before the first step: the sum of the weights of a
    /// batch needs those of all its rows. A [`Feed::new`](crate::Feed::new) reads whole batches of them. Resident rows are all on
    /// each device, since another epoch needs others of them.
    pub rank: Shard,
    /// How labels are stored on the device: f32, or u32 for class numbers, which must be whole numbers from 0 on. A trainer sets
    /// the dtype that its [task](crate::Labels::dtype) takes.
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
        let (choice, rank) = (FeedChoice::Auto, Shard::WHOLE);
        Self { choice, budget_bytes: None, chunk_bytes: 32 << 20, ahead, order: None, rank, labels: DType::F32 }
    }
}

impl FeedConfig {
    /// Checks that the rank has a part of each batch, and that an order by lanes is for these batches.
    pub(crate) fn check_parts(&self, order: &Order, batch_rows: usize) -> Result<(), Error> {
        let (rank, world) = (self.rank.rank(), self.rank.world());
        if rank >= world || (world > 1 && !self.rank.is_parts()) {
            let expected = "a rank below the number of ranks, each with its part of every batch: `Shard::parts`";
            return Err(Error::setting("rank", format!("rank {rank} of {world}, {:?}", self.rank), expected));
        }
        check_batch(batch_rows, world)?;
        match order {
            Order::Lanes(lanes) if lanes.batch_rows as usize != batch_rows => {
                let expected = format!("lanes of batches of {batch_rows} rows, as many as `batch_rows`; change one of them");
                Err(Error::setting("order", format!("`{order}`, lanes of batches of {} rows", lanes.batch_rows), expected))
            }
            _ => Ok(()),
        }
    }
}

/// Checks that each replica has at least one row of a batch.
pub(crate) fn check_batch(batch_rows: usize, world_size: usize) -> Result<(), Error> {
    if batch_rows >= world_size {
        return Ok(());
    }
    let found = format!("{batch_rows} rows for {world_size} replicas");
    Err(Error::setting("batch_rows", found, "at least one row for each; use larger batches or fewer replicas"))
}

/// Whether rows are resident or streamed, and why. Its `Display` is a line for people.
///
/// `len_bytes` is what the rows take, or would take, on the device, `budget_bytes` what they may take, and `chunk_bytes` what a
/// chunk takes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "a field is described with its variant, unless its name says what it is")]
pub enum FeedReason {
    /// Resident, as requested.
    ResidentAsked { len_bytes: usize },
    /// Resident, since the rows fit into the budget; if no budget is known, since the device had room for them.
    ResidentFits { len_bytes: usize, budget_bytes: Option<usize> },
    /// Streamed, as requested.
    StreamedAsked { chunk_bytes: usize },
    /// Streamed, since the rows exceed the budget.
    StreamedBeyondBudget { len_bytes: usize, budget_bytes: usize, chunk_bytes: usize },
    /// Streamed, since the device had no room for the rows.
    StreamedDeviceFull { len_bytes: usize, chunk_bytes: usize },
    /// Streamed, since only the host computes this order.
    StreamedForOrder { chunk_bytes: usize },
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
