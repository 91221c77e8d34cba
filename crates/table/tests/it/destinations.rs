//! Imports into shards: the same table as in one file.

use std::fs;
use std::path::Path;

use brisk_table::{
    Categorical, ColumnOptions, CsvOptions, Destination, FeatureDType, Importer, Indicators, LabelKind, Missing, Progress,
    ShardSize, ShardedTable, Table, import, import_with_progress,
};

/// Rows with numbers, text and classes, of which some are missing and some appear only near the end.
fn rows(n_rows: usize) -> String {
    let mut text = "kind,x,colour,n,w\n".to_owned();
    for i in 0..n_rows {
        let kind = ["dog", "cat", "bird"][(i * i / 7) % if i < n_rows - 9 { 2 } else { 3 }];
        let x = if i % 5 == 2 { String::new() } else { format!("{}", i as f32 / 7.0 - 100.0) };
        let colour = if i % 11 == 3 { String::new() } else { format!("c{}", i * i % (1 + i / 400)) };
        text += &format!("{kind},{x},{colour},{},{}\n", i % 97, 1 + i % 3);
    }
    text
}

fn columns() -> ColumnOptions {
    ColumnOptions {
        labels: vec!["kind".into()],
        label_kind: LabelKind::Classes,
        weight: Some("w".into()),
        categorical: Categorical::Auto,
        missing: Missing::Mean,
        indicators: Indicators::All,
        ..ColumnOptions::default()
    }
}

/// Imports into a file and into shards, and compares the tables and the reports. Returns the progress of the second import.
#[track_caller]
fn check(source: &Path, importer: &impl Importer, shard_rows: usize) -> Vec<Progress> {
    let folder = tempfile::tempdir().unwrap();
    let [file, shards] = ["t.safetensors", "shards"].map(|name| folder.path().join(name));
    let expected = import(source, &file, importer).unwrap();
    let mut seen = Vec::new();
    let dest = Destination::path(&shards).in_shards(ShardSize::Rows(shard_rows));
    let found = import_with_progress(source, &dest, importer, |progress| seen.push(progress)).unwrap();
    assert_eq!(format!("{:?}", (&found, &found.statistics)), format!("{:?}", (&expected, &expected.statistics)));
    assert_eq!(found.row_shape, expected.row_shape);
    assert_eq!(expected.n_bytes, fs::metadata(&file).unwrap().len());

    let (one, table) = (Table::open(&file).unwrap(), ShardedTable::open(&shards).unwrap());
    table.verify().unwrap();
    assert_eq!((table.n_rows(), table.n_shards()), (one.n_rows(), one.n_rows().div_ceil(shard_rows)));
    assert_eq!((table.column_names(), table.label_names()), (one.column_names(), one.label_names()));
    assert_eq!((table.dictionaries(), table.classes()), (one.dictionaries(), one.classes()));
    assert_eq!((table.imputed(), table.source()), (one.imputed(), one.source()));
    let mut start = 0;
    for shard in (0..table.n_shards()).map(|shard| table.shard(shard).unwrap()) {
        let rows = start..start + shard.n_rows();
        macro_rules! same_rows {
            ($($type:ty),*) => {
                $(if let Ok(expected) = one.rows::<$type>(rows.clone()) {
                    assert_eq!(shard.rows::<$type>(0..shard.n_rows()).unwrap(), expected);
                })*
            };
        }
        same_rows!(f32, u8, half::f16);
        macro_rules! same_labels {
            ($($type:ty),*) => {
                $(if let Ok(expected) = one.labels::<$type>() {
                    assert_eq!(shard.labels::<$type>().unwrap(), &expected[rows.clone()]);
                })*
            };
        }
        same_labels!(f32, u8, u32, i64);
        if one.n_categories() > 0 {
            assert_eq!(shard.categories(0..shard.n_rows()).unwrap(), one.categories(rows.clone()).unwrap());
        }
        assert_eq!(shard.weights(), one.weights().map(|weights| &weights[rows.clone()]));
        start = rows.end;
    }
    for (found, expected) in table.statistics().unwrap().iter().zip(one.statistics().unwrap()) {
        let is_near = |found: f64, expected: f64| (found - expected).abs() <= 1e-5 * (1.0 + expected.abs());
        assert!(found.count == expected.count && is_near(found.mean, expected.mean) && is_near(found.std, expected.std));
        assert_eq!((found.min, found.max), (expected.min, expected.max));
    }
    let n_bytes: u64 = fs::read_dir(&shards).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
    let index = fs::metadata(shards.join("table.safetensors.index.json")).unwrap().len();
    assert_eq!(found.n_bytes, n_bytes - index);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing else is left");
    seen
}

#[test]
fn shards_have_the_classes_categories_and_means_of_all_rows() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("rows.csv");
    fs::write(&source, rows(4_000)).unwrap();
    for (dtype, shard_rows) in [(FeatureDType::F32, 700), (FeatureDType::F16, 1_333), (FeatureDType::F32, 10_000)] {
        let options = CsvOptions { columns: ColumnOptions { dtype, ..columns() }, n_threads: 2, ..CsvOptions::default() };
        let seen = check(&source, &options, shard_rows);
        let (first, last) = (seen[0], seen[seen.len() - 1]);
        let twice = 2 * fs::metadata(&source).unwrap().len();
        assert_eq!((first.total_bytes, last.bytes_read, last.total_bytes), (twice, twice, twice), "the source is read twice");
    }
}

#[test]
fn what_is_known_before_the_rows_is_read_once() {
    let folder = tempfile::tempdir().unwrap();
    let [source, like] = ["rows.csv", "like.safetensors"].map(|name| folder.path().join(name));
    fs::write(&source, rows(2_000)).unwrap();
    let numbers = ColumnOptions {
        labels: vec!["n".into()],
        drop: vec!["kind".into(), "colour".into(), "w".into()],
        missing: Missing::Value(0.5),
        ..ColumnOptions::default()
    };
    import(&source, &like, &CsvOptions { columns: columns(), ..CsvOptions::default() }).unwrap();
    // The table to match has classes, categories and means.
    let matched = ColumnOptions { like: Some(like), ..ColumnOptions::default() };
    for columns in [numbers, matched] {
        let seen = check(&source, &CsvOptions { columns, ..CsvOptions::default() }, 300);
        assert_eq!(seen[seen.len() - 1].total_bytes, fs::metadata(&source).unwrap().len());
    }
}

#[test]
fn a_source_that_changes_between_two_readings_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let [source, shards] = ["rows.csv", "shards"].map(|name| folder.path().join(name));
    let options = CsvOptions { columns: columns(), ..CsvOptions::default() };
    for changed in [rows(2_000).replace("c0", "new"), rows(2_001)] {
        fs::write(&source, rows(2_000)).unwrap();
        let dest = Destination::path(&shards).in_shards(ShardSize::Rows(300));
        let imported = import_with_progress(&source, &dest, &options, |_| fs::write(&source, &changed).unwrap());
        let error = imported.unwrap_err().to_string();
        assert!(error.contains("rows.csv") && error.contains("read again"), "{error}");
        assert!(!shards.exists(), "nothing is left");
    }
}

/// The last label is only known after the last row.
#[cfg(feature = "npy")]
#[test]
fn shards_of_arrays_have_all_classes() {
    use brisk_table::{ArrayRef, NpyLabels, NpyOptions};

    let folder = tempfile::tempdir().unwrap();
    let [x, y] = ["x.npy", "y.npy"].map(|name| folder.path().join(name));
    let features: Vec<u8> = (0..300_u32).flat_map(|i| (i as f32 / 3.0).to_le_bytes()).collect();
    fs::write(&x, crate::npy::npy("<f4", "False", "(100, 3)", &features)).unwrap();
    let labels: Vec<u8> = (0..100).map(|row| 1 + row / 12).collect();
    fs::write(&y, crate::npy::npy("|u1", "False", "(100,)", &labels)).unwrap();
    let labels = NpyLabels::Array(ArrayRef::File(y));
    check(&x, &NpyOptions { labels: labels.clone(), first_label: 1, ..NpyOptions::default() }, 30);
    check(&x, &NpyOptions { labels: labels.clone(), ..NpyOptions::default() }, 30);
    // Whose first row needs the last bytes.
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, &crate::npy::npy("<f4", "True", "(100, 3)", &features)).unwrap();
    let packed = folder.path().join("x.npy.gz");
    fs::write(&packed, gzip.finish().unwrap()).unwrap();
    check(&packed, &NpyOptions { labels, ..NpyOptions::default() }, 30);
}
