//! The `data_parallel` example, called from the command line, with replicas that are threads.

use std::fs;
use std::ops::Deref;
use std::process::{Command, Output};

use serde_json::Value;

use crate::example::built;
use crate::usage::{check_help, check_usage_error};

/// A folder to train in.
pub(crate) struct Place(crate::place::Place);

impl Deref for Place {
    type Target = crate::place::Place;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// A run of three epochs over few rows.
pub(crate) const RUN: [&str; 8] = ["--rows", "2000", "--epochs", "3", "--hidden", "16,16", "--batch", "100"];

impl Place {
    pub(crate) fn new() -> Self {
        Self(crate::place::Place::new())
    }

    /// `command` in this folder, on the CPU, with the run's options and `args`.
    pub(crate) fn prepared(&self, mut command: Command, args: &[&str]) -> Command {
        // Without `--rows`, if there are other rows.
        let n_unused = if args.contains(&"--train") { 2 } else { 0 };
        command.args(&RUN[n_unused..]).args(["--data-dir", "data", "--runs", "runs"]).args(args);
        command.current_dir(self.path("")).env("BRISK_DEVICE", "cpu").env("XDG_RUNTIME_DIR", self.path(""));
        command
    }

    pub(crate) fn run(&self, example: &'static str, args: &[&str]) -> Output {
        self.prepared(Command::new(built(example)), args).output().expect("the example runs")
    }

    /// The results of a run.
    #[track_caller]
    pub(crate) fn results(&self, example: &'static str, args: &[&str]) -> Value {
        let output = self.run(example, &[args, &["--json", "results.json"]].concat());
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        self.json("results.json")
    }

    /// The bytes of the best checkpoint of the run in `folder`.
    pub(crate) fn best(&self, folder: &str) -> Vec<u8> {
        fs::read(self.path(folder).join("best.safetensors")).expect("the run has kept its best")
    }

    /// Checks that it is refused on one line that contains all of `words`, before a run has started.
    #[track_caller]
    fn check(&self, args: &[&str], words: &[&str]) {
        let output = self.run("data_parallel", args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
        let errors: Vec<_> = said.lines().filter(|line| line.starts_with("error: ")).collect();
        assert_eq!((errors.len(), output.stdout.len()), (1, 0), "{args:?}: one line, and no result: {said}");
        assert!(words.iter().all(|word| errors[0].contains(word)), "{args:?}: {words:?} in {said}");
        assert!(!self.path("runs").exists(), "{args:?}: no run has begun");
    }
}

/// Checks that the test AUC of `run` is that of `alone`, a run without replicas.
#[track_caller]
pub(crate) fn check_same_auc(run: &Value, alone: &Value) {
    let [ours, theirs] = [run, alone].map(|results| results["test_auc"].as_f64().expect("the test AUC is a number"));
    assert!(theirs > 0.55, "there is something to learn: {alone}");
    assert!((ours - theirs).abs() < 1e-3, "test AUC {ours}, on one device {theirs}");
    for key in ["epochs", "best_epoch", "rows", "parameters"] {
        assert_eq!(run[key], alone[key], "{key}");
    }
}

#[test]
fn help_is_the_documentation() {
    let options = "replicas devices wire zero checkpoint-files bucket-mb timeout stream train batch checkpoint-every \
        out resume runs json";
    check_help("data_parallel", options);
    let help = Place::new().succeed("data_parallel", &["--help"]);
    assert!(help.contains("at most MIB of memory, 8 or more"), "the least that `--stream` takes: {help}");
}

#[test]
fn options_that_make_no_sense() {
    let place = Place::new();
    for (args, words) in [
        (&["--nosuch"][..], &["unexpected argument '--nosuch'"][..]),
        (&["--replicas", "0"], &["'0' for '--replicas <N>'", "a whole number from 1 to 1024"]),
        (&["--replicas", "5000"], &["'5000' for '--replicas <N>'", "1024"]),
        (&["--wire", "f64"], &["'f64' for '--wire <TYPE>'", "f32, f16, bf16"]),
        (&["--zero", "4"], &["'4' for '--zero <STAGE>'", "0, 1, 2, 3"]),
        (&["--bucket-mb", "0"], &["'0' for '--bucket-mb <MIB>'", "a number above 0"]),
        (&["--bucket-mb", "1e9"], &["'1e9' for '--bucket-mb <MIB>'", "4096 or less"]),
        (&["--timeout", "1e300"], &["'1e300' for '--timeout <SECONDS>'", "1048576 or less"]),
        (&["--batch"], &["a value is required for '--batch <N>'"]),
        (&["--train", "a.csv"], &["required arguments were not provided", "--test <FILE>"]),
        (&["--rows", "200", "--train", "a.csv", "--test", "a.csv"], &["'--rows <N>' cannot be used with", "--train <FILE>"]),
        // A conflict switches off what an option requires.
        (&["--rows", "200", "--test", "a.csv"], &["'--rows <N>' cannot be used with '--test <FILE>'"]),
        (&["--rows", "200", "--label", "a"], &["'--rows <N>' cannot be used with '--label <COLUMN>'"]),
        (&["--replicas", "2", "--devices", "cpu,cpu,cpu"], &["--devices names 3 devices for 2 replicas"]),
        (&["--out", "run", "--resume", "run/last.safetensors"], &["leave out --out"]),
        (&["--replicas", "3", "--batch", "2"], &["--batch 2 leaves some of 3 replicas without a row", "--batch 3 or more"]),
    ] {
        check_usage_error(&place.run("data_parallel", args), args, words);
    }
    assert!(!place.path("data").exists() && !place.path("runs").exists(), "nothing was simulated or trained");
    std::fs::write(place.path("file"), "").expect("there is room");
    for (args, words) in [
        (&["--json", "nosuch/results.json"][..], &["a folder that exists"][..]),
        (&["--resume", "nosuch/last.safetensors"], &["nosuch"]),
        (&["--devices", "cpu,nosuch"], &["no device `nosuch`"]),
        (&["--out", "file/run"], &["--out needs a folder, and file is not one"]),
    ] {
        place.check(args, words);
    }
    assert!(!place.path("data").exists(), "nothing was simulated");
}

#[test]
fn files_of_replicas_that_write_no_bucket_are_warned_of() {
    let place = Place::new();
    for (bucket, is_warned) in [("4", true), ("0.001", false)] {
        let args = ["--checkpoint-files", "each", "--bucket-mb", bucket];
        let output = place.run("data_parallel", &args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert_eq!(said.contains("warning: with `--checkpoint-files each`"), is_warned, "{bucket} MiB: {said}");
    }
}

#[test]
fn replicas_come_to_the_auc_of_one_device() {
    let place = Place::new();
    let alone = place.results("higgs", &[]);
    for (n, n_replicas) in [("1", 1), ("2", 2), ("3", 3)] {
        let args = ["--replicas", n, "--out", n, "--devices", "cpu"];
        let run = place.results("data_parallel", &args);
        check_same_auc(&run, &alone);
        assert_eq!((&run["n_replicas"], &run["engine"]), (&Value::from(n_replicas), &Value::from("threads")), "{run}");
        for key in ["seconds", "loader_rows_per_s", "train_rows_per_s", "planned_peak_bytes"] {
            assert!(run[key].as_f64().is_some_and(|value| value > 0.0), "{key}: {run}");
        }
        assert!(run["reduction_hidden"].as_f64().is_some_and(|share| (0.0..=1.0).contains(&share)), "{run}");
        let again = place.results("data_parallel", &["--replicas", n, "--out", "again"]);
        assert_eq!(again["test_auc"], run["test_auc"], "a run repeats");
        assert!(place.best("again") == place.best(n), "{n} replicas: bit for bit");
        fs::remove_dir_all(place.path("again")).expect("it is there");
    }
}

#[test]
fn rows_that_are_streamed_come_to_the_same_auc_on_any_number_of_replicas() {
    let place = Place::new();
    let run = |n| place.results("data_parallel", &["--stream", "16", "--replicas", n, "--out", n]);
    let one = run("1");
    for n in ["2", "3"] {
        check_same_auc(&run(n), &one);
    }
}

#[test]
fn state_that_is_divided_comes_to_the_same_bits() {
    let place = Place::new();
    let args = ["--hidden", "128,128", "--bucket-mb", "0.02"];
    let whole = place.results("data_parallel", &[&args[..], &["--out", "0"]].concat());
    let mut state_bytes = whole["state_bytes"].as_u64();
    for zero in ["1", "2", "3"] {
        let run = place.results("data_parallel", &[&args[..], &["--zero", zero, "--out", zero]].concat());
        let before = std::mem::replace(&mut state_bytes, run["state_bytes"].as_u64());
        assert!(state_bytes < before, "stage {zero}: {state_bytes:?} bytes on each, {before:?} before");
        assert_eq!(run["test_auc"], whole["test_auc"], "stage {zero}");
        assert!(place.best(zero) == place.best("0"), "stage {zero}: bit for bit");
    }
}

#[test]
fn what_travels_in_halves_comes_close() {
    let place = Place::new();
    let alone = place.results("higgs", &["--precision", "bf16", "--accumulate", "2", "--clip", "1"]);
    let args = ["--precision", "bf16", "--accumulate", "2", "--clip", "1", "--wire", "bf16", "--bucket-mb", "0.001"];
    for zero in ["0", "2"] {
        let run = place.results("data_parallel", &[&args[..], &["--zero", zero]].concat());
        let [ours, theirs] = [&run, &alone].map(|results| results["test_auc"].as_f64().expect("a number"));
        assert!((ours - theirs).abs() < 2e-2, "stage {zero}: test AUC {ours}, on one device {theirs}");
        assert!(run["reductions"].as_u64() > Some(3 * 3 * 9), "each layer's gradients are a bucket: {run}");
    }
}

#[test]
#[cfg(not(feature = "mpi"))]
fn a_process_that_was_started_with_others_does_not_train_alone() {
    let place = Place::new();
    for (name, value) in [("OMPI_COMM_WORLD_SIZE", "2"), ("PMI_SIZE", "4"), ("SLURM_STEP_NUM_TASKS", "8")] {
        let mut command = place.prepared(Command::new(built("data_parallel")), &[]);
        let output = command.env(name, value).output().expect("the example runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        let expected = format!("error: {value} processes were started, and this one was built without MPI; build it with");
        assert!(said.starts_with(&expected), "{said}");
    }
}

#[test]
fn launchers_that_say_too_little_are_refused() {
    let place = Place::new();
    for (name, value, part) in [
        ("OMPI_COMM_WORLD_SIZE", "many", "OMPI_COMM_WORLD_SIZE is `many`, expected the number of processes"),
        ("PMIX_RANK", "1", "PMIX_RANK is set, but no variable says how many processes were started"),
    ] {
        let mut command = place.prepared(Command::new(built("data_parallel")), &[]);
        let output = command.env(name, value).output().expect("the example runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && said.contains(part), "{said}");
    }
    let mut command = place.prepared(Command::new(built("data_parallel")), &["--replicas", "3"]);
    let output = command.env("OMPI_COMM_WORLD_SIZE", "2").output().expect("the example runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("--replicas is 3, but 2 processes were started"), "{said}");
}
