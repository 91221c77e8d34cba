//! Help, usage errors and completions.

use std::process::{Command, Output};

fn xtask(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xtask")).args(args).output().expect("xtask starts")
}

#[track_caller]
fn check_usage_error(args: &[&str], expected: &str) {
    let output = xtask(args);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
    assert!(stderr.contains(expected), "{args:?}: {stderr}");
}

#[test]
fn mistyped_words_get_a_suggestion() {
    check_usage_error(&["tset"], "a similar subcommand exists: 'test'");
    check_usage_error(&["test", "--olny", "fmt"], "a similar argument exists: '--only'");
    check_usage_error(&["test", "--only", "clipy"], "a similar value exists: 'clippy'");
    check_usage_error(&["conformance", "--precision", "fp16"], "a similar value exists: 'f16'");
    check_usage_error(&["conformance", "--replicas", "2", "--op", "relu"], "cannot be used with");
    check_usage_error(&["tidy", "everything"], "unexpected argument 'everything'");
}

#[test]
fn every_command_has_help() {
    for command in ["test", "check", "tidy", "conformance", "with-candle", "completions"] {
        let output = xtask(&[command, "--help"]);
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && stdout.contains("Usage: cargo xtask "), "{command}: {stdout}");
    }
}

/// As with `cargo xtask test --help | head -1`.
#[test]
fn a_closed_standard_output_is_no_failure() {
    for args in [&["test", "--help"][..], &["completions", "bash"]] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = Command::new(env!("CARGO_BIN_EXE_xtask")).args(args).stdout(writer).output().expect("xtask starts");
        assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""), "{args:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_an_error() {
    let full = std::fs::File::options().write(true).open("/dev/full").expect("Linux has /dev/full");
    let output =
        Command::new(env!("CARGO_BIN_EXE_xtask")).args(["completions", "bash"]).stdout(full).output().expect("xtask starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && stderr.starts_with("error: could not write to standard output"), "{stderr}");
}
