//! Categorical columns: codes in the table, their values in its header.

use std::fs;
use std::path::Path;
use std::process::Command;

use brisk_table::{DType, Dictionary, Error, RowBatch, Schema, Table, TableWriter, Weights};

fn schema() -> Schema {
    Schema { categories: vec!["colour".into(), "town".into()], ..Schema::named(["x"]) }
}

fn dictionaries(n_towns: usize) -> Vec<Dictionary> {
    let towns = (0..n_towns).map(|i| format!("town \"{i}\""));
    vec![Dictionary::new("colour", ["red", "grün"]).unwrap(), Dictionary::new("town", towns).unwrap()]
}

/// Row `i` has x = i, colour i modulo 3 and town i modulo `n_towns + 1`.
fn write(path: &Path, n_rows: usize, n_towns: usize) {
    let mut writer = TableWriter::create(path, schema()).unwrap();
    let features: Vec<f32> = (0..n_rows).map(|i| i as f32).collect();
    let categories: Vec<u32> = (0..n_rows).flat_map(|i| [i as u32 % 3, (i % (n_towns + 1)) as u32]).collect();
    let labels: Vec<f32> = (0..n_rows).map(|i| (i % 2) as f32).collect();
    // In batches of different sizes, as importers do.
    let cut = n_rows / 3;
    for rows in [0..cut, cut..n_rows] {
        let batch = RowBatch {
            features: &features[rows.clone()],
            categories: &categories[2 * rows.start..2 * rows.end],
            labels: &labels[rows],
            ..RowBatch::default()
        };
        writer.push_batch(batch).unwrap();
    }
    writer.set_dictionaries(dictionaries(n_towns)).unwrap();
    assert_eq!(writer.finish().unwrap(), n_rows);
}

/// With few towns the header fits into the room that was left for it; with many, zero, one or several pieces of data are moved.
#[test]
fn codes_and_values_come_back() {
    for (n_rows, n_towns) in [(0, 1), (3, 1), (1000, 7), (5, 20_000), (100_000, 20_000), (1_200_000, 20_000)] {
        let (folder, path) = crate::scratch();
        write(&path, n_rows, n_towns);
        let table = Table::open(&path).unwrap();
        table.verify().unwrap();
        assert_eq!((table.n_rows(), table.n_cols(), table.n_categories()), (n_rows, 1, 2));
        assert_eq!(table.dictionaries(), dictionaries(n_towns));
        let codes = table.categories(0..n_rows).unwrap();
        assert!((0..n_rows).all(|i| codes[2 * i..2 * i + 2] == [i as u32 % 3, (i % (n_towns + 1)) as u32]), "codes differ");
        let rows = table.rows::<f32>(0..n_rows).unwrap();
        assert!((0..n_rows).all(|i| rows[i] == i as f32), "features differ");
        assert!(table.labels::<f32>().unwrap().iter().enumerate().all(|(i, &y)| y == (i % 2) as f32), "labels differ");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "something was left beside the table");
        let data_start = 8 + u64::from_le_bytes(fs::read(&path).unwrap()[..8].try_into().unwrap());
        assert_eq!(data_start % 4096, 0);
    }
}

#[test]
fn a_table_may_have_nothing_but_categories() {
    let (_folder, path) = crate::scratch();
    for (label_dtype, n_rows) in [(DType::U8, 3), (DType::F32, 3), (DType::I64, 5)] {
        let only = Schema {
            row_shape: vec![0],
            label_dtype,
            categories: vec!["c".into()],
            weights: Weights::Present,
            ..Schema::shaped(&[])
        };
        let mut writer = TableWriter::create(&path, only).unwrap();
        for i in 0..n_rows {
            let (code, weight, features): ([u32; 1], [f32; 1], &[f32]) = ([i as u32], [0.5], &[]);
            match label_dtype {
                DType::U8 => writer.push_batch(RowBatch { features, categories: &code, labels: &[i as u8], weights: &weight }),
                DType::F32 => writer.push_batch(RowBatch { features, categories: &code, labels: &[i as f32], weights: &weight }),
                _ => writer.push_batch(RowBatch { features, categories: &code, labels: &[i as i64], weights: &weight }),
            }
            .unwrap();
        }
        writer.set_dictionaries(vec![Dictionary::new("c", ["1", "2", "3", "4"]).unwrap()]).unwrap();
        writer.finish().unwrap();
        let table = Table::open(&path).unwrap();
        table.verify().unwrap();
        assert_eq!((table.n_rows(), table.n_cols(), table.row_shape()), (n_rows, 0, &[0][..]));
        assert_eq!(table.categories(1..3).unwrap(), [1, 2]);
        assert!(table.rows::<f32>(0..2).unwrap().is_empty());
        assert_eq!(table.weights().unwrap(), vec![0.5; n_rows]);
    }
}

#[test]
fn codes_and_dictionaries_must_fit() {
    let (folder, path) = crate::scratch();
    let check = |error: Error, says: &str| assert!(error.to_string().contains(says), "{error}");
    let rows = RowBatch { features: &[1.0_f32], categories: &[1, 3], labels: &[1.0_f32], ..RowBatch::default() };

    let mut writer = TableWriter::create(&path, schema()).unwrap();
    check(writer.push(&[1.0_f32], &[1.0_f32]).unwrap_err(), "rows have categories, push them with `push_batch`");
    check(writer.push_batch(RowBatch { categories: &[1], ..rows }).unwrap_err(), "`categories` holds 1 values, expected 2");
    check(writer.push_batch(RowBatch { weights: &[1.0], ..rows }).unwrap_err(), "rows have no weights");
    check(writer.set_dictionaries(dictionaries(1)[..1].to_vec()).unwrap_err(), "give each its own");
    writer.push_batch(rows).unwrap();
    writer.set_dictionaries(dictionaries(2)).unwrap();
    check(writer.finish().unwrap_err(), "column `town` has code 3, its dictionary has 2 values");

    let mut writer = TableWriter::create(&path, schema()).unwrap();
    writer.push_batch(rows).unwrap();
    check(writer.finish().unwrap_err(), "call `set_dictionaries`");

    let mut writer = TableWriter::create(&path, schema()).unwrap();
    let long = (0..110).map(|i| i.to_string() + &" ".repeat(1_000_000));
    let dictionaries = vec![Dictionary::new("colour", ["red"]).unwrap(), Dictionary::new("town", long).unwrap()];
    check(writer.set_dictionaries(dictionaries).unwrap_err(), "`town` has the most distinct values, 110: drop it, or read it");
    drop(writer);

    check(
        TableWriter::create(&path, Schema { categories: vec!["x".into()], ..schema() }).unwrap_err(),
        "two columns are named `x`",
    );
    check(TableWriter::create(&path, Schema::named(["a", "b", "a"])).unwrap_err(), "two columns are named `a`");
    check(Dictionary::new("c", ["a", "b", "a"]).unwrap_err(), "the dictionary of `c` has \"a\" twice");
    write(&path, 3, 1);
    check(Table::open(&path).unwrap().categories(2..4).unwrap_err(), "rows 2..4 were requested, the table has 3");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "a failed writer left something");
}

const PYTHON: &str = "
import json, sys, numpy, safetensors
from safetensors.numpy import load_file
t = load_file(sys.argv[1])
c = t['categories']
assert c.dtype == numpy.uint32 and c.shape == (1000, 2), c.shape
i = numpy.arange(1000)
assert (c[:, 0] == i % 3).all() and (c[:, 1] == i % 8).all()
with safetensors.safe_open(sys.argv[1], 'np') as f:
    colour, town = json.loads(f.metadata()['dictionaries'])
assert colour == {'name': 'colour', 'values': ['red', 'grün']}, colour
assert town['values'][6] == 'town \"6\"', town
print('ok')
";

#[test]
fn python_reads_codes_and_dictionaries() {
    let Some(python) = crate::interop::python("python_reads_codes_and_dictionaries") else { return };
    let (_folder, path) = crate::scratch();
    write(&path, 1000, 7);
    let output = Command::new(&python).args(["-c", PYTHON]).arg(&path).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && output.stdout.starts_with(b"ok"), "{errors}");
}
