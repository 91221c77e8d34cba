//! How messages show names and values that come from files.

use std::fs;
use std::path::Path;

use brisk_table::Table;

/// Writes a safetensors file: its length, its header and its data.
fn safetensors(path: &Path, header: &str, data: &[u8]) {
    let padding = " ".repeat(header.len().next_multiple_of(8) - header.len());
    let n_bytes = (header.len() + padding.len()) as u64;
    fs::write(path, [&n_bytes.to_le_bytes(), header.as_bytes(), padding.as_bytes(), data].concat()).unwrap();
}

#[track_caller]
fn check_printable(message: &str, shown: &str) {
    assert!(message.contains(shown), "`{message}` does not say `{shown}`");
    assert!(!message.contains(char::is_control), "{message:?} has control characters");
}

#[test]
fn many_names_are_not_all_listed() {
    let (_folder, path) = crate::scratch();
    let tensor = |i: usize| format!(r#""layer.{i}":{{"dtype":"U8","shape":[1],"data_offsets":[{i},{}]}}"#, i + 1);
    let tensors: Vec<String> = (0..300_000).map(tensor).collect();
    safetensors(&path, &format!("{{{}}}", tensors.join(",")), &vec![0; 300_000]);
    let message = Table::open(&path).unwrap_err().to_string();
    assert!(message.contains("there is no tensor `features`") && message.contains("and 299990 more]"), "{message:.2000}");
    assert!(message.len() < 2000, "the message has {} bytes", message.len());
}

#[test]
fn a_long_name_is_cut() {
    let (_folder, path) = crate::scratch();
    let name = "x".repeat(1 << 20);
    safetensors(&path, &format!(r#"{{"{name}":{{"dtype":"Q4","shape":[1],"data_offsets":[0,1]}}}}"#), &[0]);
    let message = Table::open(&path).unwrap_err().to_string();
    assert!(message.contains("…` has dtype `Q4`"), "{message:.5000}");
    safetensors(&path, &format!(r#"{{"features":{{"{name}":1}}}}"#), &[0]);
    let message = Table::open(&path).unwrap_err().to_string();
    assert!(message.len() < 10_000, "the message has {} bytes", message.len());
}

#[test]
fn names_of_tensors_are_escaped() {
    let (_folder, path) = crate::scratch();
    safetensors(&path, r#"{"\u001b[31mred\n":{"dtype":"Q4","shape":[1],"data_offsets":[0,1]}}"#, &[0]);
    check_printable(&Table::open(&path).unwrap_err().to_string(), r"tensor `\u{1b}[31mred\n` has dtype");
    safetensors(&path, r#"{"\u001b[31mred\n":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#, &[0]);
    check_printable(&Table::open(&path).unwrap_err().to_string(), r#"this file has ["\u{1b}[31mred\n"]"#);
}

#[test]
#[cfg(feature = "csv")]
fn names_of_columns_and_cells_are_escaped() {
    use brisk_table::{ColumnOptions, ColumnRef, CsvOptions, import};

    let (folder, dest) = crate::scratch();
    let rows = folder.path().join("rows.csv");
    let check = |text: &str, label: &str, shown: &str| {
        fs::write(&rows, text).unwrap();
        let columns = ColumnOptions { labels: vec![ColumnRef::from(label)], ..ColumnOptions::default() };
        let error = import(&rows, &dest, &CsvOptions { columns, ..CsvOptions::default() }).unwrap_err();
        check_printable(&error.to_string(), shown);
    };
    check("y,\u{1b}[31mred\n1,two\n", "y", r"column 2 (`\u{1b}[31mred`): found");
    check("y,a\n1,\u{1b}[31mred\n", "y", r#"found "\u{1b}[31mred""#);
    check("y,\u{1b}[31mred\n1,2\n", "z", r#"the columns are ["y", "\u{1b}[31mred"]"#);
    check("y,a\n1,2\n", "\u{1b}[31mred", r"there is no column `\u{1b}[31mred`");
    check("y,\u{1b}[31mred,\u{1b}[31mred\n1,2,3\n", "y", r"are both named `\u{1b}[31mred`");
}

#[test]
#[cfg(unix)]
fn names_of_files_are_escaped() {
    use std::os::unix::ffi::OsStrExt;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("\u{1b}[31mred\n.safetensors");
    check_printable(&Table::open(&path).unwrap_err().to_string(), r"\u{1b}[31mred\n.safetensors: cannot open");
    let path = folder.path().join(std::ffi::OsStr::from_bytes(b"\xff"));
    check_printable(&Table::open(&path).unwrap_err().to_string(), "\u{fffd}: cannot open");
}

/// A vocabulary of a hundred thousand words takes several megabytes; the limit is that of the safetensors library.
#[test]
fn a_header_of_64_mib_is_read() {
    let (_folder, path) = crate::scratch();
    let header = |text: &str| {
        format!(
            r#"{{"__metadata__":{{"text":"{text}"}},"features":{{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]}},"labels":{{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}}}"#
        )
    };
    let text = "x".repeat((64 << 20) - header("").len());
    safetensors(&path, &header(&text), &[0; 8]);
    drop(text);
    assert_eq!(fs::metadata(&path).unwrap().len(), 8 + (64 << 20) + 8);
    assert_eq!(Table::open(&path).unwrap().n_rows(), 1);
    #[cfg(feature = "loader")]
    assert_eq!(brisk_table::StreamedTable::open(&path, &brisk_table::ReadAhead::new(0)).unwrap().n_rows(), 1);
}
