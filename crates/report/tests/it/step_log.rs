use std::fs;
use std::path::Path;
use std::time::Duration;

use brisk_report::{BatchWait, Error, StepLog};

fn read(path: &Path) -> String {
    fs::read_to_string(path).expect("a log")
}

#[test]
fn both_formats_have_the_same_values() {
    let folder = tempfile::tempdir().expect("a folder");
    let [csv, json] = ["logs/batches.csv", "logs/batches.jsonl"].map(|name| folder.path().join(name));
    for path in [&csv, &json] {
        let mut log = StepLog::new(path).every(2);
        log.start(0).expect("a new file");
        let waits = [250, 1, 2_000_000].map(|us| Some(BatchWait { time: Duration::from_micros(us), rank: 3 }));
        log.append(0, 1, &[0.5, 0.25, f32::NAN], &[0.1, 0.2, 0.3], &waits).expect("written");
        log.append(3, 2, &[1.0, 2.0], &[0.4, 0.5], &[]).expect("written");
    }
    let lines = ["batch,epoch,loss,learning_rate,waited_s,waited_for", "0,1,0.5,0.1,0.00025,3", "2,1,NaN,0.3,2,3", "4,2,2,0.5,,"];
    assert_eq!(read(&csv).lines().collect::<Vec<_>>(), lines, "every second batch");
    let lines = [
        r#"{"batch":0,"epoch":1,"loss":0.5,"learning_rate":0.1,"waited_s":0.00025,"waited_for":3}"#,
        r#"{"batch":2,"epoch":1,"loss":null,"learning_rate":0.3,"waited_s":2,"waited_for":3}"#,
        r#"{"batch":4,"epoch":2,"loss":2,"learning_rate":0.5,"waited_s":null,"waited_for":null}"#,
    ];
    assert_eq!(read(&json).lines().collect::<Vec<_>>(), lines, "every second batch");
}

#[test]
fn resuming_keeps_the_lines_before() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("batches.csv");
    let header = "batch,epoch,loss,learning_rate,waited_s,waited_for\n";
    // The last line was being written when the process was killed.
    fs::write(&path, format!("{header}0,1,1,1,,\n1,1,1,1,,\n2,1,1,1,,\n3,1,")).expect("written");
    let mut log = StepLog::new(&path);
    log.start(2).expect("a log");
    assert_eq!(read(&path).lines().count(), 5, "nothing changes before the first batch");
    log.append(2, 1, &[0.5], &[0.5], &[]).expect("written");
    assert_eq!(read(&path), format!("{header}0,1,1,1,,\n1,1,1,1,,\n2,1,0.5,0.5,,\n"), "later lines are replaced");
    let mut log = StepLog::new(&path);
    log.start(0).expect("a log");
    log.append(0, 1, &[0.25], &[0.5], &[]).expect("written");
    assert_eq!(read(&path), format!("{header}0,1,0.25,0.5,,\n"), "a run from the start");
}

#[test]
fn what_cannot_be_a_log_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rows.csv");
    fs::write(&path, "x,y\n1,2\n").expect("written");
    let error = StepLog::new(&path).start(0).expect_err("another file");
    assert!(matches!(&error, Error::Io { path: found, .. } if *found == path), "{error}");
    assert_eq!(read(&path), "x,y\n1,2\n", "it is unchanged");
    let error = StepLog::new(path.join("batches.csv")).start(0).expect_err("a file is no folder");
    assert!(matches!(error, Error::Io { .. }), "{error}");
    let error = StepLog::new(folder.path()).start(0).expect_err("a folder");
    assert!(matches!(error, Error::Write(_)), "{error}");
    let error = StepLog::new(folder.path().join("new.csv")).every(0).start(0).expect_err("no interval");
    assert!(matches!(error, Error::NoInterval), "{error}");
}

#[test]
fn each_loss_has_a_learning_rate() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("batches.csv");
    let mut log = StepLog::new(&path);
    let wait = Some(BatchWait { time: Duration::ZERO, rank: 0 });
    for (rates, waits) in [(&[0.1][..], &[][..]), (&[0.1; 3], &[]), (&[0.1; 2], &[wait; 3])] {
        let error = log.append(0, 1, &[0.5, 0.25], rates, waits).expect_err("other counts");
        assert!(matches!(error, Error::BatchCounts { n_losses: 2, .. }), "{error}");
    }
    assert!(!path.exists(), "nothing is written");
}

#[test]
fn batches_must_not_be_missing_in_between() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("batches.csv");
    let mut log = StepLog::new(&path).every(3);
    log.append(0, 1, &[0.5; 5], &[0.1; 5], &[]).expect("batches 0 and 3");
    let before = read(&path);
    for every in [1, 3] {
        let error = StepLog::new(&path).every(every).start(7).expect_err("batch 6 is missing");
        assert!(matches!(error, Error::BatchGap { last: 3, first: 7, .. }), "{error}");
        StepLog::new(&path).every(every).start(6).expect("none is missing");
    }
    assert_eq!(read(&path), before, "unchanged");
    // A run may be logged from its middle on.
    StepLog::new(folder.path().join("new.csv")).start(7).expect("a new file");
}
