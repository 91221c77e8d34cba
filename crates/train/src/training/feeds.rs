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
    /// The feed of a set: in the order of the configuration, or else in the one given. If replicas stream rows, they take them by
    /// lanes instead, with the seed given, so that each reads only its own part; if one replica has to stream them, all do.
    pub(super) fn feed<'a, S: FeedRows>(
        &self,
        set: &'static str,
        source: &'a S,
        (order, seed): (Order, Option<u64>),
        batch_rows: usize,
        weights: &RowWeights,
    ) -> Result<Feed<'a>, Error> {
        let Self { device, replicas, config } = self;
        let feed = |order| Wanted { device, set, source, order, batch_rows, config, weights }.feed();
        let in_order = feed(config.order.clone().unwrap_or(order))?;
        if config.order.is_some() || config.rank.world() == 1 {
            return Ok(in_order);
        }
        if !replicas.any(in_order.fact().is_streamed())? {
            return Ok(in_order);
        }
        let row_bytes = RowLayout { labels: config.labels, ..layout_of(set, source)? }.row_bytes();
        let Some(lanes) = Lanes::of_batches(batch_rows, row_bytes, seed) else { return Ok(in_order) };
        let reason = in_order.fact().clone();
        drop(in_order);
        let by_lanes = feed(Order::Lanes(lanes))?;
        Ok(if reason.is_streamed() { by_lanes.because(reason) } else { by_lanes })
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
