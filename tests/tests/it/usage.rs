//! What the command lines of all examples have in common.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::example::built;

/// A usage error, by convention: exit status 2, nothing on standard output, and on standard error an error that contains all of
/// `words` and a pointer to the help.
#[track_caller]
pub(crate) fn check_usage_error(output: &Output, args: &[&str], words: &[&str]) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{args:?}: {stderr}");
    assert!(stderr.starts_with("error: ") && !stderr.contains("panicked"), "{args:?}: {stderr}");
    assert!(stderr.contains("--help"), "{args:?}: it says where the options are: {stderr}");
    for word in words {
        assert!(stderr.contains(word), "{args:?}: no `{word}` in: {stderr}");
    }
}

/// Checks that the help of an example describes these options, which are separated by blanks.
#[track_caller]
pub(crate) fn check_help(example: &'static str, options: &str) {
    let output = Command::new(built(example)).arg("--help").output().expect("the example runs");
    let help = String::from_utf8(output.stdout).expect("help is UTF-8");
    assert!(output.status.success() && output.stderr.is_empty(), "{help}");
    for option in options.split_whitespace() {
        assert!(help.contains(&format!("--{option} ")), "--{option} is missing in {help}");
    }
}

pub(crate) const EXAMPLES: [&str; 23] = [
    "first_network",
    "own_task",
    "two_heads",
    "autoencoder",
    "custom_loop",
    "sequence",
    "higgs",
    "data_parallel",
    "launch",
    "shared_device",
    "amp_report",
    "cifar10",
    "images",
    "augment_gallery",
    "own_augmentation",
    "import",
    "inspect",
    "tabular",
    "predict",
    "own_kernel",
    "own_op",
    "own_loss",
    "caller_device",
];

#[test]
fn each_example_prints_completions_of_its_options() {
    for name in EXAMPLES {
        for (shell, words) in [
            ("bash", "--completions"),
            ("zsh", "#compdef"),
            ("fish", "complete -c"),
            ("powershell", "Register"),
            ("elvish", "edit:"),
        ] {
            let output = Command::new(built(name)).args(["--completions", shell]).output().expect("the example runs");
            let script = String::from_utf8(output.stdout).expect("completions are UTF-8");
            assert!(output.status.success() && output.stderr.is_empty(), "{name} {shell}: {script}");
            assert!(script.contains(words) && script.contains(name), "{name} {shell}: {script}");
        }
        let output = Command::new(built(name)).args(["--completions", "csh"]).output().expect("the example runs");
        check_usage_error(&output, &[name], &["bash, elvish, fish, powershell, zsh"]);
    }
}

#[test]
fn each_example_suggests_the_option_that_was_meant() {
    for name in EXAMPLES {
        let output = Command::new(built(name)).arg("--completion").output().expect("the example runs");
        check_usage_error(
            &output,
            &[name],
            &["unexpected argument '--completion'", "a similar argument exists: '--completions'"],
        );
    }
}

/// Of a list, the first part would be lost; of other options, scripts append others to their defaults.
#[test]
fn a_list_of_names_that_is_given_twice_is_refused() {
    for option in ["--target", "--drop"] {
        let args = ["rows.csv", option, "3", option, "4"];
        let output = Command::new(built("tabular")).args(args).output().expect("the example runs");
        check_usage_error(&output, &args, &[option, "multiple times"]);
    }
    for args in [
        &["--epochs", "3", "--epochs", "4"][..],
        &["--missing-value", "a", "--missing-value", "b"],
        &["--keep-index"; 2],
        &["--hidden", "3", "--hidden", "4"],
    ] {
        let output = Command::new(built("tabular")).arg("no.csv").args(args).output().expect("the example runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && stderr.contains("no.csv"), "{args:?}: {stderr}");
    }
}

#[test]
fn each_example_is_listed() {
    let examples = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples"));
    let folders =
        [examples.to_owned(), examples.join("vision")].into_iter().flat_map(|folder| fs::read_dir(folder).expect("a folder"));
    let programs = folders.map(|entry| entry.expect("an entry").path()).filter(|path| path.join("main.rs").is_file());
    let names = programs.map(|path| path.file_name().unwrap_or_default().to_string_lossy().into_owned());
    let found: BTreeSet<String> = names.filter(|name| name != "with_candle").collect();
    assert_eq!(found, EXAMPLES.map(str::to_owned).into(), "all but `with_candle`, which is a package outside of the workspace");
}
