//! Tables that are read from their file in bounded memory.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use brisk_loader::{Batching, Hint, Loader, RowBuffers, RowMemory, RowSelection, RowSource, row_source_conformance};
use brisk_table::{
    DType, Dictionary, Error, ReadAhead, RowBatch, Schema, ShardSize, ShardedTable, StreamedTable, Table, TableWriter, Weights,
};

/// Writes rows with every part: three bytes, two codes, a label in `i64`, a weight.
fn write_parts(path: &Path, n_rows: usize) {
    let categories = vec!["a".to_owned(), "b".to_owned()];
    let schema =
        Schema { dtype: DType::U8, label_dtype: DType::I64, weights: Weights::Present, categories, ..Schema::shaped(&[3]) };
    let mut writer = TableWriter::create(path, schema).unwrap();
    let dictionary = |name| Dictionary::new(name, (0..7).map(|i| i.to_string())).unwrap();
    writer.set_dictionaries(vec![dictionary("a"), dictionary("b")]).unwrap();
    for i in 0..n_rows {
        writer
            .push_batch(RowBatch {
                features: &[i as u8, (i >> 8) as u8, (i >> 16) as u8],
                categories: &[i as u32 % 8, i as u32 % 3],
                labels: &[i as i64],
                weights: &[i as f32 / 2.0],
            })
            .unwrap();
    }
    writer.finish().unwrap();
}

/// With no memory at all, little, and plenty; with and without announcements.
#[test]
fn a_streamed_table_is_a_row_source() {
    for n_rows in [1, 2, 700, 100_000] {
        let (_folder, path) = crate::scratch();
        crate::table::write_ramp(&path, n_rows);
        for budget in [0, 100, 64 << 10, 64 << 20] {
            let table = StreamedTable::open(&path, &ReadAhead::new(budget)).unwrap();
            row_source_conformance(&table);
            table.hint(RowSelection::Range(0..n_rows), Hint::WillNeed);
            row_source_conformance(&table);
            table.verify().unwrap();
        }
    }
    let (_folder, path) = crate::scratch();
    write_parts(&path, 5000);
    let table = StreamedTable::open(&path, &ReadAhead::new(1 << 20)).unwrap();
    row_source_conformance(&table);
    table.hint(RowSelection::Range(1000..4900), Hint::WillNeed);
    row_source_conformance(&table);
    row_source_conformance(&table.typed::<u8>().unwrap());
}

/// All parts of a row are correct, whether it was announced, released, or did not fit.
#[test]
fn announced_rows_are_the_rows() {
    let (_folder, path) = crate::scratch();
    write_parts(&path, 20_000);
    let whole = Table::open(&path).unwrap();
    for budget in [1000, 100_000, 8 << 20] {
        let ahead = ReadAhead::new(budget);
        let table = StreamedTable::open(&path, &ahead).unwrap();
        for window in (0..20_000).step_by(1000) {
            table.hint(RowSelection::Range(window..window + 1000), Hint::WillNeed);
            // Overlaps rows that are in memory, and lies partly beyond the table.
            table.hint(RowSelection::Range(window + 500..window + 1700), Hint::WillNeed);
            let rows: Vec<u32> = (0..300).map(|i| (window + (i * 7919) % 1000) as u32).collect();
            check_same(&whole, &table, &rows);
            if window % 3000 == 0 {
                table.hint(RowSelection::Range(0..window + 1000), Hint::DontNeed);
            }
        }
        let report = ahead.report();
        if budget == 8 << 20 {
            assert_eq!((report.rows_from_file, report.rows_without_room), (0, 0), "{report:?}");
        } else if budget == 1000 {
            assert!(report.rows_without_room > 0 && report.rows_from_file > 0, "{report:?}");
        }
    }
}

#[track_caller]
fn check_same(whole: &Table, streamed: &impl RowSource<Feature = f32, Error = Error>, rows: &[u32]) {
    type Gathered = (Vec<f32>, Vec<f32>, Vec<u32>, Vec<f32>);
    fn gathered(source: &impl RowSource<Feature = f32, Error = Error>, rows: &[u32]) -> Gathered {
        let mut memory = RowMemory::new(source.layout(), rows.len());
        source.gather(RowSelection::Numbers(rows), memory.buffers(rows.len())).unwrap();
        let all = memory.chunk(0, rows.len());
        (all.features.to_vec(), all.labels.to_vec(), all.categories.to_vec(), all.weights.to_vec())
    }
    assert!(gathered(whole, rows) == gathered(streamed, rows), "rows differ");
}

/// The loader announces the rows that it needs next, so that nothing is read twice or row by row; with workers ahead or without.
#[test]
fn an_epoch_of_shuffled_blocks_is_read_ahead() {
    let (_folder, path) = crate::scratch();
    write_parts(&path, 50_000);
    let whole = Table::open(&path).unwrap();
    let ahead = ReadAhead::new(2 << 20);
    let streamed = StreamedTable::open(&path, &ahead).unwrap();
    let batching = || Batching::of(512).shuffled_blocks(7, 3000, 4);
    let mut expected = Loader::new(&whole, batching()).unwrap();
    let mut loader = Loader::new(&streamed, batching()).unwrap();
    for epoch in 0..2 {
        let (mut expected, mut batches) = (expected.epoch(epoch), loader.epoch(epoch));
        while let Some(expected) = expected.next_batch().unwrap() {
            let batch = batches.next_batch().unwrap().unwrap();
            assert_eq!((batch.features, batch.labels), (expected.features, expected.labels));
            assert_eq!((batch.categories, batch.weights), (expected.categories, expected.weights));
        }
        assert!(batches.next_batch().unwrap().is_none());
    }
    // An epoch that ends early releases its rows.
    for epoch in 2..40 {
        loader.epoch(epoch).next_batch().unwrap();
    }
    let mut batches = loader.epoch(40);
    while batches.next_batch().unwrap().is_some() {}
    let report = ahead.report();
    assert_eq!((report.rows_from_file, report.rows_without_room), (0, 0), "{report:?}");
}

/// They are read where there is room, give way to rows that are needed next, and take nothing from those that are in use.
#[test]
fn rows_for_later_use_the_room_that_is_left() {
    let (_folder, path) = crate::scratch();
    write_parts(&path, 20_000);
    let whole = Table::open(&path).unwrap();
    let row_bytes = 3 + 2 * 4 + 8 + 4;
    let ahead = ReadAhead::new(4500 * row_bytes);
    let table = StreamedTable::open(&path, &ahead).unwrap();
    let hint = |rows, hint| table.hint(RowSelection::Range(rows), hint);
    let is_in_memory = |rows: Range<usize>| {
        let before = ahead.report().rows_from_file;
        let rows: Vec<u32> = rows.map(|row| row as u32).collect();
        check_same(&whole, &table, &rows);
        ahead.report().rows_from_file == before
    };
    hint(0..1000, Hint::WillNeed);
    hint(1000..2000, Hint::WillNeedLater);
    hint(2000..4000, Hint::WillNeedLater);
    hint(4000..5000, Hint::WillNeedLater);
    assert!(is_in_memory(0..4000), "there is room for these");
    assert!(!is_in_memory(4000..5000), "there is none for these");
    // The last of those for later make room, the one that comes next stays.
    hint(1000..2000, Hint::WillNeed);
    hint(8000..10_000, Hint::WillNeed);
    assert!(is_in_memory(0..2000) && is_in_memory(8000..10_000), "they are in use or come next");
    assert!(!is_in_memory(2000..4000), "they have made room");
    // Without room to spare, nothing is read for later.
    hint(12_000..14_000, Hint::WillNeedLater);
    assert!(!is_in_memory(12_000..14_000), "there is none");
    assert!(is_in_memory(0..2000) && is_in_memory(8000..10_000), "no row in use makes room");
    hint(0..20_000, Hint::DontNeed);
    hint(12_000..14_000, Hint::WillNeedLater);
    assert!(is_in_memory(12_000..14_000), "now there is room");
    assert_eq!(ahead.report().rows_without_room, 0, "of rows that come next");
}

/// Whatever the reader gives up for lack of room is read before it is needed.
#[test]
fn little_room_for_later_costs_no_row() {
    let (_folder, path) = crate::scratch();
    write_parts(&path, 40_000);
    let (row_bytes, window_rows) = (3 + 2 * 4 + 8 + 4, 2 * 100);
    for tenths in [35, 40, 45, 52] {
        let ahead = ReadAhead::new(tenths * window_rows * row_bytes / 10);
        let table = StreamedTable::open(&path, &ahead).unwrap();
        let mut loader = Loader::new(&table, Batching::of(50).shuffled_blocks(7, 100, 2)).unwrap();
        for epoch in 0..20 {
            let mut batches = loader.epoch(epoch);
            while batches.next_batch().unwrap().is_some() {}
        }
        let report = ahead.report();
        assert_eq!((report.rows_from_file, report.rows_without_room), (0, 0), "{tenths}: {report:?}");
    }
}

/// Many threads, announcements and releases at once, with a budget for a fraction of the table.
#[test]
fn threads_share_a_table() {
    let (_folder, path) = crate::scratch();
    write_parts(&path, 60_000);
    let whole = Table::open(&path).unwrap();
    let table = StreamedTable::open(&path, &ReadAhead::new(200_000)).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4_usize {
            let (whole, table) = (&whole, &table);
            scope.spawn(move || {
                for round in 0..60 {
                    let start = (thread * 15_000 + round * 977) % 59_000;
                    table.hint(RowSelection::Range(start..start + 1000), Hint::WillNeed);
                    let rows: Vec<u32> = (0..200).map(|i| (start + (i * 31) % 1000) as u32).collect();
                    check_same(whole, table, &rows);
                    table.hint(RowSelection::Range(start..start + 1000), Hint::DontNeed);
                }
            });
        }
    });
}

#[test]
fn shards_are_streamed_within_one_budget() {
    let parent = tempfile::tempdir().unwrap();
    crate::shards::write_ramp(&parent.path().join("t"), 10_000, ShardSize::Rows(1500), 1.0);
    let ahead = ReadAhead::new(1 << 20);
    let table = ShardedTable::open_streamed(parent.path().join("t"), &ahead).unwrap();
    table.hint(RowSelection::Range(0..10_000), Hint::WillNeed);
    table.gather(RowSelection::Range(5..9_000), RowBuffers::new(&mut vec![0.0; 2 * 8_995], &mut vec![0.0; 8_995])).unwrap();
    let report = ahead.report();
    assert_eq!((report.rows_from_memory, report.rows_from_file), (2 * 8_995, 0), "features and labels");
    row_source_conformance(&table);
    table.verify().unwrap();
}

/// If the file were mapped, the process would be terminated.
#[test]
fn a_file_that_shrinks_is_an_error() {
    let (_folder, path) = crate::scratch();
    crate::table::write_ramp(&path, 100_000);
    let table = StreamedTable::open(&path, &ReadAhead::new(1 << 20)).unwrap();
    OpenOptions::new().write(true).open(&path).unwrap().set_len(100_000).unwrap();
    table.hint(RowSelection::Range(50_000..60_000), Hint::WillNeed);
    let error = table.gather(RowSelection::Range(50_000..50_001), RowBuffers::new(&mut [0.0; 2], &mut [0.0])).unwrap_err();
    assert!(matches!(error, Error::Io { .. }) && error.to_string().contains("table.safetensors: cannot read"), "{error}");
    assert!(table.verify().is_err());
}

#[test]
fn a_table_goes_while_others_are_read() {
    let (_folder, path) = crate::scratch();
    crate::table::write_ramp(&path, 100_000);
    let ahead = ReadAhead::new(4 << 20);
    for _ in 0..20 {
        let table = StreamedTable::open(&path, &ahead).unwrap();
        table.hint(RowSelection::Range(0..100_000), Hint::WillNeed);
    }
    let table = StreamedTable::open(&path, &ahead).unwrap();
    table.hint(RowSelection::Range(0..100_000), Hint::WillNeed);
    check_same(&Table::open(&path).unwrap(), &table, &[99_999, 0, 50_000]);
}

/// A table of `n_rows` rows of 28 `f32`, all zeros except the first value of each row in `set`, which is the row's number: a
/// sparse file.
fn write_sparse(path: &Path, n_rows: u64, set: impl IntoIterator<Item = u64>) {
    let (features, labels) = (n_rows * 112, n_rows * 4);
    let json = format!(
        r#"{{"features":{{"dtype":"F32","shape":[{n_rows},28],"data_offsets":[0,{features}]}},"labels":{{"dtype":"F32","shape":[{n_rows}],"data_offsets":[{features},{}]}}}}"#,
        features + labels
    );
    let json = format!("{json:<4088}");
    let mut file = File::create(path).unwrap();
    file.write_all(&4088_u64.to_le_bytes()).unwrap();
    file.write_all(json.as_bytes()).unwrap();
    file.set_len(4096 + features + labels).unwrap();
    for row in set {
        file.seek(SeekFrom::Start(4096 + row * 112)).unwrap();
        file.write_all(&(row as f32).to_le_bytes()).unwrap();
    }
}

/// 180 million rows, 20 GB.
const N_LARGE: u64 = 180_000_000;
const DEST: &str = "BRISK_TABLE_TEST_LARGE";

#[test]
fn opening_takes_no_longer_for_a_large_file() {
    let (_folder, path) = crate::scratch();
    write_sparse(&path, N_LARGE / 2, []);
    assert!(fs::metadata(&path).unwrap().len() > 10_000_000_000);
    let open = || {
        let start = Instant::now();
        // SAFETY: only this test uses the folder.
        #[expect(unsafe_code, reason = "it is what is timed")]
        let table = unsafe { Table::open_mapped(&path) }.unwrap();
        assert_eq!(table.rows::<f32>(N_LARGE as usize / 2 - 1..N_LARGE as usize / 2).unwrap(), [0.0; 28]);
        start.elapsed()
    };
    // The best of several: other tests run at the same time.
    let best = (0..20).map(|_| open()).min().unwrap();
    assert!(best < Duration::from_millis(5), "it took {best:?}");
}

/// Not a test by itself: the test below runs it in a process with little memory.
#[test]
fn child_with_little_memory() {
    let Some(path) = env::var_os(DEST) else { return };
    // SAFETY: no process writes to the file.
    #[expect(unsafe_code, reason = "to know that the limit is there")]
    let mapped = unsafe { Table::open_mapped(&path) };
    assert!(mapped.is_err(), "20 GB were mapped: the limit is not there");

    let ahead = ReadAhead::new(64 << 20);
    let table = StreamedTable::open(&path, &ahead).unwrap();
    let (n_rows, block) = (table.n_rows(), 65_536);
    let (mut features, mut labels) = (vec![0.0; 4096 * 28], vec![0.0; 4096]);
    let mut n_set = 0;
    // Thirty blocks at different positions; the next one is always announced.
    let blocks: Vec<usize> = (0..30).map(|i| (i * 1_103_515_245_usize) % (n_rows / block) * block).collect();
    for (i, &start) in blocks.iter().enumerate() {
        for &soon in blocks.iter().skip(i).take(2) {
            table.hint(RowSelection::Range(soon..soon + block), Hint::WillNeed);
        }
        for batch in 0..block / 4096 {
            let rows: Vec<u32> = (0..4096).map(|i| (start + (batch * 4096 + i) * 48_271 % block) as u32).collect();
            table.gather(RowSelection::Numbers(&rows), RowBuffers::new(&mut features, &mut labels)).unwrap();
            for (&row, values) in rows.iter().zip(features.chunks(28)) {
                let expected = if row % 1_000_000 == 0 { row as f32 } else { 0.0 };
                assert!(values[0] == expected && values[1..].iter().all(|&x| x == 0.0), "row {row} is {values:?}");
                n_set += usize::from(values[0] != 0.0);
            }
        }
        table.hint(RowSelection::Range(start..start + block), Hint::DontNeed);
    }
    assert_eq!(ahead.report().rows_from_file, 0);
    // Rows that were not announced, and rows in order.
    let far: Vec<u32> = (0..4096).map(|i| i * 43_000 / 1000 * 1000).collect();
    table.gather(RowSelection::Numbers(&far), RowBuffers::new(&mut features, &mut labels)).unwrap();
    n_set += features.iter().filter(|&&x| x != 0.0).count();
    table.gather(RowSelection::Range(n_rows - 4096..n_rows), RowBuffers::new(&mut features, &mut labels)).unwrap();
    assert!(n_set > 0, "no row with something in it was read");
}

/// The limit is on address space, so the file cannot be mapped.
#[test]
#[cfg(unix)]
fn a_table_larger_than_memory_is_read_in_little() {
    let (_folder, path) = crate::scratch();
    write_sparse(&path, N_LARGE, (0..N_LARGE).step_by(1_000_000));
    let output = Command::new("sh")
        .args(["-c", r#"ulimit -v 1000000; exec "$0" --exact streamed::child_with_little_memory --test-threads 1"#])
        .arg(env::current_exe().unwrap())
        .env(DEST, &path)
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
