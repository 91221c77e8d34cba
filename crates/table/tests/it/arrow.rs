//! Arrow IPC: files with every kind of column, whole and in parts, compressed and plain, and files that are refused. Parquet
//! shares the conversion.

use std::fs;
use std::path::{Path, PathBuf};

use brisk_table::{
    ArrowOptions, BadRows, Categorical, ColumnOptions, DType, Error, FeatureDType, ImportReport, Indicators, LabelKind, Missing,
    Table, import, import_with_progress,
};

/// Files of 400 rows that pyarrow wrote. Row `i` has the label `i % 2`; x = i / 2, null where `i % 10` is 3; n = 3 i - 5; d = i /
/// 100; a category `"abc"[i % 3]`, null where `i % 7` is 0; the text `" t{i % 5} "`; the list `[i, i + 1/4, -i]`; the weight
/// `1 + i % 4`; a time; and a list of `i % 3` numbers.
pub(crate) fn mixed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/columns").join(name)
}

pub(crate) fn columns() -> ColumnOptions {
    ColumnOptions {
        labels: vec!["y".into()],
        weight: Some("w".into()),
        drop: vec!["when".into(), "many".into()],
        categorical: Categorical::Auto,
        missing: Missing::Keep,
        ..ColumnOptions::default()
    }
}

pub(crate) fn table_of(source: &Path, columns: ColumnOptions) -> Result<(ImportReport, Table), String> {
    let (folder, dest) = crate::scratch();
    let options = ArrowOptions { columns, ..ArrowOptions::default() };
    let report = import(source, &dest, &options).map_err(|error| error.to_string());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), usize::from(report.is_ok()), "something was left behind");
    let table = Table::open(&dest);
    Ok((report?, table.unwrap()))
}

/// Checks that the table has the rows that [`mixed`] describes.
#[track_caller]
pub(crate) fn check_mixed(report: &ImportReport, table: &Table) {
    table.verify().unwrap();
    assert_eq!((report.n_rows, table.n_rows()), (400, 400));
    assert_eq!(table.column_names(), ["x", "n", "d", "list_0", "list_1", "list_2"]);
    for (i, row) in table.rows::<f32>(0..400).unwrap().chunks(6).enumerate() {
        let number = i as f32;
        let expected = [0.5 * number, 3.0 * number - 5.0, (i as f64 / 100.0) as f32, number, number + 0.25, -number];
        assert_eq!(row[0].is_nan(), i % 10 == 3, "row {i}: {row:?}");
        assert_eq!(row[usize::from(i % 10 == 3)..], expected[usize::from(i % 10 == 3)..], "row {i}");
    }
    assert!(table.labels::<f32>().unwrap().iter().enumerate().all(|(i, &label)| label == (i % 2) as f32), "labels differ");
    assert!(table.weights().unwrap().iter().enumerate().all(|(i, &weight)| weight == (1 + i % 4) as f32), "weights differ");
    let [categories, texts] = table.dictionaries() else { panic!("{:?}", table.dictionaries()) };
    assert_eq!((categories.name(), texts.name()), ("cat", "text"));
    // In the order of their first occurrence.
    assert_eq!(
        (categories.values(), texts.values()),
        (["b", "c", "a"].map(str::to_owned).as_slice(), ["t0", "t1", "t2", "t3", "t4"].map(str::to_owned).as_slice())
    );
    for (i, codes) in table.categories(0..400).unwrap().chunks(2).enumerate() {
        let category = if i % 7 == 0 { None } else { Some(["a", "b", "c"][i % 3]) };
        assert_eq!((categories.value(codes[0]), codes[1] as usize), (category, i % 5 + 1), "row {i}");
    }
}

#[test]
fn files_and_streams_plain_and_packed() {
    for name in ["mixed_plain.arrow", "mixed_lz4.arrow", "mixed_zstd.arrow", "mixed.arrows"] {
        let (report, table) = table_of(&mixed(name), columns()).unwrap();
        check_mixed(&report, &table);
    }
    let (folder, _) = crate::scratch();
    let packed = folder.path().join("mixed.arrows.gz");
    let mut gzip = flate2::write::GzEncoder::new(fs::File::create(&packed).unwrap(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, &fs::read(mixed("mixed.arrows")).unwrap()).unwrap();
    gzip.finish().unwrap();
    let (report, table) = table_of(&packed, columns()).unwrap();
    check_mixed(&report, &table);
}

/// Checks that the number of threads does not change the table.
pub(crate) fn check_threads(name: &str) {
    let bytes = |n_threads| {
        let (_folder, dest) = crate::scratch();
        let options = ArrowOptions { columns: columns(), n_threads };
        let mut last = None;
        import_with_progress(mixed(name), &dest, &options, |progress| last = Some(progress)).unwrap();
        assert_eq!(last.expect("there were rows to write").n_rows, 400);
        fs::read(dest).unwrap()
    };
    let one = bytes(1);
    for n_threads in [2, 3, 7] {
        assert!(bytes(n_threads) == one, "{n_threads} threads make another table than one");
    }
}

#[test]
fn any_number_of_threads_makes_the_same_table() {
    check_threads("mixed_zstd.arrow");
}

#[test]
fn labels_that_are_classes() {
    let text = ColumnOptions { labels: vec!["text".into()], label_kind: LabelKind::Classes, ..columns() };
    let drop = vec!["when".into(), "many".into(), "y".into()];
    let (report, table) = table_of(&mixed("mixed.arrows"), ColumnOptions { drop: drop.clone(), ..text.clone() }).unwrap();
    assert_eq!(report.classes, ["t0", "t1", "t2", "t3", "t4"]);
    assert!(table.labels::<u32>().unwrap().iter().enumerate().all(|(i, &label)| label as usize == i % 5), "labels differ");

    let given = LabelKind::Given(["t4", "t3", "t2", "t1"].map(Into::into).into());
    let given = ColumnOptions { label_kind: given, drop, ..text };
    let message = table_of(&mixed("mixed.arrows"), given.clone()).unwrap_err();
    assert!(message.contains("row 0, column `text`: found t0, expected one of the classes that were given"), "{message}");
    let (report, table) = table_of(&mixed("mixed.arrows"), ColumnOptions { bad_rows: BadRows::Skip, ..given }).unwrap();
    assert_eq!((report.n_skipped, report.n_rows), (80, 320));
    assert_eq!(table.labels::<u32>().unwrap()[..5], [3, 2, 1, 0, 3]);
}

#[test]
fn only_rows_without_a_label_are_skipped() {
    let of_label = |label: &str, missing: &str| ColumnOptions {
        labels: vec![label.into()],
        features: Some(vec!["n".into()]),
        missing_values: vec![missing.to_owned()],
        bad_rows: BadRows::SkipUnlabelled,
        ..columns()
    };
    // Every tenth `x` is null.
    let (report, table) = table_of(&mixed("mixed.arrows"), of_label("x", "none")).unwrap();
    assert_eq!((report.n_skipped, table.n_rows()), (40, 360));
    let classes = ColumnOptions { label_kind: LabelKind::Classes, ..of_label("text", "t0") };
    let (report, table) = table_of(&mixed("mixed.arrows"), classes).unwrap();
    assert_eq!((report.n_skipped, table.n_rows(), table.classes().len()), (80, 320, 4));
    // Another bad cell is an error still.
    let bytes = ColumnOptions { dtype: FeatureDType::U8, ..of_label("x", "none") };
    let message = table_of(&mixed("mixed.arrows"), bytes).unwrap_err();
    assert!(message.contains("column `n`") && message.contains("expected a whole number from 0 to 255"), "{message}");
}

#[test]
fn missing_values_are_filled_in_and_marked() {
    let options = ColumnOptions { missing: Missing::Value(-1.0), indicators: Indicators::Columns(vec!["x".into()]), ..columns() };
    let (_, table) = table_of(&mixed("mixed.arrows"), options).unwrap();
    for (i, row) in table.rows::<f32>(0..400).unwrap().chunks(7).enumerate() {
        let expected = if i % 10 == 3 { (-1.0, 1.0) } else { (i as f32 / 2.0, 0.0) };
        assert_eq!((row[0], row[6]), expected, "row {i}");
    }
    let message = table_of(&mixed("mixed.arrows"), ColumnOptions { missing: Missing::Error, ..columns() }).unwrap_err();
    assert!(message.contains("row 3, column `x`: found null, expected a number, this is a missing value"), "{message}");
    // Row numbers continue across batches: all columns except `n` are dropped, and its values from 256 on are not bytes.
    let drop = ["when", "many", "x", "d", "list"].map(Into::into).into();
    let bytes = ColumnOptions { drop, dtype: FeatureDType::U8, bad_rows: BadRows::Skip, ..columns() };
    let (report, table) = table_of(&mixed("mixed.arrows"), bytes).unwrap();
    assert_eq!((table.dtype(), report.n_rows, report.n_skipped), (DType::U8, 85, 315));
    let last = report.first_skipped.last().unwrap().to_string();
    assert!(last.contains("row 94, column `n`: found 277, expected a whole number from 0 to 255"), "{last}");
}

#[test]
fn a_table_like_another() {
    let (folder, _) = crate::scratch();
    let train = folder.path().join("train.safetensors");
    let options = ArrowOptions { columns: columns(), ..ArrowOptions::default() };
    import(mixed("mixed.arrows"), &train, &options).unwrap();
    let like = ColumnOptions { like: Some(train), weight: Some("w".into()), missing: Missing::Keep, ..ColumnOptions::default() };
    let (report, table) = table_of(&mixed("mixed_lz4.arrow"), like).unwrap_or_else(|message| panic!("{message}"));
    assert_eq!((report.n_rows, table.dictionaries()[0].values()), (400, ["b", "c", "a"].map(str::to_owned).as_slice()));
}

#[test]
fn columns_that_make_no_numbers_are_named() {
    #[track_caller]
    fn check(columns: ColumnOptions, says: &[&str]) {
        let message = table_of(&mixed("mixed.arrows"), columns).unwrap_err();
        assert!(says.iter().all(|says| message.contains(says)), "{message}");
    }
    let drop = |names: &[&str]| names.iter().map(|&name| name.into()).collect();
    check(
        ColumnOptions { categorical: Categorical::No, drop: drop(&["many", "cat", "text"]), ..columns() },
        &["column `when` is Timestamp", "name the column in `ColumnOptions::categorical`"],
    );
    check(ColumnOptions { drop: drop(&["when"]), ..columns() }, &["column `many` is List", "`ColumnOptions::drop`"]);
    check(
        ColumnOptions { categorical: Categorical::No, ..columns() },
        &["column `cat` is Dictionary", "name the column in `ColumnOptions::categorical`"],
    );
    check(
        ColumnOptions { labels: vec!["text".into()], drop: drop(&["when", "many"]), ..columns() },
        &["column `text` is LargeUtf8", "`LabelKind::Classes`"],
    );
    check(
        ColumnOptions { labels: vec!["y".into(), "text".into()], ..columns() },
        &["column `text` is LargeUtf8", "numbers, as several labels are"],
    );
    check(ColumnOptions { weight: Some("text".into()), ..columns() }, &["column `text` is LargeUtf8", "to weigh rows"]);
    check(
        ColumnOptions { labels: vec!["nothing".into()], ..columns() },
        &["there is no column `nothing` for the label", "list_2"],
    );
}

const REFUSALS: [(&str, &str); 7] = [
    ("cut_before_footer.arrow", "the schema"),
    ("cut_in_batch.arrow", "batch 0"),
    ("empty.arrow", "the schema"),
    ("footer_of_all_memory.arrow", "the schema"),
    ("not_arrow.arrow", "the schema"),
    ("only_magic.arrow", "the schema"),
    ("schema_of_all_memory.arrow", "the schema"),
];

/// Checks that all files with this extension are refused for these reasons.
pub(crate) fn check_forged(extension: &str, refusals: &[(&str, &str)]) {
    let (folder, dest) = crate::scratch();
    for (name, reason) in refusals {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/attacks").join(name);
        let error = import(path, &dest, &ArrowOptions::default()).expect_err(name);
        let message = error.to_string();
        assert!(matches!(error, Error::Source { .. }), "{name}: {message}");
        assert!(message.contains(reason) && message.contains(name), "{name}: `{message}` does not say `{reason}`");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{name}: something was left behind");
    }
    crate::attacks::check_listed(&[extension], refusals.iter().map(|(name, _)| *name));
}

#[test]
fn forged_files_are_refused() {
    check_forged("arrow", &REFUSALS);
}

/// A damaged byte of a file never makes the import panic or leave something behind. (The panic messages of readers are still
/// printed.)
pub(crate) fn check_any_byte(names: &[&str]) {
    let (folder, dest) = crate::scratch();
    let source = folder.path().join("damaged");
    for name in names {
        let good = fs::read(mixed(name)).unwrap();
        // Every third byte, to save time.
        for at in (0..good.len()).step_by(3) {
            let mut bad = good.clone();
            bad[at] ^= if at % 2 == 0 { 0x01 } else { 0xff };
            fs::write(&source, bad).unwrap();
            if import(&source, &dest, &ArrowOptions::default()).is_ok() {
                Table::open(&dest).unwrap().verify().unwrap();
                fs::remove_file(&dest).unwrap();
            }
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "byte {at} of {name}: something was left behind");
        }
    }
}

#[test]
fn any_byte_may_be_wrong() {
    check_any_byte(&["small.arrow", "small.arrows"]);
}

#[test]
fn several_columns_may_be_labels() {
    let options = ColumnOptions { labels: vec!["n".into(), "y".into(), "list_1".into()], ..columns() };
    let (report, table) = table_of(&mixed("mixed_plain.arrow"), options).unwrap();
    assert_eq!((report.n_rows, table.n_labels()), (400, 3));
    assert_eq!(table.label_names(), ["n", "y", "list_1"]);
    assert_eq!(table.column_names(), ["x", "d", "list_0", "list_2"]);
    for (i, labels) in table.labels::<f32>().unwrap().chunks(3).enumerate() {
        let number = i as f32;
        assert_eq!(labels, [3.0 * number - 5.0, (i % 2) as f32, number + 0.25], "row {i}");
    }
}
