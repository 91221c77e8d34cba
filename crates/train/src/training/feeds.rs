//! The feeds of a run whose rows may be divided over replicas.

use brisk_loader::{Lanes, Order, RowSource};
use brisk_nn::tensor::program::Device;

use crate::data_parallel::DataParallel;
use crate::error::Error;
use crate::feed::{Feed, FeedConfig};
use crate::rows::FeedElement;

/// What the feeds of a run have in common.
#[derive(Debug)]
pub(super) struct Feeds<'s> {
    pub(super) device: &'s Device,
    pub(super) replicas: &'s DataParallel,
    pub(super) config: FeedConfig,
}

impl Feeds<'_> {
    /// The feed of a set: in the order of the configuration, or else in the one given. If replicas stream rows, they take them by lanes instead, with the seed given, so that each
    /// reads only its own part; if one replica has to stream them, all do.
    pub(super) fn feed<'a, S: RowSource<Feature: FeedElement>>(
        &self,
        set: &'static str,
        source: &'a S,
        (order, seed): (Order, Option<u64>),
        batch_rows: usize,
    ) -> Result<Feed<'a>, Error> {
        let Self { device, replicas, config } = self;
        let feed = Feed::new(device, set, source, config.order.clone().unwrap_or(order), batch_rows, config)?;
        if config.order.is_some() || config.rank.world() == 1 || feed.has_weights() {
            return Ok(feed);
        }
        if !replicas.any(feed.fact().is_streamed())? {
            return Ok(feed);
        }
        let Some(lanes) = Lanes::of_batches(batch_rows, feed.row_bytes(), seed) else { return Ok(feed) };
        let reason = feed.fact().clone();
        drop(feed);
        let feed = Feed::new(device, set, source, Order::Lanes(lanes), batch_rows, config)?;
        Ok(if reason.is_streamed() { feed.because(reason) } else { feed })
    }
}

impl DataParallel {
    /// The configuration of feeds with the part of this replica.
    pub(super) fn feed_config(&self, config: &FeedConfig) -> Result<FeedConfig, Error> {
        let rank = if self.world_size() > 1 { self.shard() } else { brisk_loader::Shard::WHOLE };
        if config.rank.world() > 1 && config.rank != rank {
            let found = format!("the part of rank {} of {}", config.rank.rank(), config.rank.world());
            let expected = format!("none, or that of replica {} of {}, which the trainer sets", self.rank(), self.world_size());
            return Err(Error::Setting { name: "rank", found, expected: expected.into() });
        }
        Ok(FeedConfig { rank, ..config.clone() })
    }
}
