//! Tables of several files.

use std::fs;
use std::path::{Path, PathBuf};

use brisk_table::{
    DType, Destination, Dictionary, Error, ReadAhead, RowBatch, Schema, ShardMismatch, ShardSize, ShardedTable, ShardedWriter,
    StreamedTable, Table, TableWriter, Verified, Weights, copy_table,
};
use serde_json::Value;

const INDEX: &str = "table.safetensors.index.json";

/// The rows of [`write_ramp`](crate::table::write_ramp), times `scale`, in shards.
pub(crate) fn write_ramp(folder: &Path, n_rows: usize, size: ShardSize, scale: f32) {
    let mut writer = ShardedWriter::create(folder, Schema::named(["whole", "half"]), size).unwrap();
    let rows: Vec<f32> = (0..n_rows).flat_map(|i| [i as f32 * scale, i as f32 * scale / 2.0]).collect();
    let labels: Vec<f32> = (0..n_rows).map(|i| (i % 2) as f32).collect();
    // In batches that do not end at shard boundaries.
    for (rows, labels) in rows.chunks(2 * 77).zip(labels.chunks(77)) {
        writer.push(rows, labels).unwrap();
    }
    assert_eq!(writer.n_rows(), n_rows);
    assert_eq!(writer.finish().unwrap(), n_rows);
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn shard_paths(folder: &Path) -> Vec<PathBuf> {
    names(folder).into_iter().filter(|name| name.starts_with("table-")).map(|name| folder.join(name)).collect()
}

fn scratch() -> (tempfile::TempDir, PathBuf) {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("table");
    (parent, folder)
}

#[test]
fn rows_come_back_from_all_shards() {
    for (n_rows, size, n_shards) in [
        (0, ShardSize::Rows(10), 1),
        (1, ShardSize::Rows(10), 1),
        (1000, ShardSize::Rows(1000), 1),
        (1001, ShardSize::Rows(1000), 2),
        (1000, ShardSize::Rows(77), 13),
        // Twelve bytes per row.
        (1000, ShardSize::Bytes(1200), 10),
        (20, ShardSize::Bytes(1), 20),
    ] {
        let (_parent, folder) = scratch();
        write_ramp(&folder, n_rows, size, 1.0);
        // SAFETY: only this test uses the folder.
        #[expect(unsafe_code, reason = "maps read what copies read")]
        let mapped = unsafe { ShardedTable::open_mapped(&folder) }.unwrap();
        for table in [ShardedTable::open(&folder).unwrap(), ShardedTable::open(folder.join(INDEX)).unwrap(), mapped] {
            assert_eq!((table.n_rows(), table.n_shards(), table.n_cols()), (n_rows, n_shards, 2), "{size:?}");
            assert_eq!(table.column_names(), ["whole", "half"]);
            assert_eq!(table.shard_rows(n_shards), None);
            for shard in 0..n_shards {
                let rows = table.shard_rows(shard).unwrap();
                let values = table.rows::<f32>(rows.clone()).unwrap();
                assert!(rows.clone().zip(values.chunks(2)).all(|(i, row)| row == [i as f32, i as f32 / 2.0]), "rows differ");
                assert_eq!(values, table.shard(shard).unwrap().rows::<f32>(0..rows.len()).unwrap());
            }
            let mut last = Verified { n_bytes: 0, of_bytes: 0 };
            table.verify_with_progress(|now| last = now).unwrap();
            assert!(last.n_bytes == last.of_bytes && last.n_bytes > 0, "{last:?}");
        }
    }
}

#[test]
fn statistics_are_those_of_all_rows() {
    let (_parent, folder) = scratch();
    write_ramp(&folder, 1000, ShardSize::Rows(77), 3.0);
    let (_folder, path) = crate::scratch();
    let mut writer = brisk_table::TableWriter::create(&path, Schema::shaped(&[1])).unwrap();
    writer.push(&(0..1000).map(|i| 3.0 * i as f32).collect::<Vec<_>>(), &[0.0_f32; 1000]).unwrap();
    writer.finish().unwrap();
    let (whole, shards) = (Table::open(path).unwrap(), ShardedTable::open(folder).unwrap());
    let (expected, found) = (whole.statistics().unwrap()[0], shards.statistics().unwrap()[0]);
    assert_eq!((found.count, found.min, found.max), (expected.count, expected.min, expected.max));
    assert!((found.mean - expected.mean).abs() < 1e-9 && (found.std - expected.std).abs() < 1e-9, "{found:?} {expected:?}");
}

#[test]
fn all_parts_of_rows_are_sharded() {
    let (_parent, folder) = scratch();
    let schema = Schema {
        dtype: DType::U8,
        label_dtype: DType::I64,
        weights: Weights::Present,
        categories: vec!["kind".into()],
        ..Schema::shaped(&[3])
    };
    let mut writer = ShardedWriter::create(&folder, schema, ShardSize::Rows(4)).unwrap();
    writer.set_dictionaries(vec![Dictionary::new("kind", ["a", "b"]).unwrap()]).unwrap();
    for i in 0..10_u8 {
        let categories = [u32::from(i % 3)];
        let (features, labels, weights) = (&[i; 3], &[i64::from(i)], &[f32::from(i)]);
        writer.push_batch(RowBatch { features, categories: &categories, labels, weights }).unwrap();
    }
    let late = writer.set_dictionaries(vec![Dictionary::new("kind", ["a", "b", "c"]).unwrap()]).unwrap_err();
    assert!(late.to_string().contains("once a shard is full"), "{late}");
    // Setting the same dictionaries again is allowed.
    writer.set_dictionaries(vec![Dictionary::new("kind", ["a", "b"]).unwrap()]).unwrap();
    writer.finish().unwrap();
    let table = ShardedTable::open(&folder).unwrap();
    assert_eq!((table.n_shards(), table.n_categories(), table.dictionaries()[0].value(2)), (3, 1, Some("b")));
    let last = table.shard(2).unwrap();
    assert_eq!(last.labels::<i64>().unwrap(), [8, 9]);
    assert_eq!((last.categories(0..2).unwrap(), last.weights().unwrap()), (&[2, 0][..], &[8.0, 9.0][..]));
}

#[test]
fn every_shard_has_the_classes() {
    let (_parent, folder) = scratch();
    let schema = Schema { label_dtype: DType::U32, ..Schema::shaped(&[1]) };
    let mut writer = ShardedWriter::create(&folder, schema, ShardSize::Rows(2)).unwrap();
    let twice = writer.set_classes(["b", "b"]).unwrap_err();
    assert!(twice.to_string().contains("class \"b\" is named twice"), "{twice}");
    writer.set_classes(["b", "s"]).unwrap();
    writer.push(&[0.0_f32; 5], &[0_u32, 1, 0, 1, 1]).unwrap();
    let late = writer.set_classes(["s", "b"]).unwrap_err();
    assert!(late.to_string().contains("classes may not change once a shard is full"), "{late}");
    writer.set_classes(["b", "s"]).unwrap();
    writer.finish().unwrap();
    let table = ShardedTable::open(&folder).unwrap();
    assert_eq!((table.n_shards(), table.classes()), (3, &["b".to_owned(), "s".to_owned()][..]));
    assert!((0..3).all(|shard| table.shard(shard).unwrap().classes() == ["b", "s"]), "a shard has other classes");
}

/// A writer never creates such shards, but they can result from merging two tables by hand.
#[test]
fn shards_of_other_classes_or_dictionaries_are_errors() {
    #[track_caller]
    fn check(class: &str, value: &str, part: &str) {
        let (_parent, folder) = scratch();
        let schema = Schema { label_dtype: DType::U32, categories: vec!["kind".into()], ..Schema::shaped(&[1]) };
        let write = |folder: &Path, class: &str, value: &str| {
            let mut writer = ShardedWriter::create(folder, schema.clone(), ShardSize::Rows(1)).unwrap();
            writer.set_classes([class]).unwrap();
            writer.set_dictionaries(vec![Dictionary::new("kind", [value]).unwrap()]).unwrap();
            for _ in 0..2 {
                writer.push_batch(RowBatch { features: &[0.0_f32], categories: &[1], labels: &[0_u32], weights: &[] }).unwrap();
            }
            writer.finish().unwrap();
        };
        write(&folder, "signal", "west");
        let other = folder.with_file_name("other");
        write(&other, class, value);
        fs::copy(&shard_paths(&other)[1], &shard_paths(&folder)[1]).unwrap();
        let [mut index, others] =
            [&folder, &other].map(|folder| -> Value { serde_json::from_slice(&fs::read(folder.join(INDEX)).unwrap()).unwrap() });
        for field in ["bytes", "header_crc32"] {
            index["shards"][1][field] = others["shards"][1][field].clone();
        }
        fs::write(folder.join(INDEX), index.to_string()).unwrap();
        let error = ShardedTable::open(&folder).unwrap_err();
        let Error::Shard { reason: ShardMismatch::Schema { part: found, .. }, .. } = &error else { panic!("{error}") };
        assert_eq!(*found, part, "{error}");
    }
    check("noise", "west", "list of classes");
    check("signal", "east", "list of dictionaries");
}

#[test]
fn wrong_asks_are_errors_that_say_what_to_do() {
    #[track_caller]
    fn check(error: Error, says: &str) {
        assert!(error.to_string().contains(says), "{error}");
    }
    let (parent, folder) = scratch();
    write_ramp(&folder, 10, ShardSize::Rows(4), 1.0);
    let table = ShardedTable::open(&folder).unwrap();
    check(table.rows::<f32>(3..5).unwrap_err(), "rows 3..5 lie in several shards, the first of them ends before row 4");
    check(table.rows::<f32>(3..11).unwrap_err(), "rows 3..11 were requested, the table has 10");
    check(table.rows::<u8>(0..1).unwrap_err(), "`features` is F32, not U8");
    check(ShardedTable::open(parent.path()).unwrap_err(), "cannot open");
    check(ShardedTable::open(folder.join("none.json")).unwrap_err(), "cannot open");
    let schema = Schema::shaped(&[1]);
    check(ShardedWriter::create(&folder, schema.clone(), ShardSize::Rows(0)).unwrap_err(), "expected at least one");
    check(
        ShardedWriter::create(folder.join(INDEX), schema.clone(), ShardSize::Rows(1)).unwrap_err(),
        "writing failed after 0 bytes",
    );
    check(ShardedWriter::create("/no/such/folder", schema, ShardSize::Rows(1)).unwrap_err(), "writing failed after 0 bytes");
    assert_eq!(names(&folder).len(), 4, "something was left behind");
}

/// Changes a folder with `spoil`, and checks which mismatch is found in it.
#[track_caller]
fn check_mismatch(spoil: impl FnOnce(&[PathBuf]), expected: fn(&ShardMismatch) -> bool) {
    let (_parent, folder) = scratch();
    write_ramp(&folder, 300, ShardSize::Rows(100), 1.0);
    spoil(&shard_paths(&folder));
    let error = ShardedTable::open(&folder).expect_err("the shards were spoilt");
    let Error::Shard { reason, .. } = &error else { panic!("{error}") };
    assert!(expected(reason), "{error}");
}

#[test]
fn a_shard_that_is_not_the_one_meant_is_an_error() {
    check_mismatch(|shards| fs::remove_file(&shards[1]).unwrap(), |reason| *reason == ShardMismatch::Missing);
    check_mismatch(
        |shards| fs::OpenOptions::new().write(true).open(&shards[2]).unwrap().set_len(5000).unwrap(),
        |reason| matches!(reason, ShardMismatch::Bytes { found: 5000, .. }),
    );
    // Same length, same number of rows: only the headers differ.
    check_mismatch(
        |shards| _ = fs::copy(&shards[0], &shards[1]).unwrap(),
        |reason| matches!(reason, ShardMismatch::Header { .. }),
    );
    check_mismatch(
        |shards| {
            // The file is correct, but the index says otherwise.
            let index = shards[0].with_file_name(INDEX);
            let text = fs::read_to_string(&index).unwrap().replacen("\"rows\": 100", "\"rows\": 101", 1);
            fs::write(&index, text.replace("\"total_rows\": 300", "\"total_rows\": 301")).unwrap();
        },
        |reason| *reason == ShardMismatch::Rows { expected: 101, found: 100 },
    );
}

#[test]
fn shards_of_two_schemas_are_an_error() {
    let (_parent, folder) = scratch();
    write_ramp(&folder, 200, ShardSize::Rows(100), 1.0);
    let (_other_parent, other) = scratch();
    let mut writer = ShardedWriter::create(&other, Schema::named(["whole", "third"]), ShardSize::Rows(100)).unwrap();
    writer.push(&[0.0_f32; 200], &[0.0_f32; 100]).unwrap();
    writer.finish().unwrap();
    // An index with one shard of each table; each entry is correct.
    let entry = |folder: &Path| {
        let index: serde_json::Value = serde_json::from_slice(&fs::read(folder.join(INDEX)).unwrap()).unwrap();
        index["shards"][0].clone()
    };
    fs::copy(&shard_paths(&other)[0], folder.join(shard_paths(&other)[0].file_name().unwrap())).unwrap();
    let shards = [entry(&folder), entry(&other)];
    let size: u64 = shards.iter().map(|shard| shard["bytes"].as_u64().unwrap()).sum();
    let metadata = serde_json::json!({ "brisk_shards": "1", "total_rows": 200, "total_size": size });
    fs::write(folder.join(INDEX), serde_json::json!({ "metadata": metadata, "shards": shards }).to_string()).unwrap();
    let message = ShardedTable::open(&folder).unwrap_err().to_string();
    assert!(
        message.contains(r#"its list of column names is ["whole", "third"], that of the first shard ["whole", "half"]"#),
        "{message}"
    );
}

#[test]
fn damage_in_a_shard_is_found_and_placed() {
    let (_parent, folder) = scratch();
    write_ramp(&folder, 300, ShardSize::Rows(100), 1.0);
    let shard = &shard_paths(&folder)[1];
    let mut bytes = fs::read(shard).unwrap();
    bytes[4500] ^= 1;
    fs::write(shard, bytes).unwrap();
    let error = ShardedTable::open(&folder).unwrap().verify().unwrap_err();
    assert!(matches!(&error, Error::Checksum { path, start: 4096, .. } if path == shard), "{error}");
}

#[test]
fn a_new_table_replaces_the_old_and_sweeps() {
    let (_parent, folder) = scratch();
    write_ramp(&folder, 300, ShardSize::Rows(100), 1.0);
    let old = ShardedTable::open(&folder).unwrap();
    // Files that a killed writer leaves, and unrelated files.
    for name in ["table-00000000000000aa-00000.safetensors", ".table-00000000000000aa-00001.safetensors.77-0.tmp", "notes.txt"] {
        fs::write(folder.join(name), "x").unwrap();
    }
    fs::write(folder.join(format!(".{INDEX}.00000000000000aa.tmp")), "").unwrap();
    let living = ShardedWriter::create(&folder, Schema::shaped(&[1]), ShardSize::Rows(1)).unwrap();
    let names_of_living: Vec<_> = names(&folder).into_iter().filter(|name| !name.contains("00000000000000aa")).collect();

    write_ramp(&folder, 250, ShardSize::Rows(100), 2.0);
    let new = ShardedTable::open(&folder).unwrap();
    assert_eq!((old.n_rows(), new.n_rows()), (300, 250));
    assert_eq!(
        (old.rows::<f32>(299..300).unwrap(), new.rows::<f32>(249..250).unwrap()),
        (&[299.0, 149.5][..], &[498.0, 249.0][..])
    );
    let left = names(&folder);
    assert!(left.iter().all(|name| !name.contains("00000000000000aa")), "{left:?} has files of the killed writer");
    let hidden: Vec<_> = names_of_living.iter().filter(|name| name.starts_with('.')).collect();
    assert!(hidden.len() == 2 && hidden.iter().all(|name| left.contains(name)), "{left:?} lacks the running writer's {hidden:?}");

    // The index, three shards, and the unrelated file.
    drop(living);
    assert_eq!(names(&folder).len(), 5, "{:?}", names(&folder));
}

/// A first write that is killed again and again must not fill the disk, although there is no index yet.
#[test]
fn a_writer_that_starts_removes_what_killed_ones_left() {
    let (_parent, folder) = scratch();
    fs::create_dir(&folder).unwrap();
    let left = ["table-00000000000000aa-00000.safetensors", ".table-00000000000000aa-00001.safetensors.00000000000000ff.tmp"];
    for name in left {
        fs::write(folder.join(name), "x").unwrap();
    }
    fs::write(folder.join(format!(".{INDEX}.00000000000000aa.tmp")), "").unwrap();
    // Its index may have been lost, so it is not known to be a leftover.
    fs::write(folder.join("table-00000000000000bb-00000.safetensors"), "x").unwrap();
    let writer = ShardedWriter::create(&folder, Schema::shaped(&[1]), ShardSize::Rows(1)).unwrap();
    assert!(names(&folder).iter().all(|name| !name.contains("00000000000000aa")), "{:?} were left", names(&folder));
    drop(writer);
    assert_eq!(names(&folder), ["table-00000000000000bb-00000.safetensors"]);
}

#[test]
fn of_two_writers_in_a_folder_the_last_wins() {
    let (_parent, folder) = scratch();
    let writer = |scale: f32| {
        let mut writer = ShardedWriter::create(&folder, Schema::shaped(&[1]), ShardSize::Rows(2)).unwrap();
        writer.push(&[scale; 5], &[0.0_f32; 5]).unwrap();
        writer
    };
    let (mut first, second) = (writer(1.0), writer(2.0));
    second.finish().unwrap();
    first.push(&[1.0_f32; 3], &[0.0_f32; 3]).unwrap();
    first.finish().unwrap();
    let table = ShardedTable::open(&folder).unwrap();
    table.verify().unwrap();
    assert_eq!((table.n_rows(), table.n_shards()), (8, 4));
    assert!(
        (0..4).all(|shard| table.shard(shard).unwrap().rows::<f32>(0..2).unwrap() == [1.0; 2]),
        "shards of two writers are mixed"
    );
    assert_eq!(names(&folder).len(), 5, "{:?}", names(&folder));
}

#[test]
fn a_dropped_writer_leaves_nothing() {
    let (parent, folder) = scratch();
    for _ in 0..2 {
        let mut writer = ShardedWriter::create(&folder, Schema::shaped(&[1]), ShardSize::Rows(2)).unwrap();
        writer.push(&[1.0_f32; 5], &[0.0_f32; 5]).unwrap();
        assert_eq!(shard_paths(&folder).len(), 2);
        drop(writer);
        assert!(!folder.exists(), "the folder was made for the table and stayed");
    }
    write_ramp(&folder, 10, ShardSize::Rows(4), 1.0);
    let before = names(&folder);
    let mut writer = ShardedWriter::create(&folder, Schema::shaped(&[1]), ShardSize::Rows(2)).unwrap();
    writer.push(&[1.0_f32; 5], &[0.0_f32; 5]).unwrap();
    drop(writer);
    assert_eq!(names(&folder), before);
    drop(parent);
}

#[test]
fn a_table_is_copied_into_shards_with_all_that_it_records() {
    let parent = tempfile::tempdir().unwrap();
    let [path, folder, one] = ["t.safetensors", "shards", "one"].map(|name| parent.path().join(name));
    let schema = Schema {
        categories: vec!["colour".into()],
        label_dtype: DType::U32,
        weights: Weights::Present,
        label_names: vec!["kind".into()],
        ..Schema::named(["x", "y"])
    };
    let mut writer = TableWriter::create(&path, schema).unwrap();
    const N_ROWS: usize = 1000;
    writer
        .push_batch(RowBatch {
            features: &(0..2 * N_ROWS).map(|i| i as f32 / 3.0).collect::<Vec<_>>(),
            categories: &(0..N_ROWS).map(|i| i as u32 % 3).collect::<Vec<_>>(),
            labels: &(0..N_ROWS).map(|i| i as u32 % 2).collect::<Vec<_>>(),
            weights: &(0..N_ROWS).map(|i| i as f32).collect::<Vec<_>>(),
        })
        .unwrap();
    writer.set_dictionaries(vec![Dictionary::new("colour", ["red", "green"]).unwrap()]).unwrap();
    writer.set_classes(["cat", "dog"]).unwrap();
    writer.finish().unwrap();

    let table = Table::open(&path).unwrap();
    let streamed = StreamedTable::open(&path, &ReadAhead::new(0)).unwrap();
    let copied = copy_table(&streamed, Destination::path(&folder).in_shards(ShardSize::Rows(300)), |_| ()).unwrap();
    assert_eq!(copied.n_rows, N_ROWS);
    let shards = ShardedTable::open(&folder).unwrap();
    shards.verify().unwrap();
    assert_eq!((shards.n_rows(), shards.n_shards(), shards.n_categories()), (N_ROWS, 4, 1));
    assert_eq!((shards.column_names(), shards.label_names()), (table.column_names(), table.label_names()));
    assert_eq!((shards.dictionaries(), shards.classes()), (table.dictionaries(), table.classes()));
    assert_eq!(shards.rows::<f32>(300..600).unwrap(), table.rows::<f32>(300..600).unwrap());
    for (found, expected) in shards.statistics().unwrap().iter().zip(table.statistics().unwrap()) {
        assert!(found.count == expected.count && (found.mean - expected.mean).abs() < 1e-9, "{found:?} is not {expected:?}");
    }

    // Back to one file: the same rows and header.
    copy_table(&shards, Destination::path(&one), |_| ()).unwrap();
    let again = Table::open(&one).unwrap();
    assert_eq!(again.statistics(), table.statistics());
    assert_eq!(
        (again.rows::<f32>(0..N_ROWS).unwrap(), again.labels::<u32>().unwrap()),
        (table.rows(0..N_ROWS).unwrap(), table.labels().unwrap())
    );
    assert_eq!((again.weights(), again.categories(0..N_ROWS).unwrap()), (table.weights(), table.categories(0..N_ROWS).unwrap()));
}
