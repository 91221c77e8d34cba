//! Predicts the time in which ranks read a table on a server.

use std::time::Duration;

/// A table on a server, and how ranks read it: each some lanes, which are regions of consecutive rows, block by block, while it
/// computes with the rows before.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use brisk_replicate::{ReadBound, TableReading};
///
/// let table = TableReading {
///     table_bytes: 100e9,
///     n_shards: 100,
///     n_lanes: 64,
///     window_bytes: 1e6,
///     block_bytes: 1e6,
///     requests_at_a_time: 16,
///     latency: Duration::from_millis(20),
///     server_bytes_per_s: 10e9,
///     host_bytes_per_s: 1e9,
///     ranks_per_host: 8,
///     cached: 0.0,
///     cache_bytes_per_s: 2e9,
///     rank_cache_bytes_per_s: 1e9,
/// };
/// assert_eq!(table.bound(8), ReadBound::Host);
/// assert_eq!(table.bound(128), ReadBound::Server);
/// // Two ranks read each lane.
/// assert_eq!(table.rank_bytes(128), table.rank_bytes(64));
/// let compute = Duration::from_secs(60);
/// assert!(table.epoch(64, compute) < compute + Duration::from_secs(1), "100 GB at 10 GB/s take 10 s, which computing hides");
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TableReading {
    /// Bytes of all rows.
    pub table_bytes: f64,
    /// Files of the table. A rank asks for the beginning of each before the first epoch.
    pub n_shards: usize,
    /// Regions of consecutive rows, of each of which every batch has as many rows; a rank reads those of its part of the batch.
    pub n_lanes: usize,
    /// Bytes of each lane that a rank waits for before the first step. The rest is read while the steps before are computed.
    /// Infinite if nothing is, so that reading and computing take turns.
    pub window_bytes: f64,
    /// Bytes of a request.
    pub block_bytes: f64,
    /// Requests of a rank that wait for an answer at the same time, at most.
    pub requests_at_a_time: usize,
    /// The time from a request to the first byte of its answer.
    pub latency: Duration,
    /// Bandwidth of the server, for all ranks together.
    pub server_bytes_per_s: f64,
    /// Bandwidth of a host, for its ranks together.
    pub host_bytes_per_s: f64,
    /// Ranks on each host.
    pub ranks_per_host: usize,
    /// The share of a rank's blocks that the cache of its host has: 0 in the first epoch, 1 later if the cache is large enough.
    pub cached: f64,
    /// Bandwidth of a host's cache, for its ranks together.
    pub cache_bytes_per_s: f64,
    /// Bandwidth of a cache that one rank reads, which checks and copies the rows.
    pub rank_cache_bytes_per_s: f64,
}

/// What limits the speed of reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReadBound {
    /// The bandwidth of the server.
    Server,
    /// The bandwidth of each host.
    Host,
    /// The latency of requests, and how many there are at a time.
    Requests,
    /// The cache of each host.
    Cache,
}

impl TableReading {
    /// The lanes that the rank with the most of them reads: where ranks do not divide the lanes, neighbours share one.
    pub fn rank_lanes(&self, n_ranks: usize) -> usize {
        let (n_ranks, n_lanes) = (n_ranks.max(1), self.n_lanes.max(1));
        let of_rank = |rank: usize| ((rank + 1) * n_lanes).div_ceil(n_ranks) - rank * n_lanes / n_ranks;
        (0..n_ranks).map(of_rank).max().unwrap_or(n_lanes)
    }

    /// The share of the table in the lanes of that rank.
    fn rank_share(&self, n_ranks: usize) -> f64 {
        self.rank_lanes(n_ranks) as f64 / self.n_lanes.max(1) as f64
    }

    /// Bytes that the rank with the most lanes reads in an epoch: their rows, and the rest of the blocks at their ends.
    pub fn rank_bytes(&self, n_ranks: usize) -> f64 {
        // Half a block at each end, if there are neighbours.
        let rest = if n_ranks > 1 { self.block_bytes } else { 0.0 };
        (self.table_bytes * self.rank_share(n_ranks) + rest).min(self.table_bytes)
    }

    /// The speed at which each rank reads from the server, in bytes per second, and what limits it.
    fn server_speed(&self, n_ranks: usize) -> (f64, ReadBound) {
        let server = self.server_bytes_per_s / n_ranks.max(1) as f64;
        let host = self.host_bytes_per_s / self.ranks_per_host.clamp(1, n_ranks.max(1)) as f64;
        let (link, bound) = if server <= host { (server, ReadBound::Server) } else { (host, ReadBound::Host) };
        let block_s = self.latency.as_secs_f64() + self.block_bytes / link;
        let requests = self.requests_at_a_time as f64 * self.block_bytes / block_s;
        if requests < link { (requests, ReadBound::Requests) } else { (link, bound) }
    }

    /// Seconds per byte from the server, and from the cache, of the bytes that come from there.
    fn s_per_byte(&self, n_ranks: usize) -> [f64; 2] {
        let of_host = self.cache_bytes_per_s / self.ranks_per_host.clamp(1, n_ranks.max(1)) as f64;
        let cache = of_host.min(self.rank_cache_bytes_per_s);
        [(1.0 - self.cached) / self.server_speed(n_ranks).0, self.cached / cache]
    }

    /// What limits the speed of reading: of server and cache, the one that takes longer.
    pub fn bound(&self, n_ranks: usize) -> ReadBound {
        let [server, cache] = self.s_per_byte(n_ranks);
        if cache > server { ReadBound::Cache } else { self.server_speed(n_ranks).1 }
    }

    /// The time in which each of `n_ranks` opens the table: the index, and then the beginning of every file.
    pub fn open(&self, n_ranks: usize) -> Duration {
        let at_a_time = self.requests_at_a_time.max(1);
        let bytes_s = self.n_shards as f64 * self.block_bytes * self.s_per_byte(n_ranks)[0];
        let latencies = self.latency.mul_f64((1 + self.n_shards.div_ceil(at_a_time)) as f64 * (1.0 - self.cached));
        latencies + Duration::from_secs_f64(bytes_s)
    }

    /// The time of reading an epoch if nothing is computed. The server and the cache are read at the same time.
    pub fn read(&self, n_ranks: usize) -> Duration {
        let [server, cache] = self.s_per_byte(n_ranks);
        let latency = if self.cached < 1.0 { self.latency } else { Duration::ZERO };
        latency + Duration::from_secs_f64(self.rank_bytes(n_ranks) * server.max(cache))
    }

    /// The time of an epoch whose steps take `compute` on each of `n_ranks`: all of the longer of reading and computing, and as
    /// much of the other as cannot be hidden, which is the first window of reading, or the last of computing.
    ///
    /// Not modelled: reading and computing that compete for the same cores, servers and links whose speed varies, and ranks of a
    /// host that read the same blocks, which its cache reads once.
    pub fn epoch(&self, n_ranks: usize, compute: Duration) -> Duration {
        let read = self.read(n_ranks);
        let window_bytes = self.window_bytes * self.rank_lanes(n_ranks) as f64;
        let window = (window_bytes / self.rank_bytes(n_ranks)).clamp(0.0, 1.0);
        read.max(compute) + read.min(compute).mul_f64(window)
    }
}
