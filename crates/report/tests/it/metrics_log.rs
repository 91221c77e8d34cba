use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use brisk_report::{Error, MetricsLog};
use tempfile::TempDir;

/// A folder, and the two files of a log in it.
fn files() -> (TempDir, [PathBuf; 2]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let files = ["metrics.csv", "metrics.json"].map(|name| folder.path().join(name));
    (folder, files)
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).expect("readable")
}

#[track_caller]
fn check(value: f64, in_csv: &str, in_json: &str) {
    let (_folder, [csv, json]) = files();
    let mut log = MetricsLog::create(&csv, &json).expect("a log");
    log.append(&[("x", value)]).expect("a row");
    assert_eq!((text(&csv), text(&json)), (format!("x\n{in_csv}\n"), format!("{{\"x\":{in_json}}}\n")), "{value}");
    if value.is_finite() {
        let (read, read_json): (f64, serde_json::Value) =
            (in_csv.parse().expect("a number"), serde_json::from_str(in_json).expect("JSON"));
        assert_eq!(read_json.as_f64(), Some(read), "both say the same");
        assert!(read == value || read as f32 == value as f32, "{read} is {value}, as f64 or f32");
    }
}

#[test]
fn numbers_are_short() {
    check(3.0, "3", "3");
    check(0.0, "0", "0");
    check(0.1, "0.1", "0.1");
    check(1.0 / 3.0, "0.3333333333333333", "0.3333333333333333");
    check(f64::from(0.1_f32), "0.1", "0.1");
    check(f64::from(0.412_345_6_f32), "0.4123456", "0.4123456");
    check(16_777_218.0, "16777218", "16777218");
    check(10_500_000.0, "10500000", "10500000");
    check(-2.5e-7, "-2.5e-7", "-2.5e-7");
    check(1e300, "1e300", "1e300");
    check(f64::NAN, "nan", "null");
    check(f64::NEG_INFINITY, "-inf", "null");
}

#[test]
fn each_row_is_there_at_once() {
    let (_folder, [csv, json]) = files();
    let mut log = MetricsLog::create(&csv, &json).expect("a log");
    log.append(&[("epoch", 0.0), ("val \"auc\"", 0.75)]).expect_err("a quote in a name");
    log.append(&[("epoch", 0.0), ("auc", 0.75)]).expect("a row");
    assert_eq!(text(&csv), "epoch,auc\n0,0.75\n", "after one row");
    log.append(&[("epoch", 1.0), ("auc", 0.8)]).expect("a row");
    assert_eq!(text(&csv), "epoch,auc\n0,0.75\n1,0.8\n", "after two");
    assert_eq!(text(&json), "{\"epoch\":0,\"auc\":0.75}\n{\"epoch\":1,\"auc\":0.8}\n", "after two");
}

#[test]
fn the_first_row_fixes_the_columns() {
    let (_folder, [csv, json]) = files();
    let mut log = MetricsLog::create(&csv, &json).expect("a log");
    for name in ["", "a,b", "a\"b", "a\nb"] {
        let error = log.append(&[(name, 1.0)]);
        assert!(matches!(error, Err(Error::ColumnName { .. })), "{name:?}: {error:?}");
    }
    let error = log.append(&[("a", 1.0), ("a", 2.0)]);
    assert!(matches!(error, Err(Error::ColumnName { .. })), "{error:?}");
    log.append(&[("a", 1.0), ("b", 2.0)]).expect("a row");
    for row in [&[("b", 2.0), ("a", 1.0)][..], &[("a", 1.0)], &[("a", 1.0), ("b", 2.0), ("c", 3.0)]] {
        let error = log.append(row);
        assert!(matches!(error, Err(Error::LogColumns { .. })), "{row:?}: {error:?}");
    }
    assert_eq!(text(&csv), "a,b\n1,2\n", "only the good row");
}

#[test]
fn a_log_is_not_overwritten() {
    let (_folder, [csv, json]) = files();
    MetricsLog::create(&csv, &json).expect("a log").append(&[("a", 1.0)]).expect("a row");
    let error = MetricsLog::create(&csv, &json).expect_err("a second log");
    assert!(matches!(error, Error::LogExists { .. }) && error.to_string().contains("metrics.csv"), "{error}");
    assert_eq!(text(&csv), "a\n1\n", "the first one");
}

#[test]
fn a_log_that_never_got_a_row_is_started_again() {
    let (_folder, [csv, json]) = files();
    drop(MetricsLog::create(&csv, &json).expect("a log"));
    MetricsLog::create(&csv, &json).expect("the same log").append(&[("a", 1.0)]).expect("a row");
    assert_eq!(text(&csv), "a\n1\n", "one header");
}

#[test]
fn a_refused_resume_changes_neither_file() {
    let (_folder, [csv, json]) = files();
    let mut log = MetricsLog::create(&csv, &json).expect("a log");
    [1.0, 2.0, 3.0].iter().for_each(|&a| log.append(&[("a", a)]).expect("a row"));
    std::fs::write(&json, "{\"a\":1}\n").expect("writable");
    let error = MetricsLog::resume(&csv, &json, 2);
    assert!(matches!(error, Err(Error::ShortLog { found: 1, expected: 2, .. })), "{error:?}");
    assert_eq!(text(&csv), "a\n1\n2\n3\n", "the longer one");

    // On Windows, an open file keeps its name until it is closed.
    drop(log);
    std::fs::remove_file(&csv).expect("the file exists");
    let error = MetricsLog::resume(&csv, &json, 1);
    assert!(matches!(error, Err(Error::ShortLog { found: 0, expected: 1, .. })), "{error:?}");
    assert!(!csv.exists(), "a missing log is not created");
}

#[test]
fn resuming_drops_what_the_checkpoint_has_not_seen() {
    let (_folder, [csv, json]) = files();
    let mut log = MetricsLog::create(&csv, &json).expect("a log");
    for epoch in 0..4 {
        log.append(&[("epoch", f64::from(epoch)), ("auc", 0.5)]).expect("a row");
    }
    // The crash came in the middle of a row.
    let mut file = OpenOptions::new().append(true).open(&csv).expect("a log");
    file.write_all(b"4,0.").expect("writable");
    drop(log);

    let mut log = MetricsLog::resume(&csv, &json, 2).expect("the log");
    assert!(matches!(log.append(&[("loss", 1.0)]), Err(Error::LogColumns { .. })), "columns are still fixed");
    log.append(&[("epoch", 2.0), ("auc", 0.75)]).expect("a row");
    assert_eq!(text(&csv), "epoch,auc\n0,0.5\n1,0.5\n2,0.75\n", "CSV");
    assert_eq!(text(&json).lines().count(), 3, "JSON");
    assert!(text(&json).ends_with("{\"epoch\":2,\"auc\":0.75}\n"), "JSON");

    let error = MetricsLog::resume(&csv, &json, 4);
    assert!(matches!(error, Err(Error::ShortLog { found: 3, expected: 4, .. })), "{error:?}");
    let mut log = MetricsLog::resume(&csv, &json, 0).expect("the log");
    log.append(&[("other", 1.0)]).expect("a row");
    assert_eq!(text(&csv), "other\n1\n", "from the beginning");
}

#[test]
fn files_of_another_kind_stay_as_they_are() {
    #[track_caller]
    fn check(in_csv: &str, in_json: Option<&str>, n_rows: usize) {
        let (_folder, [csv, json]) = files();
        fs::write(&csv, in_csv).expect("writable");
        in_json.map_or(Ok(()), |text| fs::write(&json, text)).expect("writable");
        for opened in [MetricsLog::create(&csv, &json), MetricsLog::resume(&csv, &json, n_rows)] {
            let error = opened.expect_err("no log");
            assert!(matches!(error, Error::NotALog { .. }), "{in_csv:?}: {error}");
        }
        assert_eq!((text(&csv), json.exists()), (in_csv.to_owned(), in_json.is_some()), "as before");
    }
    check("important\n", None, 0);
    check("important", None, 0);
    check("important", Some(""), 0);
    check("name,age\nann,3\nbob,4\n", Some("{\"name\":1,\"age\":3}\n"), 1);
    check("x,y\n1,2\n", None, 0);
    check("x,y\n1,2\n", Some("{\"a\":1}\n"), 1);
    check("x,y\n1,2\n", Some("[1,2]\n"), 1);
    check("x,y\n1,2,3\n", Some("{\"x\":1,\"y\":2}\n"), 1);
    check("", Some("{\"a\":1}\n"), 0);

    let (_folder, [csv, json]) = files();
    fs::write(&csv, b"\xff\n").expect("writable");
    let error = MetricsLog::resume(&csv, &json, 0).expect_err("not even text");
    assert!(matches!(error, Error::NotALog { .. }), "{error}");
}

/// The process was killed between the two writes of its first row, or in the second.
#[test]
fn a_row_that_is_only_in_one_file_is_dropped() {
    for cut in ["", "{\"epo"] {
        let (_folder, [csv, json]) = files();
        fs::write(&csv, "epoch,auc\n0,nan\n").expect("writable");
        fs::write(&json, cut).expect("writable");
        let error = MetricsLog::create(&csv, &json).expect_err("a log");
        assert!(matches!(error, Error::LogExists { .. }), "{error}");
        drop(MetricsLog::resume(&csv, &json, 0).expect("the log"));
        assert_eq!((text(&csv), text(&json)), (String::new(), String::new()), "from the beginning");
    }
}

#[test]
fn one_file_cannot_be_both() {
    let (folder, [csv, _]) = files();
    let same = folder.path().join(".").join("metrics.csv");
    for opened in [MetricsLog::create(&csv, &same), MetricsLog::resume(&csv, &same, 0)] {
        let error = opened.expect_err("one path");
        assert!(matches!(error, Error::SameFile { .. }), "{error}");
    }
    assert!(!csv.exists(), "nothing is created");
}

#[test]
fn a_row_has_columns() {
    let (_folder, [csv, json]) = files();
    let mut log = MetricsLog::create(&csv, &json).expect("a log");
    let error = log.append(&[]).expect_err("no columns");
    assert!(matches!(error, Error::NoColumns { .. }), "{error}");
    log.append(&[("a", 1.0)]).expect("a row");
    assert_eq!(text(&csv), "a\n1\n", "the header comes first");
}
