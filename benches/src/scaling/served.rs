//! A table on a server of this machine, whose link is limited.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use brisk_loader::Lanes;
use brisk_table::{Schema, ShardSize, ShardedWriter};
use serde_json::Value;
use tempfile::TempDir;

use crate::higgs_table::{N_COLS, higgs_table};

#[path = "../../../crates/table/tests/it/remote/server.rs"]
#[expect(dead_code, reason = "the tests of brisk-table use the rest")]
mod server;

pub(super) const ROW_BYTES: usize = (N_COLS + 1) * 4;
/// The time from a request to the beginning of its answer.
pub(super) const LATENCY: Duration = Duration::from_millis(20);
/// The index of the shards.
const INDEX: &str = "table.safetensors.index.json";
/// Rows by which those of a shard are divisible, and thus batches that have no more.
const UNIT_ROWS: usize = 8192;

/// A table, which each rank reads under a URL of its own, so that the server can count what it sends to whom.
pub(super) struct Served {
    server: server::Server,
    folder: TempDir,
    pub(super) n_rows: usize,
    pub(super) n_shards: usize,
    pub(super) bytes_per_s: f64,
}

impl Served {
    /// A table of equal shards of about so many bytes, which take the memory of one, for up to `n_ranks`.
    pub(super) fn start(shard_bytes: usize, n_shards: usize, bytes_per_s: f64, n_ranks: usize) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("t");
        let shard_rows = shard_bytes / ROW_BYTES / UNIT_ROWS * UNIT_ROWS;
        let mut writer = ShardedWriter::create(&path, Schema::shaped(&[N_COLS]), ShardSize::Rows(shard_rows))?;
        let (features, labels) = higgs_table(shard_rows, 1);
        writer.push(&features, &labels)?;
        writer.finish()?;
        let mut index: Value = serde_json::from_slice(&std::fs::read(path.join(INDEX))?)?;
        let shard = index["shards"][0].clone();
        let file = shard["file_name"].as_str().context("a shard has a name")?;
        let bytes = Arc::new(std::fs::read(path.join(file))?);
        let shards = (0..n_shards).map(|number| {
            let mut copy = shard.clone();
            copy["file_name"] = format!("{number:05}-{file}").into();
            copy
        });
        index["shards"] = shards.collect();
        for field in ["total_rows", "total_size"] {
            index["metadata"][field] = (index["metadata"][field].as_u64().context("a count")? * n_shards as u64).into();
        }
        let index = Arc::new(serde_json::to_vec(&index)?);
        let server = server::Server::start();
        for rank in 0..n_ranks {
            (0..n_shards).for_each(|number| server.put_shared(&format!("/{rank}/t/{number:05}-{file}"), bytes.clone()));
            server.put_shared(&format!("/{rank}/t/{INDEX}"), index.clone());
        }
        server.set_link(bytes_per_s, LATENCY);
        Ok(Self { server, folder, n_rows: shard_rows * n_shards, n_shards, bytes_per_s })
    }

    pub(super) fn bytes(&self) -> f64 {
        (self.n_rows * ROW_BYTES) as f64
    }

    /// The URL to which a rank adds [`table_of`] itself.
    pub(super) fn url(&self) -> String {
        self.server.url("")
    }

    /// The first shard as a table of files.
    pub(super) fn file(&self) -> PathBuf {
        self.folder.path().join("t")
    }

    /// Bytes of rows and headers that the server was asked for so far by each rank.
    pub(super) fn bytes_sent(&self, n_ranks: usize) -> Vec<f64> {
        let mut bytes = vec![0.0; n_ranks];
        for request in self.server.requests() {
            let rank = request.path.split('/').nth(1).and_then(|rank| rank.parse::<usize>().ok());
            if let (Some(bytes), Some((first, last))) = (rank.and_then(|rank| bytes.get_mut(rank)), request.range()) {
                *bytes += (last + 1 - first) as f64;
            }
        }
        bytes
    }
}

/// The table of a rank, of those at the URL of a server.
pub(super) fn table_of(rank: usize, url: &str) -> String {
    format!("{url}/{rank}/t")
}

/// The lanes of batches of rows of these tables.
pub(super) fn lanes(batch_rows: usize) -> Result<Lanes> {
    Lanes::of_batches(batch_rows, ROW_BYTES, Some(1)).context("a batch has lanes")
}

/// Bytes of a window of a lane.
pub(super) fn window_bytes(lanes: &Lanes) -> usize {
    lanes.block_rows as usize * lanes.window_blocks as usize * ROW_BYTES
}

/// The memory for so many windows of each lane of a rank.
pub(super) fn ahead_bytes(lanes: &Lanes, n_ranks: usize, n_windows: usize) -> usize {
    // Where ranks do not divide the lanes, one that begins and ends within lanes has one more.
    let n_lanes = lanes.n_lanes as usize;
    let more = usize::from(!n_lanes.is_multiple_of(n_ranks));
    n_windows * window_bytes(lanes) * (n_lanes.div_ceil(n_ranks) + more)
}
