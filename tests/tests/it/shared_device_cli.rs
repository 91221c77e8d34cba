//! The `shared_device` example, called from the command line.

use std::fs;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::example::built;
use crate::gpu::gpu;
use crate::usage::{check_help, check_usage_error};

fn run(dir: &TempDir, args: &[&str]) -> Output {
    let mut command = Command::new(built("shared_device"));
    command.args(["--rows", "400", "--epochs", "1", "--hidden", "8", "--rounds", "1", "--data-dir", "data"]).args(args);
    command.current_dir(dir.path()).env("BRISK_DEVICE", "cpu").env("XDG_RUNTIME_DIR", dir.path());
    command.stdin(Stdio::null()).output().expect("the example runs")
}

#[track_caller]
fn check_refused(args: &[&str], words: &[&str]) {
    let output = run(&tempfile::tempdir().expect("a folder for a while"), args);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && output.stdout.is_empty(), "{args:?}: {said}");
    assert!(words.iter().all(|word| said.contains(word)) && !said.contains("panicked"), "{args:?}: {words:?} in {said}");
}

/// One process, then three at a time, on `device`.
#[track_caller]
fn check_shared(device: &str, executor: &str) {
    let dir = tempfile::tempdir().expect("a folder for a while");
    let args = ["--processes", "1,3", "--memory-mb", "64", "--device", device, "--json", "results.json"];
    let output = run(&dir, &args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let table = String::from_utf8(output.stdout).expect("the table is UTF-8");
    let rows: Vec<_> = table.lines().skip_while(|line| !line.contains("processes")).skip(1).map(str::trim_start).collect();
    assert!(rows.len() == 2 && rows[0].starts_with("1 ") && rows[1].starts_with("3 "), "{table}");

    let text = fs::read_to_string(dir.path().join("results.json")).expect("the results are there");
    let results: Value = serde_json::from_str(&text).expect("they are JSON");
    for key in ["seconds", "loader_rows_per_s", "train_rows_per_s", "planned_peak_bytes", "test_auc"] {
        assert!(results[key].as_f64().is_some_and(|value| value > 0.0), "{key}: {text}");
    }
    assert_eq!(
        (&results["executor"], &results["rows"], &results["epochs"]),
        (&executor.into(), &400.into(), &1.into()),
        "{text}"
    );
    let processes = results["processes"].as_array().expect("a list");
    assert_eq!(processes.iter().map(|row| row["n"].as_u64()).collect::<Vec<_>>(), [Some(1), Some(3)], "{text}");
    for row in processes {
        assert!(row["train_rows_per_s"].as_f64() > Some(0.0) && row["score_rows_per_s"].as_f64() > Some(0.0), "{text}");
        assert!(row["allocated_bytes"].as_u64() <= Some(64 << 20), "{text}");
        assert_eq!(row["test_auc"], results["test_auc"], "what others do on the device changes no result");
    }
}

#[test]
fn processes_share_the_cores() {
    check_shared("cpu", "cpu");
}

#[test]
fn processes_share_an_adapter() {
    if gpu().is_some() {
        check_shared("0", "gpu");
    }
}

#[test]
fn a_share_that_is_too_small_is_named() {
    let words = ["the limited memory of device", "one of the processes failed: exit status: 1"];
    check_refused(&["--processes", "2", "--memory-mb", "0.01"], &words);
}

#[test]
fn options_that_make_no_sense() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for (args, words) in [
        (&["--processes", "1,0"][..], "'1,0' for '--processes <A,B>': `0`: expected a whole number from 1 to 64"),
        (&["--processes", "65"], "`65`: expected a whole number from 1 to 64"),
        (&["--memory-mb", "0"], "'0' for '--memory-mb <MIB>': expected a number above 0"),
        (&["--memory-mb", "1e9"], "expected 16777216 or less"),
        (&["--rounds", "0"], "'0' for '--rounds <N>'"),
        (&["--nosuch"], "unexpected argument '--nosuch'"),
    ] {
        check_usage_error(&run(&dir, args), args, &[words]);
    }
    check_refused(&["--device", "nosuch"], &["error: no device `nosuch`; available are "]);
}

#[test]
fn a_process_whose_starter_is_gone_ends() {
    let dir = tempfile::tempdir().expect("a folder for a while");
    let mut command = Command::new(built("shared_device"));
    command.args(["--rows", "400", "--data-dir", "data", "--worker-of", "1"]).current_dir(dir.path()).env("BRISK_DEVICE", "cpu");
    let output = command.stdin(Stdio::null()).output().expect("the example runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && said.contains("the process that started this one has ended"), "{said}");
}

#[test]
fn help_is_the_documentation() {
    check_help("shared_device", "processes memory-mb device rounds batch json");
}
