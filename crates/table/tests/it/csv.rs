//! Importing text: what is read, what is refused, and the error messages.

use std::fs::{self, File};
use std::io::Write;

use brisk_table::{
    BadRows, ColumnOptions, CsvOptions, Decimal, Delimiter, Header, Imported, LabelKind, Missing, Progress, SourceError, import,
    import_if_changed, import_with_progress,
};

use crate::Import;

/// The features and labels, row by row.
#[track_caller]
fn check(text: impl AsRef<[u8]>, options: CsvOptions, features: &[f32], labels: &[f32]) {
    let (_, table) = Import::of("rows.csv", text).run(&options).unwrap();
    let bits =
        |values: &[f32]| values.iter().map(|x| if x.is_nan() { f32::NAN.to_bits() } else { x.to_bits() }).collect::<Vec<_>>();
    let found = table.rows::<f32>(0..table.n_rows()).unwrap();
    assert_eq!(bits(found), bits(features), "features {found:?}");
    assert_eq!(table.labels::<f32>().unwrap(), labels);
}

/// The error contains all these words.
#[track_caller]
fn refuse(text: impl AsRef<[u8]>, options: CsvOptions, says: &[&str]) {
    let message = Import::of("rows.csv", text).run(&options).expect_err("it was imported").to_string();
    for part in says.iter().chain(&["rows.csv"]) {
        assert!(message.contains(part), "`{message}` does not say `{part}`");
    }
}

fn auto() -> CsvOptions {
    CsvOptions::default()
}

fn columns() -> ColumnOptions {
    ColumnOptions::default()
}

fn of(columns: ColumnOptions) -> CsvOptions {
    CsvOptions { columns, ..auto() }
}

#[test]
fn forms_of_the_same_rows() {
    let (features, labels) = ([0.5, -2.0, 3e-5, 4.25], [1.0, 0.0]);
    for text in [
        "y,a,b\n1,0.5,-2\n0,3e-5,4.25\n",
        "y,a,b\n1,0.5,-2\n0,3e-5,4.25",
        "y,a,b\r\n1,0.5,-2\r\n0,3e-5,4.25\r\n",
        "\u{feff}y,a,b\n1,0.5,-2\n0,3e-5,4.25\n",
        "1,0.5,-2\n0,3e-5,4.25\n",
        "\u{feff}1,0.5,-2\r\n0,3e-5,4.25",
        "y\ta\tb\n1\t0.5\t-2\n0\t3e-5\t4.25\n",
        "y;a;b\n1;0.5;-2\n0;3e-5;4.25\n",
        "y, a, b\n1, 0.5, -2\n0,  3e-5 ,4.25 \n",
        "\n\ny,a,b\n\n1,0.5,-2\n\r\n0,3e-5,4.25\n\n\n",
        "\"y\",\"a\",\"b\"\n\"1\",\"0.5\",\"-2\"\n0,\"3e-5\",4.25\n",
        "y,a,\"b\nand, c\"\n1,0.5,-2\n0,3e-5,\"4.25\"\r\n",
        "y,a,b\n+1,.5,-2.\n0.0,0.00003,4.250000000000000000000000000000000000001\n",
        "y,a,b\n1,5.000000000000000000e-01,-2.0e+00\n0,3.000000000000000076e-05,4.25E0\n",
    ] {
        check(text, auto(), &features, &labels);
    }
    let comma = CsvOptions { decimal: Decimal::Comma, ..auto() };
    check("y;a;b\n1;0,5;-2\n0;3e-5;4,25\n", comma, &features, &labels);
    let bar = CsvOptions { delimiter: Delimiter::Byte(b'|'), ..auto() };
    check("y|a|b\n1|0.5|-2\n0|3e-5|4.25\n", bar, &features, &labels);
}

#[test]
fn columns_have_roles() {
    let text = "id,a,y,w,b\nx1,1,0,0.5,2\n\"x,2\",3,1,2.5,4\n";
    let options = of(ColumnOptions { labels: vec!["y".into()], weight: Some(3.into()), drop: vec!["id".into()], ..columns() });
    check(text, options.clone(), &[1.0, 2.0, 3.0, 4.0], &[0.0, 1.0]);
    let (report, table) = Import::of("rows.csv", text).run(&options).unwrap();
    assert_eq!((table.weights().unwrap(), table.label_names()), (&[0.5, 2.5][..], &["y".to_owned()][..]));
    assert_eq!(report.column_names, ["a", "b"]);
    assert_eq!((report.statistics[0].mean, report.statistics[0].std), (2.0, 1.0));

    let last = CsvOptions { header: Header::Absent, ..of(ColumnOptions { labels: vec![2.into()], ..columns() }) };
    check("1,2,3\n4,5,6\n", last, &[1.0, 2.0, 4.0, 5.0], &[3.0, 6.0]);
    let named_numbers = CsvOptions { header: Header::Present, ..auto() };
    check("0,1,2\n4,5,6\n", named_numbers, &[5.0, 6.0], &[4.0]);

    refuse(text, of(ColumnOptions { labels: vec!["z".into()], ..columns() }), &["no column `z` for the label", "\"id\", \"a\""]);
    refuse(text, of(ColumnOptions { labels: vec![5.into()], ..columns() }), &["no column at index 5"]);
    refuse(text, of(ColumnOptions { weight: Some(0.into()), ..columns() }), &["both label and weight"]);
    refuse(text, of(ColumnOptions { drop: vec![0.into()], ..columns() }), &["`id` is both dropped"]);
    refuse("a\n1\n2\n", auto(), &["no column is left for features", "delimiter"]);
    refuse("y,a,a\n1,2,3\n", auto(), &["columns 2 and 3 are both named `a`"]);
    refuse("y,1,2\n1,2,3\n", auto(), &["line 1", "may be a header or a row", "Header::Present"]);
    refuse(b"y,\xff\xfe\n1,2\n", auto(), &["line 1, byte 0: the name of column 2", "is not UTF-8"]);
    refuse("y,a\n1,2\n", CsvOptions { delimiter: Delimiter::Byte(b'.'), ..auto() }, &["pass another"]);
}

#[test]
fn a_bad_cell_is_placed_and_quoted() {
    let at = |says| ["line 3, column 2 (`a`)", says];
    refuse(
        "y,a,b\n1,2,3\n1,two,3\n",
        auto(),
        &at("found \"two\", expected a number; correct it, name the column in `ColumnOptions::drop`"),
    );
    refuse(
        "y,a,b\n1,2,3\n1,,3\n",
        auto(),
        &at("found \"\", expected a number, this is a missing value; pass `Missing::Keep` to keep it"),
    );
    refuse("y,a,b\n1,2,3\n1,NaN,3\n", auto(), &at("Missing::Keep"));
    refuse("y,a,b\n1,2,3\n1,inf,3\n", auto(), &at("found \"inf\", expected a finite number"));
    refuse("y,a,b\n1,2,3\n1,1e39,3\n", auto(), &at("within the range of f32"));
    refuse("y,a,b\n1,2,3\n1,1.2.3,3\n", auto(), &at("found \"1.2.3\""));
    refuse("y,a,b\n1,2,3\n1,\"1\"2,3\n", auto(), &at("\\\"1\\\"2"));
    refuse("y,a,b\n1,2,3\n1,--1,3\n", auto(), &at("\"--1\""));
    let long = format!("y,a,b\n1,2,3\n1,{},3\n", "z".repeat(500));
    refuse(long, auto(), &at("zzz…\""));
    refuse("y,a,b\n1,2,3\n,2,3\n", auto(), &["line 3, column 1 (`y`)", "a label, which is a finite number"]);
    refuse(
        "y,a,b\n1,2,3\n",
        CsvOptions { header: Header::Absent, ..of(ColumnOptions { weight: Some(1.into()), ..columns() }) },
        &["line 1, column 1"],
    );
    refuse("y,w,b\n1,nan,3\n", of(ColumnOptions { weight: Some(1.into()), ..columns() }), &["a finite number"]);
    refuse("y,w,b\n1,-1,3\n", of(ColumnOptions { weight: Some(1.into()), ..columns() }), &["line 2", "at least 0"]);
    refuse("1,2\n3,4\n\n5,x\n", auto(), &["line 4, column 2 (`column_1`)"]);
    refuse("y,a\n1,\"2\n\n\"\n3,x\n", auto(), &["line 5, column 2"]);
    refuse("\"y\nz\",a\n1,x\n", auto(), &["line 3, column 2"]);
    let binary = of(ColumnOptions { label_kind: LabelKind::Binary, ..columns() });
    check("y,a\n1,2\n0.0,3\n", binary.clone(), &[2.0, 3.0], &[1.0, 0.0]);
    refuse("y,a\n1,2\n2,3\n", binary, &["line 3, column 1 (`y`)", "found \"2\", expected a label 0 or 1", "LabelKind::Number"]);
}

#[test]
fn ragged_rows_and_open_quotes() {
    refuse("y,a,b\n1,2,3\n1,2\n", auto(), &["the header has 3 columns, line 3 has 2"]);
    refuse("y,a,b\n1,2,3\n1,2,3,4,5\n", auto(), &["the header has 3 columns, line 3 has 5"]);
    refuse("y,a,b\n1,2,3\n1,2,\"3\n4,5,6\n", auto(), &["line 3, byte 16: a quote is opened", "never closed"]);
    refuse("y,a\n1,2\n1 2\n", auto(), &["the header has 2 columns, line 3 has 1"]);
}

/// The line and the byte lead an editor and `tail -c` to the same place, in the first chunk and in a later one.
#[test]
fn a_bad_cell_has_its_byte() {
    for n_rows in [3, 400_000] {
        let text = "\u{feff}y,a\n".to_owned() + &"1,\"2\n\"\n".repeat(n_rows) + "0,x y\n3,4\n";
        let files = Import::of("rows.csv", &text);
        match crate::reason(import(&files.source, &files.dest, &auto())) {
            Some(SourceError::Cell { line, byte, .. }) => {
                assert_eq!(line, 2 + 2 * n_rows as u64);
                assert!(text[byte as usize..].starts_with("x y"), "byte {byte} is elsewhere");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn missing_values_may_be_kept() {
    let keep = of(ColumnOptions { missing: Missing::Keep, ..columns() });
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let text = "y,a,b\n1,,nan\n0,NA,?\n1,n/a,NULL\n0,None,-inf\n1,2,\n";
    check(text, keep.clone(), &[nan, nan, nan, nan, nan, nan, nan, -inf, 2.0, nan], &[1.0, 0.0, 1.0, 0.0, 1.0]);
    let (report, _) = Import::of("rows.csv", text).run(&keep).unwrap();
    assert_eq!((report.statistics[0].count, report.statistics[0].mean), (1, 2.0));
    refuse("y,a\n,1\n", keep.clone(), &["a label"]);
    refuse("y,a\n1,1e40\n", keep, &["range of f32"]);
}

#[test]
fn bad_rows_may_be_skipped_and_are_counted() {
    let skip = of(ColumnOptions { bad_rows: BadRows::Skip, ..columns() });
    let text = "y,a\n1,2\n1,x\n1\n2,3,4\n,5\n3,\"a\nb\"\n0,6\n";
    check(text, skip.clone(), &[2.0, 6.0], &[1.0, 0.0]);
    let (report, _) = Import::of("rows.csv", text).run(&skip).unwrap();
    let messages: Vec<String> = report.first_skipped.iter().map(ToString::to_string).collect();
    assert_eq!((report.n_skipped, messages.len()), (5, 5));
    for (message, line) in messages.iter().zip(["line 3", "line 4", "line 5", "line 6", "line 7"]) {
        assert!(message.contains(line), "{message}");
    }
    let many = format!("y,a\n1,2\n{}", "x,y\n".repeat(400_000));
    let (report, _) = Import::of("rows.csv", many).run(&skip).unwrap();
    assert_eq!((report.n_rows, report.n_skipped, report.first_skipped.len()), (1, 400_000, 10));
    refuse("y,a\nx,y\n", CsvOptions { header: Header::Present, ..skip }, &["only rows that were skipped"]);
}

#[test]
fn files_that_are_no_rows() {
    refuse("", auto(), &["an empty file, expected rows of numbers"]);
    refuse("\u{feff}\n\r\n\n", auto(), &["only blank lines"]);
    refuse("y,a,b\n", auto(), &["a header and no rows"]);
    refuse("y,a,b", auto(), &["a header and no rows"]);
    refuse("PAR1....", auto(), &["a Parquet file"]);
    refuse(b"\xff\xfey\0,\0", auto(), &["UTF-16"]);
    let utf16 =
        |swap: bool| "y,a,b,c\n1,2,3,4\n".bytes().flat_map(|byte| if swap { [0, byte] } else { [byte, 0] }).collect::<Vec<u8>>();
    refuse(utf16(false), auto(), &["UTF-16"]);
    refuse(utf16(true), auto(), &["UTF-16"]);
    refuse(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", auto(), &["an Excel workbook"]);
    let files = Import::of("rows.csv", "");
    let missing = import(files.source.with_file_name("none.csv"), &files.dest, &auto()).unwrap_err().to_string();
    assert!(missing.contains("none.csv: cannot open"), "{missing}");
    let folder = import(files.source.parent().unwrap(), &files.dest, &auto()).unwrap_err().to_string();
    assert!(folder.contains("is a folder, expected a file"), "{folder}");
}

#[test]
fn lines_above_a_table_are_named() {
    let table = "y,a,b,c\n1,2,3,4\n0,5,6,7\n";
    for (above, line) in [("Sales of 2024\n", "line 2 "), ("# by shop\n# in USD\n\n", "line 4 "), ("Sales,,,\n", "line 2 ")] {
        refuse(format!("{above}{table}"), auto(), &["line 1", line, "4 cells", "`CsvOptions::skip_lines`"]);
    }
    let skip = CsvOptions { skip_lines: 2, ..auto() };
    check(format!("# by shop\n# in USD\n{table}"), skip, &[2.0, 3.0, 4.0, 5.0, 6.0, 7.0], &[1.0, 0.0]);
    check("Sales,,,\n1,2,3,4\n", CsvOptions { header: Header::Present, ..auto() }, &[2.0, 3.0, 4.0], &[1.0]);
    for above in ["sep=;\n", "\u{feff}SEP=;\r\n"] {
        check(format!("{above}y;a\n1;2\n0;5\n"), auto(), &[2.0, 5.0], &[1.0, 0.0]);
    }
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn gzip_is_unpacked_and_damage_is_an_error() {
    let text = numbers(30_000);
    let (_, plain) = Import::of("rows.csv", &text).run(&auto()).unwrap();
    let halves = text.as_bytes().split_at(text.len() / 2);
    let two_members = [gzip(halves.0), gzip(halves.1)].concat();
    for packed in [gzip(text.as_bytes()), two_members] {
        let (report, table) = Import::of("rows.csv", &packed).run(&auto()).unwrap();
        assert_eq!(report.n_rows, 30_000);
        assert_eq!(table.row_bytes(0..30_000).unwrap(), plain.row_bytes(0..30_000).unwrap());
        assert_eq!(table.statistics(), plain.statistics());
    }
    // `gzip -d` ignores zeros at the end, and warns about anything else there.
    for n_zeros in [1, 511, 300_000] {
        let padded = [gzip(text.as_bytes()), vec![0; n_zeros]].concat();
        let (_, table) = Import::of("rows.csv", &padded).run(&auto()).unwrap();
        assert_eq!(table.row_bytes(0..30_000).unwrap(), plain.row_bytes(0..30_000).unwrap());
    }
    let packed = gzip(text.as_bytes());
    let at = format!("ends before byte {}, where something else follows", packed.len());
    refuse([&packed[..], b"garbage"].concat(), auto(), &["cannot unpack", &at]);
    let at = format!("ends before byte {}, where something else follows", packed.len() + 512);
    refuse([&packed[..], &[0; 512], &packed].concat(), auto(), &["cannot unpack", &at]);

    refuse(&packed[..packed.len() / 2], auto(), &["cannot unpack (it is gzip, damaged or cut short)"]);
    refuse(&packed[..packed.len() - 4], auto(), &["cannot unpack"]);
    let mut damaged = packed;
    let at = damaged.len() - 6;
    damaged[at] ^= 0xff;
    refuse(&damaged, auto(), &["cannot unpack"]);
}

/// Rows with numbers of every length, some quoted, some with line feeds in them.
fn numbers(n_rows: usize) -> String {
    use std::fmt::Write;
    let mut text = String::from("y,a,b,c\n");
    for i in 0..n_rows {
        let x = (i as f32 * 0.377).sin();
        match i % 1000 {
            7 => write!(text, "{},\"{x}\n\",{},1e-3\r\n", i % 2, x * 1e6),
            _ => writeln!(text, "{},{x},{},{:.12e}", i % 2, x * 1e6, f64::from(x) / 3.0),
        }
        .unwrap();
    }
    text
}

#[test]
fn the_table_is_the_same_for_any_number_of_threads() {
    let files = Import::of("rows.csv", numbers(150_000));
    let tables: Vec<Vec<u8>> = [1, 2, 3, 16]
        .map(|n_threads| {
            let (report, _) = files.run(&CsvOptions { n_threads, ..auto() }).unwrap();
            assert_eq!(report.n_rows, 150_000);
            fs::remove_file(&files.dest).map(|()| report).unwrap();
            import(&files.source, &files.dest, &CsvOptions { n_threads, ..auto() }).unwrap();
            let bytes = fs::read(&files.dest).unwrap();
            fs::remove_file(&files.dest).unwrap();
            bytes
        })
        .into();
    assert!(tables.iter().all(|table| *table == tables[0]), "the bytes differ");
}

#[test]
fn every_cell_has_the_bits_of_std() {
    let text = numbers(20_000);
    let (_, table) = Import::of("rows.csv", &text).run(&auto()).unwrap();
    let plain = text.replace("\n\"", "").replace('"', "");
    let expected =
        plain.lines().skip(1).flat_map(|line| line.split(',').skip(1).map(|cell| cell.parse::<f32>().unwrap().to_bits()));
    assert!(table.rows::<f32>(0..20_000).unwrap().iter().map(|x| x.to_bits()).eq(expected));
}

#[test]
fn rows_longer_than_a_chunk() {
    let wide = (0..400_000).map(|i| (i % 97).to_string()).collect::<Vec<_>>().join(",");
    let text = format!("{wide}\n{wide}\n{wide}\n");
    let error = Import::of("rows.csv", &text).run(&auto()).unwrap_err().to_string();
    assert!(error.contains("no end within"), "{error}");
    let narrow_head = "1,2\n".repeat(10) + "3,\"" + &" ".repeat(3 << 20) + "4\"\n5,6\n";
    let (report, table) = Import::of("rows.csv", narrow_head).run(&auto()).unwrap();
    assert_eq!(report.n_rows, 12);
    assert_eq!(table.rows::<f32>(10..12).unwrap(), [4.0, 6.0]);
    let open = "1,2\n".repeat(10) + "3,\"" + &"1,2\n".repeat(1 << 20);
    refuse(open, auto(), &["line 11", "quote"]);
}

#[test]
fn the_first_bad_row_of_the_file_is_reported_by_any_number_of_threads() {
    let mut text = numbers(100_000);
    let middle = text[..text.len() / 2].rfind('\n').unwrap();
    let line = 2 + text[..middle].matches('\n').count();
    text.insert_str(middle + 1, "1,first bad,2,3\n");
    text.push_str("1,second bad,2,3\n");
    let says = [&format!("line {line}, column 2"), "first bad"].map(|s: &str| s.to_owned());
    for n_threads in [1, 2, 8] {
        refuse(&text, CsvOptions { n_threads, ..auto() }, &[&says[0], &says[1]]);
    }
}

#[test]
fn progress_ends_at_the_end() {
    let files = Import::of("rows.csv", numbers(100_000));
    let mut seen: Vec<Progress> = Vec::new();
    import_with_progress(&files.source, &files.dest, &auto(), |progress| seen.push(progress)).unwrap();
    assert!(seen.len() > 2 && seen.is_sorted_by_key(|progress| (progress.n_rows, progress.bytes_read)));
    let last = seen[seen.len() - 1];
    assert_eq!((last.bytes_read, last.n_rows), (last.total_bytes, 100_000));
}

#[test]
fn an_unchanged_source_is_not_imported_again() {
    let files = Import::of("rows.csv", "y,a\n1,2\n");
    let run = |options: &CsvOptions| import_if_changed(&files.source, &files.dest, options, |_| ()).unwrap();
    assert!(matches!(run(&auto()), Imported::Written(_)));
    assert!(matches!(run(&auto()), Imported::Unchanged));
    assert!(matches!(run(&CsvOptions { n_threads: 3, ..auto() }), Imported::Unchanged), "threads do not change the table");
    assert!(matches!(run(&of(ColumnOptions { labels: vec![1.into()], ..columns() })), Imported::Written(_)));
    File::options().append(true).open(&files.source).unwrap().write_all(b"3,4\n").unwrap();
    assert!(
        matches!(run(&of(ColumnOptions { labels: vec![1.into()], ..columns() })), Imported::Written(report) if report.n_rows == 2)
    );
    fs::write(&files.dest, "not a table").unwrap();
    assert!(matches!(run(&auto()), Imported::Written(_)));
}

/// The reader is far ahead when the first row turns out to be bad, and waits for a chunk that is not given back any more.
#[test]
fn an_early_error_ends_a_long_import() {
    let files = Import::of("rows.csv", format!("y,a\n1,two\n{}", "1,0.333333333\n".repeat(2 << 20)));
    let (ended, end) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let error = files.run(&CsvOptions { n_threads: 1, ..CsvOptions::default() }).unwrap_err();
        ended.send(error).unwrap();
    });
    let error = end.recv_timeout(std::time::Duration::from_secs(60)).expect("the import ends").to_string();
    assert!(error.contains("line 2, column 2 (`a`): found \"two\""), "{error}");
}

#[test]
fn a_header_that_is_shorter_than_the_rows() {
    let message = refused("sex,age\nMale,1,2\n");
    assert!(message.contains("the header has 2 columns, line 2 has 3"), "{message}");
    let message = refused("1,2\n3,x,4\n");
    assert!(message.contains("the first row has 2 columns, line 2 has 3"), "{message}");
}

#[test]
fn line_ends_of_old_systems_are_named() {
    for text in ["y,a\r1,2\r0,3\r", "y,a\r1,2"] {
        let message = refused(text);
        assert!(message.contains("carriage return"), "{message}");
    }
}

/// The message for a file that is refused.
#[track_caller]
fn refused(text: &str) -> String {
    let (folder, dest) = crate::scratch();
    let source = folder.path().join("rows.csv");
    fs::write(&source, text).unwrap();
    import(&source, &dest, &CsvOptions::default()).unwrap_err().to_string()
}
