//! IDX files: the real ones of MNIST, every type, and files that are refused.

use std::fs;
use std::path::Path;

use brisk_table::{DType, IdxOptions, Table, import};

use crate::real_files::data;

/// Compares with numpy's values for the files, as `[n, 28, 28]` in float64: the mean and standard deviation of all pixels.
#[test]
fn mnist() {
    let sets = [
        ("train", [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949], 33.318_421_449_829_93, 78.567_489_983_397_98),
        ("t10k", [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009], 33.791_224_489_795_916, 79.172_463_222_286_42),
    ];
    for (set, classes, mean, std) in sets {
        let Some(images) = data(&format!("mnist/{set}-images-idx3-ubyte.gz")) else { return };
        data(&format!("mnist/{set}-labels-idx1-ubyte.gz"));
        let (_folder, dest) = crate::scratch();
        let report = import(images, &dest, &IdxOptions::default()).unwrap();
        let table = Table::open(&dest).unwrap();
        table.verify().unwrap();
        assert_eq!((table.dtype(), table.row_shape()), (DType::U8, [28, 28, 1].as_slice()));
        let mut found = [0; 10];
        table.labels::<u8>().unwrap().iter().for_each(|&label| found[usize::from(label)] += 1);
        assert_eq!((report.n_rows, found), (classes.iter().sum(), classes));
        let [statistics] = table.statistics().unwrap() else { panic!("an image of one channel has one statistic") };
        assert!((statistics.mean - mean).abs() < 1e-9 && (statistics.std - std).abs() < 1e-9, "{statistics:?}");
        assert_eq!((statistics.count, statistics.min, statistics.max), (784 * report.n_rows as u64, 0.0, 255.0));
    }
}

#[track_caller]
fn check(code: u8, n_bytes: usize, values: &[u8], expected: [f32; 2]) {
    let (folder, dest) = crate::scratch();
    let source = folder.path().join("x");
    let labels = folder.path().join("y");
    assert_eq!(values.len(), 2 * n_bytes);
    fs::write(&source, [&[0, 0, code, 1, 0, 0, 0, 2], values].concat()).unwrap();
    fs::write(&labels, [0, 0, 0x0c, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff]).unwrap();
    import(&source, &dest, &IdxOptions { labels: Some(labels), ..IdxOptions::default() }).unwrap();
    let table = Table::open(&dest).unwrap();
    assert_eq!((table.row_shape(), table.labels::<i64>().unwrap()), ([1].as_slice(), [1, -1].as_slice()));
    match code {
        0x08 => assert_eq!(table.rows::<u8>(0..2).unwrap().iter().map(|&x| f32::from(x)).collect::<Vec<_>>(), expected),
        _ => assert_eq!(table.rows::<f32>(0..2).unwrap(), expected),
    }
}

#[test]
fn every_type() {
    check(0x08, 1, &[0, 255], [0.0, 255.0]);
    check(0x09, 1, &[127, 255], [127.0, -1.0]);
    check(0x0b, 2, &[1, 0, 0xff, 0xff], [256.0, -1.0]);
    check(0x0c, 4, &[0, 1, 0, 0, 0xff, 0xff, 0xff, 0xff], [65536.0, -1.0]);
    check(0x0d, 4, &[0.1_f32, -2.5].map(f32::to_be_bytes).concat(), [0.1, -2.5]);
    check(0x0e, 8, &[0.1_f64, -2.5].map(f64::to_be_bytes).concat(), [0.1, -2.5]);
}

const REFUSALS: [(&str, &str); 9] = [
    ("bytes_appended.idx", "more bytes after its 2 rows"),
    ("cut_in_dimensions.idx", "1 of 3 dimensions"),
    ("cut_in_values.idx", "ends after 1 rows of 2"),
    ("empty.idx", "the bytes []"),
    ("no_dimensions.idx", "0 of 0 dimensions"),
    ("not_idx.idx", "an IDX file: 00 00"),
    ("row_of_all_memory.idx", "rows of up to"),
    ("rows_too_many.idx", "has 4294967295 rows"),
    ("type_unknown.idx", "the type 0x0a"),
];

#[test]
fn forged_files_are_refused() {
    let (folder, dest) = crate::scratch();
    let labels = folder.path().join("y");
    fs::write(&labels, [0, 0, 8, 1, 0, 0, 0, 2, 0, 1]).unwrap();
    let options = IdxOptions { labels: Some(labels), ..IdxOptions::default() };
    for (name, reason) in REFUSALS {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/attacks").join(name);
        let message = import(path, &dest, &options).expect_err(name).to_string();
        assert!(message.contains(reason) && message.contains(name), "{name}: `{message}` does not say `{reason}`");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "{name}: something was left behind");
    }
    crate::attacks::check_listed(&["idx"], REFUSALS.iter().map(|(name, _)| *name));
}

#[test]
fn labels_that_are_not_found_are_asked_for() {
    let (folder, dest) = crate::scratch();
    let source = folder.path().join("pictures");
    fs::write(&source, [0, 0, 8, 1, 0, 0, 0, 2, 0, 1]).unwrap();
    let message = import(&source, &dest, &IdxOptions::default()).unwrap_err().to_string();
    assert!(message.contains("`IdxOptions::labels`"), "{message}");
}

/// A missing file is not reported as a file without labels.
#[test]
fn a_missing_file_is_reported_as_missing() {
    let (folder, dest) = crate::scratch();
    let path = folder.path().join("train-images-idx3-ubyte");
    let error = import(&path, &dest, &IdxOptions::default()).expect_err("there is no file").to_string();
    assert!(error.starts_with(&format!("{}: cannot open", path.display())), "{error}");
    assert!(!dest.exists(), "nothing was written");
}
