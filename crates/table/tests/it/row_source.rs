use brisk_loader::{RowBuffers, RowSelection, RowSource, row_source_conformance};
use brisk_table::{
    DType, Error, ReadAhead, Schema, ShardSize, ShardedTable, ShardedWriter, StreamedTable, Table, TableWriter, Weights,
};

#[test]
fn a_table_is_a_row_source() {
    for n_rows in [1, 2, 700, 100_000] {
        let (_folder, path) = crate::scratch();
        crate::table::write_ramp(&path, n_rows);
        // SAFETY: only this test uses the folder.
        #[expect(unsafe_code, reason = "maps keep the contract as copies do")]
        let mapped = unsafe { Table::open_mapped(&path) }.unwrap();
        row_source_conformance(&mapped);
        row_source_conformance(&Table::open(&path).unwrap());
    }
}

#[test]
fn bytes_are_gathered_as_numbers() {
    let (_folder, path) = crate::scratch();
    let schema = Schema { dtype: DType::U8, label_dtype: DType::I64, ..Schema::shaped(&[2, 2]) };
    let mut writer = TableWriter::create(&path, schema).unwrap();
    writer.push(&[0_u8, 1, 2, 3, 252, 253, 254, 255], &[7_i64, -1]).unwrap();
    writer.finish().unwrap();
    let table = Table::open(&path).unwrap();
    row_source_conformance(&table);
    let (mut features, mut labels) = ([0.0; 8], [0.0; 2]);
    table.gather(RowSelection::Numbers(&[1, 0]), RowBuffers::new(&mut features, &mut labels)).unwrap();
    assert_eq!((features, labels), ([252.0, 253.0, 254.0, 255.0, 0.0, 1.0, 2.0, 3.0], [-1.0, 7.0]));
}

#[test]
fn whole_numbers_are_not_rounded() {
    let check = |label_dtype: DType, labels: &[i64], expected: Option<&str>| {
        let (_folder, path) = crate::scratch();
        let schema = Schema { label_dtype, ..Schema::named(["x"]) };
        let mut writer = TableWriter::create(&path, schema).unwrap();
        let features = vec![0.0_f32; labels.len()];
        match label_dtype {
            DType::U32 => {
                let labels: Vec<u32> = labels.iter().map(|&label| label as u32).collect();
                writer.push(&features, &labels).unwrap();
            }
            _ => writer.push(&features, labels).unwrap(),
        }
        writer.finish().unwrap();
        let gathered = brisk_loader::labels_of(&Table::open(&path).unwrap());
        match expected {
            None => assert_eq!(gathered.unwrap(), labels.iter().map(|&label| label as f32).collect::<Vec<_>>()),
            Some(part) => {
                let error = gathered.expect_err("labels would be rounded").to_string();
                assert!(error.contains(part) && error.contains("`labels`"), "{error}");
            }
        }
    };
    check(DType::I64, &[1 << 24, -(1 << 24), 1 << 40, i64::MIN], None);
    check(DType::I64, &[0, (1 << 24) + 1], Some("16777217, which f32 rounds to 16777216"));
    check(DType::I64, &[i64::MAX], Some("9223372036854775807"));
    check(DType::U32, &[7, i64::from(u32::MAX)], Some("4294967295"));
}

/// Stored statistics are used as column moments only if no value is missing and rows are not images.
#[test]
fn a_table_knows_the_moments_of_its_columns() {
    let (folder, path) = crate::scratch();
    let features = [1.0_f32, 5.0, 3.0, 5.0, 5.0, 5.0, 7.0, 5.0];
    let schema = Schema::named(["x", "constant"]);
    let mut writer = TableWriter::create(&path, schema.clone()).unwrap();
    let mut shards = ShardedWriter::create(folder.path().join("shards"), schema.clone(), ShardSize::Rows(3)).unwrap();
    writer.push(&features, &[0.0_f32; 4]).unwrap();
    shards.push(&features, &[0.0_f32; 4]).unwrap();
    writer.finish().unwrap();
    shards.finish().unwrap();
    let expected = [(4.0, 5.0_f64.sqrt()), (5.0, 0.0)];
    let ahead = ReadAhead::new(1 << 20);
    check_moments(&Table::open(&path).unwrap(), Some(expected));
    check_moments(&Table::open(&path).unwrap().typed::<f32>().unwrap(), Some(expected));
    check_moments(&StreamedTable::open(&path, &ahead).unwrap(), Some(expected));
    check_moments(&ShardedTable::open_streamed(folder.path().join("shards"), &ahead).unwrap(), Some(expected));

    for value in [f32::NAN, f32::INFINITY] {
        let mut writer = TableWriter::create(&path, schema.clone()).unwrap();
        writer.push(&[1.0, 5.0, value, 5.0], &[0.0_f32; 2]).unwrap();
        writer.finish().unwrap();
        check_moments(&Table::open(&path).unwrap(), None);
    }
    let mut writer = TableWriter::create(&path, Schema { dtype: DType::U8, ..Schema::shaped(&[2, 1, 1]) }).unwrap();
    writer.push(&[1_u8, 2, 3, 4], &[0.0_f32; 2]).unwrap();
    writer.finish().unwrap();
    check_moments(&Table::open(&path).unwrap(), None);
}

#[track_caller]
fn check_moments<S: RowSource<Feature = f32>>(source: &S, expected: Option<[(f64, f64); 2]>) {
    row_source_conformance(source);
    let found = source.column_moments().map(|moments| moments.iter().map(|of| (of.mean, of.std)).collect::<Vec<_>>());
    let Some(expected) = expected else { return assert_eq!(found, None) };
    let found = found.expect("the table has statistics");
    for (column, (found, expected)) in found.into_iter().zip(expected).enumerate() {
        let is_near = (found.0 - expected.0).abs() < 1e-12 && (found.1 - expected.1).abs() < 1e-12;
        assert!(is_near, "column {column}: {found:?}, expected {expected:?}");
    }
}

/// Byte labels come before the weights in the file, `i64` labels come after padding.
#[test]
fn rows_have_several_labels() {
    for (label_dtype, n_rows) in [(DType::U8, 1), (DType::U8, 701), (DType::I64, 3), (DType::F32, 40_000)] {
        let (folder, path) = crate::scratch();
        let n_labels = 3;
        let schema = Schema { label_dtype, n_labels, weights: Weights::Present, ..Schema::named(["x"]) };
        let mut writer = TableWriter::create(&path, schema.clone()).unwrap();
        let mut shards = ShardedWriter::create(folder.path().join("shards"), schema, ShardSize::Rows(7_000)).unwrap();
        let features: Vec<f32> = (0..n_rows).map(|row| row as f32).collect();
        let labels: Vec<u8> = (0..n_rows * n_labels).map(|i| i as u8).collect();
        let weights = vec![0.5; n_rows];
        match label_dtype {
            DType::U8 => {
                writer.push_weighted(&features, &labels, &weights).unwrap();
                shards.push_weighted(&features, &labels, &weights).unwrap();
            }
            DType::I64 => {
                let labels: Vec<i64> = labels.iter().map(|&label| label.into()).collect();
                writer.push_weighted(&features, &labels, &weights).unwrap();
                shards.push_weighted(&features, &labels, &weights).unwrap();
            }
            _ => {
                let labels: Vec<f32> = labels.iter().map(|&label| label.into()).collect();
                writer.push_weighted(&features, &labels, &weights).unwrap();
                shards.push_weighted(&features, &labels, &weights).unwrap();
            }
        }
        assert_eq!((writer.finish().unwrap(), shards.finish().unwrap()), (n_rows, n_rows));

        let ahead = ReadAhead::new(1 << 20);
        let table = Table::open(&path).unwrap();
        let streamed = StreamedTable::open(&path, &ahead).unwrap();
        let sharded = ShardedTable::open_streamed(folder.path().join("shards"), &ahead).unwrap();
        table.verify().unwrap();
        let expected: Vec<f32> = labels.iter().map(|&label| label.into()).collect();
        check_labels(&table, n_labels, &expected);
        check_labels(&streamed, n_labels, &expected);
        check_labels(&sharded, n_labels, &expected);
    }
}

#[track_caller]
fn check_labels<S: RowSource<Feature = f32, Error = Error>>(source: &S, n_labels: usize, expected: &[f32]) {
    row_source_conformance(source);
    assert_eq!(source.n_labels(), n_labels, "labels of a row");
    assert!(brisk_loader::labels_of(source).unwrap() == expected, "labels differ");
    let last = source.n_rows() - 1;
    let mut labels = vec![0.0; 2 * n_labels];
    source
        .gather(RowSelection::of(&[last as u32, 0]), RowBuffers { labels: Some(&mut labels), ..RowBuffers::default() })
        .unwrap();
    assert_eq!(labels, [&expected[last * n_labels..], &expected[..n_labels]].concat(), "the last and the first row");
}

#[test]
fn labels_are_those_of_whole_rows() {
    let (_folder, path) = crate::scratch();
    let mut writer = TableWriter::create(&path, Schema { n_labels: 2, ..Schema::named(["x"]) }).unwrap();
    let error = writer.push(&[1.0_f32], &[0.0_f32, 1.0, 0.0]).unwrap_err();
    assert_eq!(error.to_string(), "push: `labels` holds 3 values, expected 2");
    let error = TableWriter::create(&path, Schema { n_labels: 0, ..Schema::named(["x"]) }).unwrap_err();
    assert!(error.to_string().contains("a row has 0 labels, expected at least 1"), "{error}");
}
