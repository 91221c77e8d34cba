//! Columns that are probably not what they seem: indices, identifiers, leaked labels, and numbers that lose digits. And which
//! column a word means.

use std::fmt::Write;
use std::fs;

use brisk_table::{
    Categorical, ColumnOptions, ColumnRef, ColumnRole, CsvOptions, Digits, Error, Header, ImportReport, ImportWarning, LabelKind,
    Missing, SourceError, Table, find_numbers, import,
};

fn labelled(label: &str) -> ColumnOptions {
    ColumnOptions { labels: vec![label.into()], ..ColumnOptions::default() }
}

fn table_of(text: &str, columns: ColumnOptions) -> Result<(ImportReport, Table), Error> {
    let (folder, dest) = crate::scratch();
    let source = folder.path().join("rows.csv");
    fs::write(&source, text).unwrap();
    let report = import(&source, &dest, &CsvOptions { columns, ..CsvOptions::default() })?;
    Ok((report, Table::open(&dest).unwrap()))
}

/// Checks the columns of the table, and which are left out as an index.
#[track_caller]
fn check_columns(text: &str, columns: ColumnOptions, features: &[&str], index: &[&str]) {
    let (report, table) = table_of(text, columns).unwrap();
    assert_eq!(
        (table.column_names(), &report.column_names[..]),
        (&features.iter().map(|name| name.to_string()).collect::<Vec<_>>()[..], table.column_names())
    );
    assert_eq!(report.index_columns, index);
}

#[test]
fn the_index_of_a_data_frame_is_not_a_feature() {
    let text = ",a,b,y\n7,1,2,0\n8,3,4,1\n";
    check_columns(text, labelled("y"), &["a", "b"], &["column_0"]);
    check_columns(text, ColumnOptions { labels: vec![ColumnRef::Last], ..ColumnOptions::default() }, &["a", "b"], &["column_0"]);
    check_columns(text, ColumnOptions { keep_index: true, ..labelled("y") }, &["column_0", "a", "b"], &[]);
    // A name counts as an intention.
    check_columns(text, ColumnOptions { weight: Some("column_0".into()), ..labelled("y") }, &["a", "b"], &[]);
    check_columns(text, labelled("column_0"), &["a", "b", "y"], &[]);
    // Two levels, and columns without names.
    check_columns(",,a,y\n7,x,2,0\n8,x,4,1\n", labelled("y"), &["a"], &["column_0", "column_1"]);
    check_columns(",0,1,2\n0,5,6,7\n1,8,9,7\n", labelled("2"), &["0", "1"], &["column_0"]);
    // A column without a name among others is not the index.
    check_columns("a,,y\n1,2,0\n3,4,1\n", labelled("y"), &["a", "column_1"], &[]);
    assert!(matches!(crate::reason(table_of(text, ColumnOptions::default())), Some(SourceError::IndexAsLabel { index: 0, .. })));
}

#[cfg(feature = "parquet")]
#[test]
fn the_index_in_the_metadata_of_pandas() {
    use std::path::Path;

    use brisk_table::{ArrowOptions, import};

    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/columns");
    let run = |name: &str, columns: ColumnOptions| {
        let (_folder, dest) = crate::scratch();
        let (source, options) = (folder.join(name), ArrowOptions { columns, ..ArrowOptions::default() });
        import(source, dest, &options).unwrap()
    };
    for name in ["pandas_index.parquet", "pandas_index.arrow"] {
        let report = run(name, labelled("y"));
        assert_eq!(
            (&report.column_names[..], &report.index_columns[..]),
            (&["x".into(), "t".into()][..], &["__index_level_0__".into()][..]),
            "{name}"
        );
        let kept = run(name, ColumnOptions { keep_index: true, ..labelled("y") });
        assert_eq!((kept.column_names.len(), kept.index_columns.len()), (3, 0), "{name}");
        let last = run(name, ColumnOptions { labels: vec![ColumnRef::Last], ..ColumnOptions::default() });
        assert_eq!(last.column_names, ["y", "x"], "{name}");
        // The time stamps are 60 s apart, `f32` has steps of 128 s.
        assert_eq!(
            (report.digits[1].n_rounded, report.digits[1].min, report.digits[1].max),
            (11, 1.7e9, 1.7e9 + 660.0),
            "{name}"
        );
    }
}

/// Rows of 2,000 with the columns `y` and `a`, and `b` for the tests: `b` has two kinds of text if it is a category.
fn rows(b: impl Fn(usize) -> String) -> String {
    (0..2000).fold("y,a,b\n".to_owned(), |mut text, row| {
        let noise = row * 7919 % 1009;
        _ = writeln!(text, "{},{noise},{}", u8::from(noise % 3 == 0), b(row));
        text
    })
}

#[track_caller]
fn check_warnings(text: &str, columns: ColumnOptions, expected: &[ImportWarning]) {
    let (report, _) = table_of(text, columns).unwrap();
    assert_eq!(report.warnings, expected);
}

#[test]
fn columns_that_count_rows_or_give_the_label_away() {
    let column = || "b".to_owned();
    let label = |row: usize| usize::from((row * 7919 % 1009).is_multiple_of(3));
    let auto = ColumnOptions { categorical: Categorical::Auto, ..ColumnOptions::default() };
    check_warnings(&rows(|row| (row * 31 % 977).to_string()), ColumnOptions::default(), &[]);
    check_warnings(
        &rows(|row| row.to_string()),
        ColumnOptions::default(),
        &[ImportWarning::Sequence { column: column(), first: 0.0 }],
    );
    check_warnings(
        &rows(|row| (row + 1).to_string()),
        ColumnOptions::default(),
        &[ImportWarning::Sequence { column: column(), first: 1.0 }],
    );
    check_warnings(&rows(|row| format!("id{row}")), auto.clone(), &[ImportWarning::AllDifferent { column: column() }]);
    check_warnings(
        &rows(|row| (3 - label(row)).to_string()),
        ColumnOptions::default(),
        &[ImportWarning::PredictsLabel { column: column() }],
    );
    let words = |row| ["no", "yes"][label(row)].to_owned();
    check_warnings(&rows(words), auto, &[ImportWarning::PredictsLabel { column: column() }]);
    let classes = ColumnOptions { label_kind: LabelKind::Classes, ..ColumnOptions::default() };
    check_warnings(&rows(|row| (9 * label(row)).to_string()), classes, &[ImportWarning::PredictsLabel { column: column() }]);
}

#[track_caller]
fn check_digits(cells: &[&str], n_rounded: u64, first_rounded: Option<f64>, n_leading_zeros: u64, [min, max]: [f64; 2]) {
    let text = cells.iter().fold("y,a\n".to_owned(), |text, cell| text + "0," + cell + "\n");
    let (report, _) = table_of(&text, ColumnOptions { missing: Missing::Keep, ..ColumnOptions::default() }).unwrap();
    let Digits { n_rounded: rounded, first_rounded: first, n_leading_zeros: zeros, min: smallest, max: largest, .. } =
        report.digits[0];
    assert_eq!((rounded, first, zeros, smallest, largest), (n_rounded, first_rounded, n_leading_zeros, min, max), "{cells:?}");
    let warned = |of: fn(&ImportWarning) -> bool| report.warnings.iter().any(of);
    assert_eq!(warned(|warning| matches!(warning, ImportWarning::Rounded { .. })), n_rounded > 0, "{cells:?}");
    assert_eq!(warned(|warning| matches!(warning, ImportWarning::LeadingZeros { .. })), n_leading_zeros > 0, "{cells:?}");
}

#[test]
fn digits_that_f32_does_not_hold_are_counted() {
    check_digits(&["16777215", "-5", ""], 0, None, 0, [-5.0, 16_777_215.0]);
    check_digits(&["16777216", "16777217", "16777218"], 1, Some(16_777_217.0), 0, [16_777_216.0, 16_777_218.0]);
    check_digits(&["1700000060", "1700000000", "3"], 1, Some(1_700_000_060.0), 0, [3.0, 1_700_000_060.0]);
    check_digits(&["16777217.5", "1.7000000601e9"], 2, Some(16_777_217.5), 0, [16_777_217.5, 1_700_000_060.1]);
    check_digits(&["01234", "1234", "00", "0.5"], 0, None, 2, [0.0, 1234.0]);
    check_digits(&["\"007\"", "7"], 0, None, 1, [7.0, 7.0]);
}

#[test]
fn a_column_of_codes_is_found_to_be_a_category() {
    let auto = ColumnOptions { categorical: Categorical::Auto, ..ColumnOptions::default() };
    let (report, _) = table_of("y,zip,a\n0,1234,0.5\n1,01234,0\n", auto).unwrap();
    assert_eq!((report.dictionaries[0].values(), report.column_names.len()), (&["1234".into(), "01234".into()][..], 1));
}

#[test]
fn labels_that_merge_are_told() {
    let (report, _) = table_of("y,a\n16777216,1\n16777217,2\n16777218,3\n", ColumnOptions::default()).unwrap();
    let warning = ImportWarning::Rounded {
        column: "y".into(),
        role: ColumnRole::Label,
        n_values: 1,
        first: "16777217".into(),
        stored: 16_777_216.0,
    };
    assert_eq!((report.warnings, report.label_digits[0].n_rounded), (vec![warning], 1));
    let classes = ColumnOptions { label_kind: LabelKind::Classes, ..ColumnOptions::default() };
    let (report, table) = table_of("y,a\n16777216,1\n16777217,2\n16777218,3\n", classes).unwrap();
    assert_eq!((report.warnings, report.classes.len(), table.labels::<u32>().unwrap()), (vec![], 3, &[0, 1, 2][..]));
}

#[test]
fn spellings_of_one_value_are_told() {
    let text = "y,a,b\n0,1,Yes\n1,2,no\n0,3,yes \n1,4,YES\n0,5,no\n";
    let auto = ColumnOptions { categorical: Categorical::Auto, ..ColumnOptions::default() };
    let classes = ColumnOptions { label_kind: LabelKind::Classes, ..labelled("b") };
    for columns in [auto, classes] {
        let (report, _) = table_of(text, columns).unwrap();
        let [ImportWarning::Similar { column, texts }] = &report.warnings[..] else { panic!("{:?}", report.warnings) };
        assert!(column == "b" && texts[0] != texts[1], "{texts:?}");
        assert!(texts.iter().all(|text| text.trim().eq_ignore_ascii_case("yes")), "{texts:?}");
    }
}

/// A quote that is not closed in its line, and another one some lines later: all rows between are one cell.
#[test]
fn rows_between_two_stray_quotes_are_named() {
    let text = "y,a,b\n0,x,1\n1,\"x,2\n0,w,3\n1,x\",4\n0,w,5\n";
    let (report, table) = table_of(text, ColumnOptions { categorical: Categorical::Auto, ..labelled("y") }).unwrap();
    assert_eq!(report.warnings, [ImportWarning::RowsInCell { column: "a".into(), n_lines: 3 }]);
    assert_eq!((table.n_rows(), report.source_columns), (3, ["y", "a", "b"].map(str::to_owned).into()));
}

#[cfg(feature = "half")]
#[test]
fn whole_numbers_that_f16_rounds_are_told() {
    let half = ColumnOptions { dtype: brisk_table::FeatureDType::F16, ..ColumnOptions::default() };
    let text = "y,a,b\n0,2047,0.1\n1,2048,0.2\n0,2049,0.3\n1,2050,0.7\n1,4097,0.9\n";
    let (report, _) = table_of(text, half).unwrap();
    let warning = ImportWarning::RoundedToHalf { column: "a".into(), n_values: 2, first: 2049.0, stored: 2048.0 };
    assert_eq!(report.warnings, [warning]);
    assert_eq!(table_of(text, ColumnOptions::default()).unwrap().0.warnings, []);
}

/// A copy of the label is told in a table of few rows, too.
#[test]
fn a_copied_label_is_told_in_few_rows() {
    let rows = |b: fn(usize) -> String| -> String {
        (0..12).fold("y,a,b\n".to_owned(), |text, row| text + &format!("{},{},{}\n", row % 2, row * 7 % 12, b(row)))
    };
    let auto = ColumnOptions { categorical: Categorical::Auto, ..ColumnOptions::default() };
    let predicts = |text: &str| {
        let (report, _) = table_of(text, auto.clone()).unwrap();
        report.warnings.iter().any(|warning| *warning == ImportWarning::PredictsLabel { column: "b".into() })
    };
    assert!(predicts(&rows(|row| (row % 2).to_string())) && predicts(&rows(|row| ["no", "yes"][row % 2].to_owned())));
    assert!(!predicts(&rows(|row| (row % 3).to_string())) && !predicts(&rows(|row| ["x", "y", "z"][row % 3].to_owned())));
}

#[test]
fn an_offset_saves_the_digits() {
    let shifted = |missing| ColumnOptions {
        offsets: vec![("t".into(), 1_700_000_000.0)],
        missing,
        missing_values: vec!["-999".into()],
        ..ColumnOptions::default()
    };
    let text = "y,t,a\n0,1700000060,1\n1,-999.0,2\n1,1700000061.5,3\n";
    let (report, table) = table_of(text, shifted(Missing::Mean)).unwrap();
    assert_eq!(table.rows::<f32>(0..3).unwrap(), [60.0, 1.0, 60.75, 2.0, 61.5, 3.0]);
    assert_eq!((report.digits[0].min, report.digits[0].max, report.warnings.len()), (1_700_000_060.0, 1_700_000_061.5, 0));
    let (_, table) = table_of(text, shifted(Missing::Value(1.7e9))).unwrap();
    assert_eq!(table.rows::<f32>(1..2).unwrap(), [0.0, 2.0]);
    table_of(text, shifted(Missing::Error)).unwrap_err();
    let dropped = vec!["a".into()];
    let unknown = ColumnOptions { offsets: vec![("a".into(), 1.0)], drop: dropped, ..ColumnOptions::default() };
    assert!(matches!(crate::reason(table_of(text, unknown)), Some(SourceError::ColumnRoles { .. })));
    let twice = ColumnOptions { offsets: vec![("t".into(), 1.0), ("t".into(), 2.0)], ..ColumnOptions::default() };
    assert!(
        matches!(crate::reason(table_of(text, twice)), Some(SourceError::ColumnRoles { problem, .. }) if problem.contains("`t` has two offsets"))
    );
}

#[test]
fn an_offset_saves_the_digits_of_a_label() {
    let shifted = |kind| ColumnOptions {
        offsets: vec![("y".into(), 1e7)],
        missing_values: vec!["-999".into()],
        label_kind: kind,
        ..ColumnOptions::default()
    };
    let text = "y,a\n10000000.125,1\n10000000.25,2\n9999999.5,3\n";
    let (report, table) = table_of(text, shifted(LabelKind::Number)).unwrap();
    assert_eq!((table.labels::<f32>().unwrap(), &report.warnings[..]), (&[0.125, 0.25, -0.5][..], &[][..]));
    for columns in [shifted(LabelKind::Number), ColumnOptions { offsets: Vec::new(), ..shifted(LabelKind::Number) }] {
        let result = table_of("y,a\n5,1\n-999.0,2\n", columns);
        assert!(matches!(crate::reason(result), Some(SourceError::Cell { line: 3, col: 1, .. })));
    }
    assert!(matches!(crate::reason(table_of(text, shifted(LabelKind::Binary))), Some(SourceError::ColumnRoles { .. })));
}

#[test]
fn whole_numbers_beyond_f64_keep_their_digits() {
    let id = |row: i128| (1 << 60) + row;
    let text = (0..300).fold("y,id\n".to_owned(), |text, row| text + &format!("{},{}\n", row * row % 7, id(row)));
    let (report, table) = table_of(&text, ColumnOptions::default()).unwrap();
    let warning = ImportWarning::Rounded {
        column: "id".into(),
        role: ColumnRole::Feature,
        n_values: 299,
        first: id(1).to_string(),
        stored: 1_152_921_504_606_846_976.0,
    };
    assert_eq!(report.warnings, [warning], "all are 2^60 or few other numbers, which do not count the rows");
    assert!(report.warnings[0].to_string().contains("1152921504606846977 became 1152921504606846976;"), "{}", report.warnings[0]);
    assert!(table.rows::<f32>(0..300).unwrap().iter().all(|&value| value == 1_152_921_504_606_846_976.0));

    let columns = ColumnOptions { offsets: vec![("id".into(), id(0) as f64)], ..ColumnOptions::default() };
    let (_, table) = table_of(&text, columns).unwrap();
    assert_eq!(table.rows::<f32>(0..300).unwrap(), (0..300_u16).map(f32::from).collect::<Vec<_>>());
}

/// Checks which columns are told to have lost digits.
#[track_caller]
fn check_imprecise(text: &str, columns: ColumnOptions, expected: &[(&str, ColumnRole)]) {
    let (report, _) = table_of(text, columns).unwrap();
    let imprecise = |warning: &ImportWarning| match warning {
        ImportWarning::Imprecise { column, role, .. } => Some((column.clone(), *role)),
        _ => None,
    };
    let found: Vec<_> = report.warnings.iter().filter_map(imprecise).collect();
    let expected: Vec<_> = expected.iter().map(|&(column, role)| (column.to_owned(), role)).collect();
    assert_eq!(found, expected, "{:?}", report.warnings);
}

#[test]
fn rounding_is_told_where_it_is_much_of_the_deviation() {
    let part = |row: usize| (row * 7919 % 10_000) as f64 / 10_000.0;
    let rows = |line: &dyn Fn(usize) -> String| (0..200).fold("y,a,b\n".to_owned(), |text, row| text + &line(row) + "\n");
    let ordinary = rows(&|row| format!("{:.4},{:.4},0.1", part(row), 100.0 + part(row)));
    check_imprecise(&ordinary, ColumnOptions::default(), &[]);
    let whole = rows(&|row| format!("{},{},{}", 10_000_000 + row, 2020 + row % 3, 16_000_000 + row % 2));
    check_imprecise(&whole, ColumnOptions::default(), &[]);
    let large = rows(&|row| format!("{:.4},{:.4},{:.4}", 1e6 + part(row), 1e7 + part(row), part(row)));
    check_imprecise(&large, ColumnOptions::default(), &[("a", ColumnRole::Feature), ("y", ColumnRole::Label)]);
    let offsets = vec![("y".into(), 1e6), ("a".into(), 1e7)];
    check_imprecise(&large, ColumnOptions { offsets, ..ColumnOptions::default() }, &[]);
    let merged = rows(&|row| format!("{},{:.4},1", row % 2, 1e7 + 0.1 * part(row)));
    check_imprecise(&merged, ColumnOptions::default(), &[("a", ColumnRole::Feature)]);
}

#[cfg(feature = "half")]
#[test]
fn rounding_to_f16_is_told_where_it_is_much_of_the_deviation() {
    let text = (0..200).fold("y,a,b\n".to_owned(), |text, row| {
        let part = f64::from(row * 7919 % 10_000) / 10_000.0;
        text + &format!("{},{:.4},{:.4}\n", row % 2, 1000.1234 + part, 3.0 * part - 1.0)
    });
    let half = ColumnOptions { dtype: brisk_table::FeatureDType::F16, ..ColumnOptions::default() };
    check_imprecise(&text, half, &[("a", ColumnRole::Feature)]);
    check_imprecise(&text, ColumnOptions::default(), &[]);
}

#[test]
fn numbers_that_are_too_small_are_told() {
    let tiny = |text: &str| -> Vec<(String, ColumnRole, u64, f64)> {
        let (report, _) = table_of(text, ColumnOptions { weight: Some("w".into()), ..ColumnOptions::default() }).unwrap();
        let tiny = |warning| match warning {
            ImportWarning::Tiny { column, role, n_values, first } => Some((column, role, n_values, first)),
            _ => None,
        };
        report.warnings.into_iter().filter_map(tiny).collect()
    };
    let of = |column: &str, role| vec![(column.to_owned(), role, 2, 1e-50)];
    assert_eq!(tiny("y,a,w\n0,1e-50,1\n1,2e-50,1\n"), of("a", ColumnRole::Feature));
    assert_eq!(tiny("y,a,w\n1e-50,1,1\n2e-50,2,1\n"), of("y", ColumnRole::Label));
    assert_eq!(tiny("y,a,w\n0,1,1e-50\n1,2,2e-50\n"), of("w", ColumnRole::Weight));
    // Beside larger ones they are 0 all the same.
    assert_eq!(tiny("y,a,w\n0,1e-50,1e-50\n1,2,3\n"), []);
    assert_eq!(tiny("y,a,w\n0,0.0,0e-99\n1,0,1\n"), []);
}

/// Whether the first row is said to look like names.
#[track_caller]
fn check_names(text: &str, header: Header, expected: bool) {
    let (folder, dest) = crate::scratch();
    let source = folder.path().join("rows.csv");
    fs::write(&source, text).unwrap();
    let report = import(&source, &dest, &CsvOptions { header, ..CsvOptions::default() }).unwrap();
    let is_told = report.warnings.iter().any(|warning| matches!(warning, ImportWarning::NumbersAsNames { line: 1, .. }));
    assert_eq!(is_told, expected, "{text}: {:?}", report.warnings);
}

#[test]
fn a_first_row_of_numbers_that_looks_like_names_is_told() {
    let years = "2019,2020,2021\n0.5,0.25,1\n3,3,3\n9.5,8,7\n";
    check_names(years, Header::Auto, true);
    check_names(years, Header::Absent, false);
    check_names(years, Header::Present, false);
    check_names("0,1,2\n4,4,4\n9,8,7\n3,2,1\n\n", Header::Auto, true);
    // A row like others.
    check_names("1,2,3\n4,5,6\n7,8,9\n3,2,1\n", Header::Auto, false);
    check_names("1,3,2\n4,4,4\n9,8,7\n3,2,1\n", Header::Auto, false);
    check_names("1.5,2,3\n4,4,4\n9,8,7\n3,2,1\n", Header::Auto, false);
    check_names("1,2\n4,3\n9,8\n3,2\n", Header::Auto, false);
}

#[test]
fn numbers_are_found_with_their_lines() {
    let (folder, _) = crate::scratch();
    let source = folder.path().join("rows.csv");
    fs::write(&source, "name,a\n\"two\nlines\",7\n\nb,-999\nc,x\nd,-9.99e2\n").unwrap();
    let find = |column: &str| find_numbers(&source, &CsvOptions::default(), &column.into(), |number| number == -999.0);
    let found = find("a").unwrap();
    let cells: Vec<_> = found.first.iter().map(|cell| (cell.line, cell.text.as_str())).collect();
    assert_eq!((found.n, &cells[..]), (2, &[(5, "-999"), (7, "-9.99e2")][..]));
    assert!(matches!(crate::reason(find("b")), Some(SourceError::NoColumn { .. })));
}

/// Checks which column is the label.
#[track_caller]
fn check_word(word: &str, expected: &str) {
    let columns = ColumnOptions { labels: vec![ColumnRef::Word(word.into())], ..ColumnOptions::default() };
    assert_eq!(import_with_header(columns).unwrap().1.label_names(), [expected], "{word}");
}

fn import_with_header(columns: ColumnOptions) -> Result<(ImportReport, Table), Error> {
    let (folder, dest) = crate::scratch();
    let source = folder.path().join("rows.csv");
    fs::write(&source, "a,3,2,index:0\n1,2,3,4\n").unwrap();
    let options = CsvOptions { columns, header: Header::Present, ..CsvOptions::default() };
    Ok((import(&source, &dest, &options)?, Table::open(&dest).unwrap()))
}

#[test]
fn a_word_is_a_name_before_it_is_an_index() {
    check_word("2", "2");
    check_word("1", "3");
    check_word("name:3", "3");
    check_word("index:3", "index:0");
    check_word("index:0", "index:0");
    let columns = ColumnOptions { labels: vec![ColumnRef::Word("3".into())], ..ColumnOptions::default() };
    match crate::reason(import_with_header(columns)) {
        Some(SourceError::AmbiguousColumn { word, named, indexed, .. }) => {
            assert_eq!((&*word, named, &*indexed), ("3", 1, "index:0"));
        }
        other => panic!("{other:?}"),
    }
    for word in ["4", "name:b", "index:4", "index:x"] {
        let columns = ColumnOptions { drop: vec![ColumnRef::Word(word.into())], ..ColumnOptions::default() };
        assert!(matches!(crate::reason(import_with_header(columns)), Some(SourceError::NoColumn { .. })), "{word}");
    }
}

#[test]
fn a_first_row_of_text_that_is_read_as_names_is_doubted() {
    let text = "red,b,yes\nblue,a,no\nred,a,no\nblue,b,yes\n";
    let classes = ColumnOptions { label_kind: LabelKind::Classes, categorical: Categorical::Auto, ..labelled("yes") };
    let (report, _) = table_of(text, classes.clone()).unwrap();
    assert_eq!(report.warnings, [ImportWarning::ValuesAsNames { cells: "red,b,yes".into() }]);
    // Names of which one is no value, and columns with numbers.
    let (report, _) = table_of("red,b,yes\nblue,a,no\nblue,a,no\nblue,b,yes\n", classes.clone()).unwrap();
    assert_eq!(report.warnings, []);
    let (report, _) = table_of("red,b,yes\nred,1,no\nblue,2,yes\nred,1,yes\n", classes).unwrap();
    assert_eq!(report.warnings, []);
}

#[test]
fn other_formats_of_text_are_named() {
    for (text, what) in [
        ("{\"a\": 1, \"y\": 0}\n{\"a\": 2, \"y\": 1}\n", "JSON"),
        ("[\n  {\"a\": 1, \"y\": 0}\n]\n", "JSON"),
        ("<!DOCTYPE html>\n<html><table>\n", "an HTML page"),
        ("\u{feff}<table border=\"1\">\n<tr><th>y</th></tr>\n", "an HTML page"),
        ("<?xml version=\"1.0\"?>\n<rows/>\n", "XML"),
        ("@RELATION rows\n@ATTRIBUTE y numeric\n@DATA\n1\n", "an ARFF file"),
    ] {
        let error = table_of(text, ColumnOptions::default()).expect_err("it is no CSV").to_string();
        assert!(error.contains(what) && error.contains("CSV"), "{error}");
    }
}

#[test]
fn columns_and_weights_that_say_nothing_are_named() {
    let text = (0..50).fold("y,a,b,c,w\n".to_owned(), |text, row| text + &format!("{},{row}.5,7,,0\n", row % 2));
    let columns = ColumnOptions { weight: Some("w".into()), missing: Missing::Keep, ..labelled("y") };
    let (report, _) = table_of(&text, columns).unwrap();
    assert_eq!(report.label_names, ["y"]);
    let one = |name: &str| vec![name.to_owned()];
    let zero = ImportWarning::ZeroWeights { column: "w".into() };
    let expected = [zero, ImportWarning::SameValue { columns: one("b") }, ImportWarning::NoValue { columns: one("c") }];
    assert!(expected.iter().all(|warning| report.warnings.contains(warning)), "{:?}", report.warnings);
    assert!(expected[1].to_string().starts_with("column `b` has the same value in all rows; "), "{}", expected[1]);
}
