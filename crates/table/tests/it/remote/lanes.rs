//! Ranks that read a table on a server together, in the order by lanes.

use brisk_loader::{Batching, Lanes, Loader, Order, Shard};
use brisk_table::{CacheFolder, ReadAhead, Remote, RemoteOptions, Schema, StreamedTable, TableWriter};

use super::options;
use super::server::Server;

const BATCH_ROWS: usize = 64;

/// A table on a server, and its size. The first feature of a row is its number.
fn serving(n_rows: usize, n_cols: usize) -> (Server, usize) {
    let (_folder, path) = crate::scratch();
    let mut writer = TableWriter::create(&path, Schema::shaped(&[n_cols])).unwrap();
    let mut rows = vec![0.0; 4096 * n_cols];
    for start in (0..n_rows).step_by(4096) {
        rows.chunks_exact_mut(n_cols).zip(start..).for_each(|(row, number)| row[0] = number as f32);
        writer.push(&rows, &[1.0_f32; 4096]).unwrap();
    }
    writer.finish().unwrap();
    let bytes = std::fs::read(path).unwrap();
    let (server, n_bytes) = (Server::start(), bytes.len());
    server.put("/t.safetensors", bytes);
    (server, n_bytes)
}

/// The bytes that ranks without a cache, and with memory for few blocks, read in an epoch. Every row is read by one of them.
fn bytes_of_an_epoch(server: &Server, n_rows: usize, lanes: Lanes, n_ranks: usize) -> u64 {
    let (mut n_bytes, mut seen) = (0, vec![false; n_rows]);
    for rank in 0..n_ranks {
        let remote = Remote::new(RemoteOptions { memory_bytes: 4 << 20, ..options(CacheFolder::Off) }).unwrap();
        let ahead = ReadAhead::new(40 << 20);
        let table = StreamedTable::open_url(&server.url("/t.safetensors"), &ahead, &remote).unwrap();
        let shard = Shard::parts(rank, n_ranks);
        let batching = Batching { order: Order::Lanes(lanes), shard, ..Batching::of(BATCH_ROWS) };
        let mut loader = Loader::new(&table, batching).unwrap();
        let mut batches = loader.epoch(0);
        while let Some(batch) = batches.next_batch().unwrap() {
            for row in batch.features.chunks_exact(batch.features.len() / batch.labels.len()) {
                assert!(!std::mem::replace(&mut seen[row[0] as usize], true), "row {} is read twice", row[0]);
            }
        }
        let report = ahead.report();
        assert_eq!((report.rows_without_room, report.rows_from_file), (0, 0), "{report:?}");
        n_bytes += remote.report().bytes_from_server;
    }
    assert!(seen.iter().all(|&seen| seen), "rows are missing");
    n_bytes
}

/// The blocks of lanes are those by which a server is asked, so that ranks without a cache read each block once, not once for
/// each block of rows in it.
#[test]
fn without_a_cache_the_table_is_read_once() {
    const N_ROWS: usize = 131_072;
    // 4096 rows of 256 bytes are a block.
    let (server, n_bytes) = serving(N_ROWS, 64);
    let lanes = Lanes::of_batches(BATCH_ROWS, 65 * 4, Some(1)).unwrap();
    for n_ranks in [1, 2] {
        let share = bytes_of_an_epoch(&server, N_ROWS, lanes, n_ranks) as f64 / n_bytes as f64;
        assert!((1.0..=1.05).contains(&share), "{n_ranks} ranks read {share:.3} of the table");
    }
}

/// With room for few windows, what is read for later and given up again is read before it is needed: by many threads, and more
/// than once.
#[test]
fn little_room_costs_no_row() {
    const N_ROWS: usize = 65_536;
    let (server, _) = serving(N_ROWS, 16);
    let remote = Remote::new(options(CacheFolder::Off)).unwrap();
    let lanes = Lanes { seed: Some(3), batch_rows: 64, n_lanes: 4, block_rows: 64, window_blocks: 2 };
    let window_bytes = 4 * 2 * 64 * (16 + 1) * 4;
    for tenths in [40, 43, 50, 56] {
        let ahead = ReadAhead::new(tenths * window_bytes / 10);
        let table = StreamedTable::open_url(&server.url("/t.safetensors"), &ahead, &remote).unwrap();
        let mut loader = Loader::new(&table, Batching { order: Order::Lanes(lanes), ..Batching::of(BATCH_ROWS) }).unwrap();
        for epoch in 0..6 {
            let mut batches = loader.epoch(epoch);
            while batches.next_batch().unwrap().is_some() {}
        }
        let report = ahead.report();
        assert_eq!((report.rows_without_room, report.rows_from_file), (0, 0), "{tenths}: {report:?}");
    }
}
