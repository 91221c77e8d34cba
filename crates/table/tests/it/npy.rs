//! numpy's arrays: of every dtype, order and version, and files that are refused.

use std::fs;
use std::path::Path;

use brisk_table::{ArrayRef, DType, Error, ImportWarning, NotFinite, NpyLabels, NpyOptions, Table, import};

/// A .npy file as numpy writes it.
pub(crate) fn npy(descr: &str, fortran: &str, shape: &str, values: &[u8]) -> Vec<u8> {
    let text = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
    let len = u16::try_from(text.len()).unwrap().to_le_bytes();
    [b"\x93NUMPY\x01\x00", len.as_slice(), text.as_bytes(), values].concat()
}

/// Imports an array of features with the labels 0, 1, 2…
fn table_of(features: &[u8], n_rows: usize, not_finite: NotFinite) -> Result<Table, Error> {
    let (folder, dest) = crate::scratch();
    let [x, y] = ["x.npy", "y.npy"].map(|name| folder.path().join(name));
    fs::write(&x, features).unwrap();
    let labels: Vec<u8> = (0..n_rows).map(|row| row as u8).collect();
    fs::write(&y, npy("|u1", "False", &format!("({n_rows},)"), &labels)).unwrap();
    let options = NpyOptions { labels: NpyLabels::Array(ArrayRef::File(y)), not_finite, ..NpyOptions::default() };
    let report = import(&x, &dest, &options);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), if report.is_ok() { 3 } else { 2 }, "files are left");
    report?;
    let table = Table::open(&dest)?;
    table.verify()?;
    assert_eq!(table.labels::<u8>()?, labels);
    Ok(table)
}

#[track_caller]
fn check<const N: usize>(descr: &str, values: [[u8; N]; 4], expected: [f32; 4]) {
    let little = values.concat();
    let big: Vec<u8> = values.iter().flat_map(|value| value.iter().rev().copied()).collect();
    for (order, bytes) in [("<", little), (">", big)] {
        let table = table_of(&npy(&format!("{order}{descr}"), "False", "(2, 2)", &bytes), 2, NotFinite::Error).unwrap();
        if table.dtype() == DType::U8 {
            assert_eq!(table.rows::<u8>(0..2).unwrap().iter().map(|&x| f32::from(x)).collect::<Vec<_>>(), expected, "{descr}");
        } else {
            assert_eq!(table.rows::<f32>(0..2).unwrap(), expected, "{order}{descr}");
        }
    }
}

#[test]
fn every_dtype_in_both_byte_orders() {
    check("b1", [[0], [1], [1], [2]], [0.0, 1.0, 1.0, 1.0]);
    check("u1", [[0], [1], [127], [255]], [0.0, 1.0, 127.0, 255.0]);
    check("i1", [[0], [1], [127], [255]], [0.0, 1.0, 127.0, -1.0]);
    check("u2", [0, 1, 256, u16::MAX].map(u16::to_le_bytes), [0.0, 1.0, 256.0, 65535.0]);
    check("i2", [0, 1, 256, -256].map(i16::to_le_bytes), [0.0, 1.0, 256.0, -256.0]);
    check("u4", [0, 1, 1 << 31, u32::MAX].map(u32::to_le_bytes), [0.0, 1.0, 2_147_483_648.0, 4_294_967_296.0]);
    check("i4", [0, 1, 16_777_217, -5].map(i32::to_le_bytes), [0.0, 1.0, 16_777_216.0, -5.0]);
    check("u8", [0, 1, 1 << 40, u64::MAX].map(u64::to_le_bytes), [0.0, 1.0, 1_099_511_627_776.0, 18_446_744_073_709_551_615.0]);
    check("i8", [0, 1, 1 << 40, -(1 << 40)].map(i64::to_le_bytes), [0.0, 1.0, 1_099_511_627_776.0, -1_099_511_627_776.0]);
    // 1, -2, the largest, and the smallest above 0.
    check("f2", [0x3c00, 0xc000, 0x7bff, 0x0001_u16].map(u16::to_le_bytes), [1.0, -2.0, 65504.0, 5.960_464_5e-8]);
    check("f4", [0.1, -0.0, f32::MAX, 1e-45].map(f32::to_le_bytes), [0.1, -0.0, f32::MAX, 1e-45]);
    check("f8", [0.1, -0.0, 1e-300, 3.402_823_4e38].map(f64::to_le_bytes), [0.1, -0.0, 0.0, f32::MAX]);
}

/// Element (i, j, k) of an array of shape [n, 2, 3] is 100 i + 10 j + k; in Fortran order the first index changes fastest.
#[test]
fn fortran_order_is_turned() {
    for n_rows in [1_usize, 2, 200] {
        let value = |i: usize, j: usize, k: usize| (100 * i + 10 * j + k) as f32;
        let mut bytes = Vec::new();
        for (k, j) in (0..3).flat_map(|k| (0..2).map(move |j| (k, j))) {
            bytes.extend((0..n_rows).flat_map(|i| value(i, j, k).to_le_bytes()));
        }
        let table = table_of(&npy("<f4", "True", &format!("({n_rows}, 2, 3)"), &bytes), n_rows, NotFinite::Error).unwrap();
        assert_eq!(table.row_shape(), [2, 3]);
        let rows = table.rows::<f32>(0..n_rows).unwrap();
        let at = |at: usize| value(at / 6, at / 3 % 2, at % 3);
        assert!(rows.iter().enumerate().all(|(index, &found)| found == at(index)), "{n_rows} rows: {rows:?}");
    }
}

/// Several strips, and the same array compressed, which has to be decompressed to disk first.
#[test]
fn fortran_order_in_strips_and_packed() {
    let (n_rows, n_cols) = (25_000_usize, 90_usize);
    let value = |row: usize, col: usize| (row * n_cols + col) as f64;
    let columns: Vec<u8> = (0..n_cols).flat_map(|col| (0..n_rows).flat_map(move |row| value(row, col).to_le_bytes())).collect();
    let plain = npy("<f8", "True", &format!("({n_rows}, {n_cols})"), &columns);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, &plain).unwrap();
    for bytes in [plain, gzip.finish().unwrap()] {
        let table = table_of(&bytes, n_rows, NotFinite::Error).unwrap();
        let rows = table.rows::<f32>(0..n_rows).unwrap();
        assert!(rows.iter().enumerate().all(|(at, &found)| found == at as f32), "values are elsewhere");
    }
}

#[test]
fn labels_of_a_column() {
    let (folder, dest) = crate::scratch();
    let source = folder.path().join("x.npy");
    let values = [1.5_f32, 0.0, 2.5, 3.5, 1.0, 4.5].map(f32::to_le_bytes).concat();
    fs::write(&source, npy("<f4", "False", "(2, 3)", &values)).unwrap();
    let by_column = |column| import(&source, &dest, &NpyOptions { labels: NpyLabels::Column(column), ..NpyOptions::default() });
    for (column, labels, rows) in
        [(0, [1.5, 3.5], [0.0, 2.5, 1.0, 4.5]), (1, [0.0, 1.0], [1.5, 2.5, 3.5, 4.5]), (2, [2.5, 4.5], [1.5, 0.0, 3.5, 1.0])]
    {
        by_column(column).unwrap();
        let table = Table::open(&dest).unwrap();
        assert_eq!((table.labels::<f32>().unwrap(), table.rows::<f32>(0..2).unwrap()), (&labels[..], &rows[..]));
    }
    let message = by_column(3).unwrap_err().to_string();
    assert!(message.contains("column 3 was chosen as the label"), "{message}");
}

#[test]
fn values_that_are_no_numbers() {
    let values = [1.0, f64::NAN, f64::INFINITY, 4.0].map(f64::to_le_bytes).concat();
    let file = npy("<f8", "False", "(2, 2)", &values);
    let message = table_of(&file, 2, NotFinite::Error).unwrap_err().to_string();
    assert!(message.contains("row 0, value 1 of `x.npy`: found NaN") && message.contains("NotFinite::Keep"), "{message}");
    let table = table_of(&file, 2, NotFinite::Keep).unwrap();
    let rows = table.rows::<f32>(0..2).unwrap();
    assert!(rows[1].is_nan() && rows[2] == f32::INFINITY, "{rows:?}");

    let values = [1.0, 2.0, 3.0, 1e39].map(f64::to_le_bytes).concat();
    for not_finite in [NotFinite::Error, NotFinite::Keep] {
        let message = table_of(&npy("<f8", "False", "(2, 2)", &values), 2, not_finite).unwrap_err().to_string();
        assert!(message.contains("row 1, value 1 of `x.npy`") && message.contains("the range of f32"), "{message}");
    }
}

const REFUSALS: [(&str, &str); 37] = [
    ("bomb.npz", "X ends after 16384 rows of 1099511627776"),
    ("checksum_wrong.npz", "hecksum"),
    ("cut_in_fortran.npy", "ends after 2 rows of 3"),
    ("cut_in_header.npy", "an end within its text"),
    ("cut_in_member.npz", "the archive"),
    ("cut_in_values.npy", "ends after 2 rows of 3"),
    ("cut_in_values.npz", "ends after 2 rows of 3"),
    ("deep_literal.npy", "a dictionary"),
    ("dtype_complex.npy", "complex numbers"),
    ("dtype_object.npy", "Python objects"),
    ("dtype_text.npy", "text"),
    ("features_not_an_array.npz", "an end within its first 8 bytes"),
    ("header_of_all_memory.npy", "4294967295 bytes of text"),
    ("header_past_end.npy", "an end within its text"),
    ("junk_behind_literal.npy", "a dictionary"),
    ("key_missing.npy", "a dictionary"),
    ("key_twice.npy", "a dictionary"),
    ("key_unknown.npy", "a dictionary"),
    ("labels_one_hot.npz", "argmax"),
    ("labels_too_few.npz", "`X` has 3 rows, `y` has 2"),
    ("many_columns.npy", "ends after 0 rows of 2"),
    ("no_arrays.npz", "found a zip archive without arrays of numpy"),
    ("no_columns.npy", "without a value"),
    ("not_a_literal.npy", "a dictionary"),
    ("not_npy.npy", "other first bytes"),
    ("not_utf8.npy", "a dictionary"),
    ("rows_beyond_count.npy", "a `shape` of whole numbers"),
    ("seven_bytes.npy", "an end within its first 8 bytes"),
    ("shape_negative.npy", "a `shape` of whole numbers"),
    ("shape_no_tuple.npy", "a `shape` of whole numbers"),
    ("shape_of_all_memory.npy", "ends after 0 rows"),
    ("shape_of_all_memory_fortran.npy", "ends after 0 rows"),
    ("shape_overflows.npy", "more values than can be counted"),
    ("shape_overflows_behind_zero.npy", "more values than can be counted"),
    ("structured.npy", "a structured array of the fields [\"a\", \"b\"]"),
    ("values_appended.npy", "more bytes after its 3 rows"),
    ("version_of_tomorrow.npy", "version 4.0"),
];

#[test]
fn forged_arrays_are_refused() {
    let attacks = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/attacks");
    let (folder, dest) = crate::scratch();
    for (name, reason) in REFUSALS {
        let labels = folder.path().join("y.npy");
        fs::write(&labels, npy("|u1", "False", "(3,)", &[0, 1, 2])).unwrap();
        let labels = match name.ends_with(".npy") {
            // Labels that match the claimed number of rows would only hide the problem with the features.
            true if name.starts_with("shape_of") => NpyLabels::Column(0),
            true => NpyLabels::Array(ArrayRef::File(labels)),
            false => NpyLabels::Auto,
        };
        let options = NpyOptions { labels, ..NpyOptions::default() };
        let message = import(attacks.join(name), &dest, &options).expect_err(name).to_string();
        assert!(message.contains(reason), "{name}: `{message}` does not say `{reason}`");
        assert!(message.contains(name), "{name}: `{message}` does not name the file");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "{name}: something was left behind");
    }
    crate::attacks::check_listed(&["npy", "npz"], REFUSALS.iter().map(|(name, _)| *name));
}

/// A damaged byte of a header never makes the import panic.
#[test]
fn any_byte_of_a_header_may_be_wrong() {
    let good = npy("<f4", "True", "(3, 2)", &[0; 24]);
    for at in 0..good.len() - 24 {
        for flip in [1, 0x80] {
            let mut bad = good.clone();
            bad[at] ^= flip;
            if let Ok(table) = table_of(&bad, 3, NotFinite::Error) {
                assert_eq!(table.n_rows(), 3);
            }
        }
    }
}

/// Files written by numpy itself, whose rows also exist in other files.
mod samples {
    use super::*;
    use crate::real_files::data;

    fn table_of(features: &str, options: NpyOptions) -> Option<Result<Table, String>> {
        let source = data(&format!("samples/{features}"))?;
        let (_folder, dest) = crate::scratch();
        let imported = import(&source, &dest, &options).map_err(|error| error.to_string());
        assert_eq!(dest.exists(), imported.is_ok());
        Some(imported.map(|_| Table::open(&dest).unwrap()))
    }

    fn with_labels(labels: &str) -> Option<NpyOptions> {
        let labels = NpyLabels::Array(ArrayRef::File(data(&format!("samples/{labels}"))?));
        Some(NpyOptions { labels, ..NpyOptions::default() })
    }

    /// The first rows, without the labels.
    fn first_column_as_label() -> NpyOptions {
        NpyOptions { labels: NpyLabels::Column(0), ..NpyOptions::default() }
    }

    #[test]
    fn one_table_in_many_forms() {
        let Some(integers) = with_labels("higgs2k_y_i64.npy") else { return };
        let reference = table_of("higgs2k_X_f32.npy", integers).unwrap().unwrap();
        assert_eq!((reference.n_rows(), reference.n_cols()), (2_000, 28));
        let rows = reference.rows::<f32>(0..2_000).unwrap();
        let labels = reference.labels::<i64>().unwrap();

        let truths = table_of("higgs2k_X_f32.npy", with_labels("higgs2k_y_bool.npy").unwrap()).unwrap().unwrap();
        assert!(truths.labels::<u8>().unwrap().iter().zip(labels).all(|(&truth, &label)| i64::from(truth) == label));
        for archive in ["higgs2k_deflate.npz", "higgs2k_stored.npz"] {
            let table = table_of(archive, NpyOptions::default()).unwrap().unwrap();
            assert_eq!((table.rows::<f32>(0..2_000).unwrap(), table.labels::<i64>().unwrap()), (rows, labels), "{archive}");
        }
        // The only labels for these have other numbers of rows, so the first column is used instead.
        let without_first = |n: usize| rows[..28 * n].chunks(28).flat_map(|row| row[1..].to_vec()).collect::<Vec<f32>>();
        for (name, n_rows, tolerance) in [
            ("higgs200_npyv3.npy", 200, 0.0),
            ("higgs500_X_f32_bigendian.npy", 500, 0.0),
            ("higgs500_X_f64_fortran.npy", 500, 0.0),
            // Half precision keeps 11 bits.
            ("higgs500_X_f16.npy", 500, 1.0 / 2048.0),
        ] {
            let table = table_of(name, first_column_as_label()).unwrap().unwrap();
            assert_eq!((table.n_rows(), table.n_cols()), (n_rows, 27), "{name}");
            let close = |(found, expected): (&f32, &f32)| (found - expected).abs() <= tolerance * expected.abs();
            let expected = without_first(n_rows);
            assert!(table.rows::<f32>(0..n_rows).unwrap().iter().zip(&expected).all(close), "{name}: other rows");
        }
    }

    /// The images are the first records of the test batch, which `cifar` reads, so only shape, type and labels are checked.
    #[test]
    fn images() {
        let Some(options) = with_labels("cifar10_test100_labels_u8.npy") else { return };
        let table = table_of("cifar10_test100_nhwc_u8.npy", options).unwrap().unwrap();
        assert_eq!((table.n_rows(), table.row_shape(), table.dtype()), (100, [32, 32, 3].as_slice(), DType::U8));
        assert_eq!(table.labels::<u8>().unwrap()[..10], [3, 8, 8, 0, 6, 6, 1, 6, 3, 1]);
        assert_eq!(table.statistics().unwrap().len(), 3);
    }

    #[test]
    fn what_is_refused() {
        for (name, says) in [
            ("scalar_f32.npy", "a single number"),
            ("empty_0x28_f32.npy", "an array without rows"),
            ("higgs500_structured.npy", "a structured array of the fields [\"label\", \"x\", \"tag\"]"),
        ] {
            let Some(imported) = table_of(name, first_column_as_label()) else { return };
            let message = imported.unwrap_err();
            assert!(message.contains(says) && message.contains(name), "{message}");
        }
        let message = table_of("higgs2k_X_f32.npy", with_labels("cifar10_test100_labels_u8.npy").unwrap()).unwrap().unwrap_err();
        assert!(message.contains("has 2000 rows") && message.contains("has 100"), "{message}");
        let message = table_of("higgs2k_X_f32.npy", NpyOptions::default()).unwrap().unwrap_err();
        assert!(message.contains("`NpyOptions::labels`"), "{message}");
    }
}

#[test]
fn numbers_that_f32_rounds_are_told() {
    let (folder, dest) = crate::scratch();
    let [x, y] = ["x.npy", "y.npy"].map(|name| folder.path().join(name));
    fs::write(&y, npy("|u1", "False", "(3,)", &[0, 1, 0])).unwrap();
    let told = |descr: &str, values: Vec<u8>| {
        fs::write(&x, npy(descr, "False", "(3, 1)", &values)).unwrap();
        let options = NpyOptions { labels: NpyLabels::Array(ArrayRef::File(y.clone())), ..NpyOptions::default() };
        let report = import(&x, &dest, &options).unwrap();
        let rounded = report.warnings.iter().filter_map(|warning| match warning {
            &ImportWarning::RoundedArray { n_values, first, stored, .. } => Some((n_values, first, stored)),
            _ => None,
        });
        rounded.collect::<Vec<_>>()
    };
    let whole = [1, 16_777_217, 16_777_219_i64].map(i64::to_le_bytes).concat();
    assert_eq!(told("<i8", whole), [(2, 16_777_217.0, 16_777_216.0)]);
    let floats = [0.5, 1_700_000_060.0, 0.1_f64].map(f64::to_le_bytes).concat();
    assert_eq!(told("<f8", floats), [(1, 1_700_000_060.0, f64::from(1_700_000_060.0_f64 as f32))]);
    assert_eq!(told("<f8", [0.5, 16_777_216.0, 0.1_f64].map(f64::to_le_bytes).concat()), []);
}
