//! The feeds of a run whose rows may be divided over replicas.

use brisk_loader::{Lanes, Order};
use brisk_nn::tensor::program::Device;

use crate::data_parallel::DataParallel;
use crate::error::Error;
use crate::feed::{Feed, FeedConfig, RowWeights, Wanted};
use crate::rows::inspect::layout_of;
use crate::rows::{FeedRows, RowLayout};

/// What the feeds of a run have in common.
#[derive(Debug)]
pub(super) struct Feeds<'s> {
    pub(super) device: &'s Device,
    pub(super) replicas: &'s DataParallel,
    pub(super) config: FeedConfig,
}

impl Feeds<'_> {
    /// The feed of a set: in the order of the configuration, or else shuffled by `seed`, or in the order of the source.
    ///
    /// A source that [reads blocks](brisk_loader::Layout::reads_blocks), if any replica streams its rows, is shuffled by blocks
    /// on all: by lanes, so that each replica reads only its own part, in an order that does not depend on the number of
    /// replicas.
    pub(super) fn feed<'a, S: FeedRows>(
        &self,
        set: &'static str,
        source: &'a S,
        seed: Option<u64>,
        batch_rows: usize,
        weights: &RowWeights,
    ) -> Result<Feed<'a>, Error> {
        let Self { device, replicas, config } = self;
        let feed = |order| Wanted { device, set, source, order, batch_rows, config, weights }.feed();
        let over_all = || seed.map_or(Order::Sequential, |seed| Order::Shuffled { seed });
        let feed_over_all = feed(config.order.clone().unwrap_or_else(over_all))?;
        // The replicas may read the same rows from different sources.
        let streams_blocks = source.layout().reads_blocks && feed_over_all.fact().is_streamed();
        if config.order.is_some() || !replicas.any(streams_blocks)? {
            return Ok(feed_over_all);
        }
        let row_bytes = RowLayout { labels: config.labels, ..layout_of(set, source)? }.row_bytes();
        let by_blocks = match seed {
            Some(seed) => Order::by_blocks(batch_rows, row_bytes, seed),
            None if config.rank.world() == 1 => return Ok(feed_over_all),
            None => Lanes::of_batches(batch_rows, row_bytes, None).map_or(Order::Sequential, Order::Lanes),
        };
        let reason = feed_over_all.fact().clone();
        drop(feed_over_all);
        let by_blocks = feed(by_blocks)?;
        Ok(if reason.is_streamed() { by_blocks.because(reason) } else { by_blocks })
    }
}

impl DataParallel {
    /// The configuration of feeds with the part of this replica.
    pub(super) fn feed_config(&self, config: &FeedConfig) -> Result<FeedConfig, Error> {
        let rank = if self.world_size() > 1 { self.shard() } else { brisk_loader::Shard::WHOLE };
        if config.rank.world() > 1 && config.rank != rank {
            let found = format!("the part of rank {} of {}", config.rank.rank(), config.rank.world());
            let expected = format!("none, or that of replica {} of {}, which the trainer sets", self.rank(), self.world_size());
            return Err(Error::setting("rank", found, expected));
        }
        Ok(FeedConfig { rank, ..config.clone() })
    }
}
