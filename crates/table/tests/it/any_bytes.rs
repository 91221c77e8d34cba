//! What must hold of any bytes at all. The fuzz targets run these functions on bytes of their own, the tests on damaged ones of ours.

use std::fs;
use std::path::Path;

use brisk_table::format::{Layout, MAX_HEADER_BYTES, ShardIndex, header_bytes};
use brisk_table::{CsvOptions, Delimiter, Header, Table, TensorNames, import_csv};

/// As the file of a table: it is refused, or all of it can be read.
pub(crate) fn check_table(bytes: &[u8], scratch: &Path) {
    if let Some(&first_eight) = bytes.first_chunk::<8>()
        && let Ok(n) = header_bytes(first_eight, bytes.len() as u64)
    {
        assert!(n as u64 <= MAX_HEADER_BYTES && 8 + n <= bytes.len(), "a header of {n} bytes in a file of {}", bytes.len());
        if let Ok(layout) = Layout::parse(&bytes[8..8 + n], bytes.len() as u64) {
            let mut end = layout.data_start;
            for tensor in &layout.tensors {
                assert_eq!(tensor.range.start, end, "tensors leave a hole or overlap");
                let n_values: usize = tensor.shape.iter().product();
                assert_eq!(tensor.range.len(), n_values * tensor.dtype.n_bytes(), "a range is not as long as its shape");
                end = tensor.range.end;
            }
            assert_eq!(end, bytes.len(), "tensors do not cover the file");
        } else {
            return;
        }
    }
    let path = scratch.join("any.safetensors");
    fs::write(&path, bytes).expect("the folder for temporary files takes a small one");
    let Ok(table) = Table::open_named(&path, &TensorNames::default()) else { return };
    let n_rows = table.n_rows();
    let row_bytes = table.n_cols() * table.dtype().n_bytes();
    assert_eq!(table.row_bytes(0..n_rows).expect("all rows are there").len(), n_rows * row_bytes);
    assert!(table.row_bytes(n_rows..n_rows + 1).is_err(), "there is a row behind the last");
    assert_eq!(table.categories(0..n_rows).expect("all rows are there").len(), n_rows * table.n_categories());
    assert!(table.weights().is_none_or(|weights| weights.len() == n_rows));
    assert!(table.labels::<f32>().is_err() || table.labels::<f32>().is_ok_and(|labels| labels.len() == n_rows));
    assert!(table.column_names().is_empty() || table.column_names().len() == table.n_cols());
    assert!(table.statistics().is_none_or(|statistics| statistics.len() == table.n_cols()));
    _ = table.verify();
}

/// As an index of shards: it is refused, or names files beside it and adds up.
pub(crate) fn check_index(bytes: &[u8]) {
    let Ok(index) = ShardIndex::parse(bytes) else { return };
    assert!(!index.shards.is_empty());
    let mut n_rows = 0_u64;
    for shard in &index.shards {
        assert_eq!(Path::new(&shard.file_name).components().count(), 1, "{:?} is not a file beside the index", shard.file_name);
        assert!(!["", ".", ".."].contains(&shard.file_name.as_str()) && !shard.file_name.contains(['/', '\\', '\0']));
        n_rows = n_rows.checked_add(shard.n_rows).expect("the rows were added up before");
    }
}

/// As text: it is refused, or the table has the rows and the bits that the `csv` crate finds.
pub(crate) fn check_csv(bytes: &[u8], scratch: &Path) {
    let (source, dest) = (scratch.join("any.csv"), scratch.join("any.csv.safetensors"));
    fs::write(&source, bytes).expect("the folder for temporary files takes a small one");
    let options = CsvOptions { delimiter: Delimiter::Byte(b','), header: Header::Absent, n_threads: 1, ..CsvOptions::default() };
    let Ok(report) = import_csv(&source, &dest, &options) else { return };
    let table = Table::open(&dest).expect("an import makes a table");
    table.verify().expect("an import makes a table");
    assert_eq!(report.n_rows, table.n_rows());
    // What is packed, or starts with a mark of its encoding, is unpacked by ours alone.
    if bytes.starts_with(&[0x1f, 0x8b]) || bytes.starts_with(b"\xef\xbb\xbf") {
        return;
    }
    let (features, labels) = (table.rows::<f32>(0..table.n_rows()).unwrap(), table.labels::<f32>().unwrap());
    // For us a carriage return ends no row: before a line feed or elsewhere, it is a blank about a cell.
    let mut reader = csv::ReaderBuilder::new();
    reader.has_headers(false).flexible(true).terminator(csv::Terminator::Any(b'\n'));
    let mut theirs = reader.from_reader(bytes);
    // A line of nothing but blanks is no row for us, and one empty cell for them.
    let records = theirs.byte_records().map(|record| record.expect("bytes are in memory"));
    let rows: Vec<_> =
        records.filter(|record| record.len() > 1 || record.iter().any(|cell| !cell.trim_ascii().is_empty())).collect();
    assert_eq!(rows.len(), table.n_rows(), "{:?}", String::from_utf8_lossy(bytes));
    for (row, record) in rows.iter().enumerate() {
        let cells = record.iter().map(|cell| str::from_utf8(cell.trim_ascii()).ok()?.parse::<f32>().ok());
        let ours = [labels[row]].into_iter().chain(features[row * table.n_cols()..][..table.n_cols()].iter().copied());
        for (col, (ours, theirs)) in ours.zip(cells).enumerate() {
            let theirs = theirs.unwrap_or(f32::NAN);
            assert!(
                ours.to_bits() == theirs.to_bits() || (ours.is_nan() && theirs.is_nan()),
                "row {row}, column {col}: {ours} {theirs}"
            );
        }
    }
}
