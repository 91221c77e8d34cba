//! Lines of `label index:value`: what is read, what is refused, and the error messages.

use std::fs;
use std::io::Write;

use brisk_table::{
    BadRows, CsvOptions, FeatureDType, FirstIndex, LabelKind, Missing, SourceError, SvmlightOptions, Table, import,
    import_with_progress,
};

use crate::Import;

/// The features and labels, row by row.
#[track_caller]
fn check(text: impl AsRef<[u8]>, options: SvmlightOptions, names: &[&str], features: &[f32], labels: &[f32]) {
    let (_, table) = Import::of("rows.svm", text).run(&options).unwrap();
    assert_eq!(table.column_names(), names);
    assert_eq!(table.rows::<f32>(0..table.n_rows()).unwrap(), features);
    assert_eq!(table.labels::<f32>().unwrap(), labels);
}

/// The error contains all these words.
#[track_caller]
fn refuse(text: impl AsRef<[u8]>, options: SvmlightOptions, says: &[&str]) {
    let message = Import::of("rows.svm", text).run(&options).expect_err("it was imported").to_string();
    for part in says.iter().chain(&["rows.svm"]) {
        assert!(message.contains(part), "`{message}` does not say `{part}`");
    }
}

fn auto() -> SvmlightOptions {
    SvmlightOptions::default()
}

fn shape(first_index: FirstIndex, n_features: Option<usize>) -> SvmlightOptions {
    SvmlightOptions { first_index, n_features, ..auto() }
}

#[test]
fn forms_of_the_same_rows() {
    let (names, features, labels) = (["feature_1", "feature_2", "feature_3"], [0.5, 0.0, 2.0, 0.0, -0.03, 0.0], [1.0, -1.0]);
    for text in [
        "1 1:0.5 3:2\n-1 2:-3e-2\n",
        "+1 1:0.5 3:2\r\n-1 2:-3e-2\r\n",
        "# made by hand\n\n1 1:0.5 3:2 # a \"quote, 9:9\n\n   \n-1\t2:-3e-2",
        "\u{feff}1 qid:7 1:0.5 3:2\n-1 qid:8 2:-3e-2#\n",
        "  1.0   1:.5    2:0 3:2e0  \n-1 2:-0.03\n",
    ] {
        check(text, auto(), &names, &features, &labels);
        check(text, shape(FirstIndex::One, Some(3)), &names, &features, &labels);
    }
}

#[test]
fn first_index_and_number_of_features() {
    let text = "1 1:5\n0 2:6\n";
    check(text, auto(), &["feature_1", "feature_2"], &[5.0, 0.0, 0.0, 6.0], &[1.0, 0.0]);
    let from_zero = shape(FirstIndex::Zero, None);
    check(text, from_zero, &["feature_0", "feature_1", "feature_2"], &[0.0, 5.0, 0.0, 0.0, 0.0, 6.0], &[1.0, 0.0]);
    check("1 1:5\n0 0:6\n", auto(), &["feature_0", "feature_1"], &[0.0, 5.0, 6.0, 0.0], &[1.0, 0.0]);
    check("1 1:5\n0\n", shape(FirstIndex::Auto, Some(2)), &["feature_1", "feature_2"], &[5.0, 0.0, 0.0, 0.0], &[1.0, 0.0]);
    check("1\n0\n", shape(FirstIndex::Auto, Some(1)), &["feature_0"], &[0.0, 0.0], &[1.0, 0.0]);
    refuse("1\n0\n", auto(), &["no row has a feature", "`n_features`"]);
    refuse(text, shape(FirstIndex::One, Some(1)), &["line 2, byte 8: feature 2, rows have 1 features and the last is 1"]);
    refuse(text, shape(FirstIndex::Auto, Some(0)), &["`n_features` is 0, expected 1 to"]);
    refuse(text, shape(FirstIndex::Auto, Some(usize::MAX)), &["expected 1 to 262145"]);
    refuse("1 0:5\n", shape(FirstIndex::One, None), &["line 1, byte 2: feature 0 in a file whose first index is said to be 1"]);
}

#[test]
fn bad_lines_are_refused_with_their_place() {
    for (line, says) in [
        ("1 1:2 1:3", "line 3, byte 24: feature 1 is given twice"),
        ("1 3:2 1:3", "line 3, byte 24: feature 1 follows 3, expected rising indices"),
        ("1 1:two", "line 3, byte 20: feature 1: found \"two\", expected a number"),
        ("1 1:nan", "found \"nan\", expected a number, this is a missing value"),
        ("1 1:inf", "found \"inf\", expected a finite number"),
        ("1 1:1e39", "within the range of f32"),
        ("1 1:", "found \"1:\", expected `index:value`"),
        ("1 :1", "expected `index:value`"),
        ("1 1", "found \"1\", expected `index:value`"),
        ("1 1 :2", "found \"1\", expected `index:value`"),
        ("1 -1:2", "found \"-1:2\", expected `index:value`"),
        ("1 1.5:2", "found \"1.5:2\", expected `index:value`"),
        ("1 \u{661}:2", "expected `index:value`"),
        ("1 1:2:3", "found \"2:3\", expected a number"),
        ("1 262145:1", "feature 262145, indices up to 262144 are read"),
        ("1 99999999999999999999999:1", "indices up to 262144 are read"),
        ("1 2:1 qid:3", "found \"qid:3\", expected `index:value`"),
        ("1 qid:x 2:1", "found the query \"qid:x\", expected `qid:` and a whole number"),
        ("1,2 2:1", "found the label \"1,2\", expected one finite number"),
        ("2:1 3:1", "line 3, byte 18: found the label \"2:1\""),
        ("nan 2:1", "found the label \"nan\""),
        ("\"1 2:1", "found the label"),
    ] {
        refuse(format!("1 1:1 2:2\n0 2:22#\n{line}\n1 1:1\n"), auto(), &[says]);
    }
    let binary = SvmlightOptions { label_kind: LabelKind::Binary, ..auto() };
    refuse("0 1:1\n-1 1:1\n", binary, &["line 2, byte 6", "found the label \"-1\", expected a label 0 or 1"]);
    refuse(b"1 1:1\n1 1:\xff\n", auto(), &["line 2", "expected a number"]);
    let reason = crate::reason(Import::of("rows.svm", "1 1:1 1:1").run(&auto()));
    assert!(matches!(reason, Some(SourceError::Line { line: 1, byte: 6, .. })), "{reason:?}");
}

#[test]
fn what_is_no_svmlight_file() {
    refuse("", auto(), &["an empty file"]);
    refuse("\n# nothing\n\n", auto(), &["no rows"]);
    refuse("PAR1....", auto(), &["a Parquet file"]);
    refuse("PAR1....", shape(FirstIndex::One, Some(2)), &["a Parquet file"]);
    refuse("label,a\n1,2\n", auto(), &["line 1, byte 0: found the label \"label,a\""]);
    let skip = SvmlightOptions { bad_rows: BadRows::Skip, ..auto() };
    refuse("x\ny\n", skip.clone(), &["only rows that were skipped"]);
    refuse(
        "x\ny\n",
        SvmlightOptions { n_features: Some(1), first_index: FirstIndex::One, ..skip },
        &["only rows that were skipped"],
    );
    refuse(vec![b'1'; (64 << 20) + 1], auto(), &["line 1, byte 0: the row has no end within"]);
    let none = import("no such file", "nowhere", &auto()).unwrap_err();
    assert!(none.to_string().contains("cannot open"), "{none}");
}

#[test]
fn bad_rows_are_skipped_and_do_not_count() {
    let options = SvmlightOptions { bad_rows: BadRows::Skip, ..auto() };
    let (report, table) = Import::of("rows.svm", "1 2:5\nx 9:1\n0 1:1 8:1 8:2\n0 1:7 # 0:1\n").run(&options).unwrap();
    assert_eq!((report.n_rows, report.n_skipped), (2, 2));
    assert_eq!(table.rows::<f32>(0..2).unwrap(), [0.0, 5.0, 7.0, 0.0]);
    assert!(report.first_skipped[1].to_string().contains("line 3, byte 22: feature 8 is given twice"), "{report:?}");
}

#[test]
fn classes_missing_values_and_bytes() {
    let text = "+1 1:300 2:nan\n-1 1:4\n-1 2:2\n";
    let options = SvmlightOptions { label_kind: LabelKind::Classes, missing: Missing::Mean, ..auto() };
    let (_, table) = Import::of("rows.svm", text).run(&options).unwrap();
    assert_eq!((table.classes(), table.labels::<u32>().unwrap()), (&["-1".to_owned(), "+1".to_owned()][..], &[1, 0, 0][..]));
    assert_eq!(table.rows::<f32>(0..3).unwrap(), [300.0, 1.0, 4.0, 0.0, 0.0, 2.0]);
    let given = SvmlightOptions { label_kind: LabelKind::Given(vec!["+1".into()]), missing: Missing::Keep, ..auto() };
    refuse(text, given, &["line 2", "found the label \"-1\", expected one of the classes that were given"]);
    let bytes = SvmlightOptions { dtype: FeatureDType::U8, missing: Missing::Value(9.0), ..auto() };
    refuse(text, bytes.clone(), &["line 1, byte 3: feature 1: found \"300\", expected a whole number from 0 to 255"]);
    let (_, table) = Import::of("rows.svm", text.replace("300", "30")).run(&bytes).unwrap();
    assert_eq!(table.rows::<u8>(0..3).unwrap(), [30, 9, 4, 0, 0, 2]);
}

/// Chunks are cut by bytes if rows are short, by rows if they are long.
#[test]
fn the_same_table_for_any_number_of_threads() {
    let short: String = (0..60_000_u32).map(|i| format!("{} {}:0.{i} 40:{}\n", i % 7, i % 30 + 1, i % 11)).collect();
    let long: String = (0..300_u32).map(|i| format!("{} {}:{i}\n", i % 7, i * 30 + 1)).collect();
    for text in [short, long] {
        let import = Import::of("rows.svm", &text);
        let tables = [1, 2, 3, 7].map(|n_threads| {
            import.run(&SvmlightOptions { n_threads, label_kind: LabelKind::Classes, ..auto() }).unwrap();
            let table = fs::read(&import.dest).unwrap();
            fs::remove_file(&import.dest).unwrap();
            table
        });
        assert!(tables.iter().all(|table| *table == tables[0]), "tables differ");
    }
}

#[test]
fn packed_and_with_progress() {
    let text: String = (0..50_000_u32).map(|i| format!("1 1:{i} 2:{}\n", i / 2)).collect();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(text.as_bytes()).unwrap();
    let import = Import::of("rows.svm", packed.finish().unwrap());
    let mut last = None;
    import_with_progress(&import.source, &import.dest, &auto(), |now| last = Some(now)).unwrap();
    let last = last.unwrap();
    assert_eq!((last.bytes_read, last.n_rows), (last.total_bytes, 50_000));
    assert_eq!(Table::open(&import.dest).unwrap().rows::<f32>(49_999..50_000).unwrap(), [49_999.0, 24_999.0]);
}

#[test]
fn a_real_file_has_the_rows_of_its_csv() {
    let Some(source) = crate::real_files::data("samples/higgs500.svm") else { return };
    let (folder, dest) = crate::scratch();
    import(&source, &dest, &SvmlightOptions { label_kind: LabelKind::Binary, ..auto() }).unwrap();
    let (found, csv) = (Table::open(&dest).unwrap(), folder.path().join("csv.safetensors"));
    import(crate::real_files::data("higgs/higgs_test.csv.gz").unwrap(), &csv, &CsvOptions::default()).unwrap();
    let expected = Table::open(&csv).unwrap();
    assert_eq!((found.n_rows(), found.n_cols()), (500, 28));
    assert_eq!(found.rows::<f32>(0..500).unwrap(), expected.rows::<f32>(0..500).unwrap());
    assert_eq!(found.labels::<f32>().unwrap(), &expected.labels::<f32>().unwrap()[..500]);
}
