//! Examples that resume, and their messages when they cannot.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::data_parallel_cli::{Place, check_same_auc};
use crate::example::built;

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

impl Place {
    /// A run that succeeds; returns its output.
    #[track_caller]
    fn resumed(&self, example: &'static str, args: &[&str]) -> String {
        let output = self.run(example, args);
        assert!(output.status.success(), "{args:?}: {}", said(&output));
        said(&output)
    }

    /// Checks that a run is refused on one line that contains all of `words`.
    #[track_caller]
    fn refused(&self, args: &[&str], words: &[&str]) {
        let output = self.run("data_parallel", args);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
        let error = said.lines().last().filter(|line| line.starts_with("error: ")).unwrap_or_default();
        assert!(words.iter().all(|word| error.contains(word)), "{args:?}: {words:?} in: {said}");
        for rust in ["TrainerConfig", "ResumeMismatch", "RunFolder", "Error", "::"] {
            assert!(!error.contains(rust), "no Rust words: {error}");
        }
    }
}

#[test]
fn a_run_resumes_bit_identically_on_other_replicas_too() {
    let place = Place::new();
    let whole = place.results("data_parallel", &["--out", "whole"]);
    place.results("data_parallel", &["--epochs", "1", "--out", "cut"]);
    place.refused(&["--out", "cut"], &["cut holds a run already; resume it with `--resume auto`"]);
    let resumed = place.results("data_parallel", &["--out", "cut", "--resume", "auto"]);
    assert!(place.best("cut") == place.best("whole"), "as without the interruption");
    assert_eq!(resumed["test_auc"], whole["test_auc"]);

    // With three replicas; and from a file.
    place.results("data_parallel", &["--epochs", "1", "--out", "other"]);
    let other = place.results("data_parallel", &["--replicas", "3", "--out", "other", "--resume", "auto"]);
    check_same_auc(&other, &whole);
    let more = place.results("data_parallel", &["--epochs", "4", "--resume", "other/last.safetensors"]);
    assert_eq!((&more["epochs"], &more["run_folder"]), (&Value::from(4), &Value::from("other")), "one more: {more}");
}

#[test]
fn the_example_on_one_device_resumes_too() {
    let place = Place::new();
    let whole = place.results("higgs", &["--out", "whole"]);
    place.results("higgs", &["--epochs", "1", "--out", "cut"]);
    assert_eq!(place.results("higgs", &["--out", "cut", "--resume", "auto"])["test_auc"], whole["test_auc"]);
    assert!(place.best("cut") == place.best("whole"), "as without the interruption");
}

#[test]
fn without_a_name_the_newest_run_of_these_settings_is_resumed() {
    let place = Place::new();
    let args = ["--seed", "7", "--resume", "auto"];
    let folder = |results: &Value| results["run_folder"].as_str().expect("a run has a folder").to_owned();
    let first = folder(&place.results("data_parallel", &args));
    assert_eq!(folder(&place.results("data_parallel", &args)), first, "the same run");
    let other = folder(&place.results("data_parallel", &["--seed", "8", "--resume", "auto"]));
    assert_ne!(other, first, "one with another seed is another run");
    assert_eq!(fs::read_dir(place.path("runs")).expect("it is there").count(), 2, "two runs");
}

/// The folder of a run that was killed in its first epoch, and after the first row of its log.
#[test]
fn a_run_killed_before_its_first_checkpoint_starts_from_the_start() {
    let place = Place::new();
    place.results("data_parallel", &["--out", "whole"]);
    for has_rows in [false, true] {
        let (name, path) = (["empty", "row"][usize::from(has_rows)], place.path(["empty", "row"][usize::from(has_rows)]));
        place.results("data_parallel", &["--epochs", "1", "--out", name]);
        for file in ["best.safetensors", "last.safetensors"] {
            fs::remove_file(path.join(file)).expect("it was written");
        }
        if !has_rows {
            ["metrics.csv", "metrics.json"].iter().for_each(|log| fs::write(path.join(log), "").expect("writable"));
        }
        let said = place.resumed("data_parallel", &["--out", name, "--resume", "auto"]);
        assert!(said.contains(&format!("no checkpoint to resume from in {name}: starting from the start")), "{said}");
        assert!(place.best(name) == place.best("whole"), "{name}: the same run");
        assert_eq!(fs::read_to_string(path.join("metrics.csv")).expect("a log").lines().count(), 4, "one row per epoch");
        let kept = path.join("earlier-1/metrics.csv");
        assert_eq!(kept.exists(), has_rows, "a log with rows is kept");
        assert_eq!(said.contains("what an earlier run left there is now in"), has_rows, "{said}");
    }
}

#[test]
fn damaged_checkpoints_are_passed_over_and_kept() {
    let place = Place::new();
    place.results("data_parallel", &["--out", "whole"]);
    place.results("data_parallel", &["--epochs", "1", "--out", "run"]);
    // One bit, in the last tensor.
    let last = place.path("run/last.safetensors");
    let mut bytes = fs::read(&last).expect("it was written");
    *bytes.last_mut().expect("it is not empty") ^= 0x10;
    fs::write(&last, &bytes).expect("writable");
    place.refused(&["--resume", "run/last.safetensors"], &["run/last.safetensors", "its checksum is", "its content has changed"]);
    let said = place.resumed("data_parallel", &["--out", "run", "--resume", "auto"]);
    let best = Path::new("run/best.safetensors");
    assert!(said.contains("not resuming from a damaged checkpoint: run/last.safetensors"), "{said}");
    assert!(said.contains(&format!("resuming from {}", best.display())), "{said}");
    assert!(place.best("run") == place.best("whole"), "as without the interruption");

    for name in ["best", "last"] {
        fs::write(place.path(format!("run/{name}.safetensors")), "half").expect("writable");
    }
    let said = place.resumed("data_parallel", &["--out", "run", "--resume", "auto"]);
    for name in ["best", "last"] {
        assert!(said.contains(&format!("not resuming from a damaged checkpoint: run/{name}.safetensors: ")), "{said}");
        let kept = fs::read_to_string(place.path(format!("run/earlier-1/{name}.safetensors")));
        assert_eq!(kept.expect("it is kept"), "half", "{name}");
    }
    assert!(said.contains("starting from the start; what an earlier run left there is now in run/earlier-1"), "{said}");
    assert!(place.best("run") == place.best("whole"), "the same run");
}

#[test]
fn a_refused_resume_names_the_option_and_leaves_the_settings() {
    let place = Place::new();
    place.results("data_parallel", &["--epochs", "1", "--out", "run"]);
    let config = fs::read(place.path("run/config.json")).expect("it was written");
    let from = ["--resume", "run/last.safetensors"];
    for (args, words) in [
        // The seed is that of the rows, too.
        (
            &["--seed", "9"][..],
            &["seed: 0 in the checkpoint, 9 here", "training rows: digest", "--resume-anyway rows,settings"][..],
        ),
        (&["--batch", "50"], &["batch_rows: 100 in the checkpoint, 50 here", "--resume-anyway settings"]),
        (&["--precision", "bf16"], &["precision: f32 in the checkpoint, bf16 here", "--resume-anyway precision"]),
        (&["--hidden", "16,17"], &["tensor `layers.1.weight`"]),
    ] {
        place.refused(&[&from[..], args].concat(), words);
        assert!(fs::read(place.path("run/config.json")).expect("it is there") == config, "{args:?}: the settings");
    }
    let args = [&from[..], &["--precision", "bf16", "--resume-anyway", "precision"]].concat();
    let said = place.resumed("data_parallel", &args);
    assert!(said.contains("resuming although this differs: precision: f32 in the checkpoint, bf16 here"), "{said}");
    assert!(fs::read(place.path("run/config.json")).expect("it is there") != config, "an accepted one writes its settings");
}

/// Before any row is simulated.
#[test]
fn a_file_that_is_no_checkpoint_is_refused_at_once() {
    let place = Place::new();
    fs::create_dir(place.path("run")).expect("writable");
    fs::write(place.path("run/last.safetensors"), "half").expect("writable");
    for path in ["run/last.safetensors", "run", "nosuch/last.safetensors"] {
        place.refused(&["--resume", path], &[&format!("--resume {path}")]);
    }
    assert!(!place.path("data").exists(), "nothing was simulated");
}

#[test]
#[cfg(unix)]
fn a_second_run_in_a_folder_is_refused_until_the_first_is_gone() {
    let place = Place::new();
    let args = ["--out", "run", "--epochs", "1000000000", "--patience", "0"];
    let mut first = place.prepared(Command::new(built("data_parallel")), &args);
    let mut first = first.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the example runs");
    let since = Instant::now();
    while !place.path("run/last.safetensors").exists() {
        assert!(since.elapsed() < Duration::from_secs(60), "the first epoch takes a moment");
        std::thread::sleep(Duration::from_millis(5));
    }
    let resume = ["--out", "run", "--resume", "auto", "--epochs", "1"];
    place.refused(&resume, &[&format!("run: process {}", first.id()), "is running in this folder; wait until it ends"]);
    first.kill().expect("it is running");
    first.wait().expect("it has ended");
    place.resumed("data_parallel", &resume);
    assert!(!place.path("run/run.lock").exists(), "what the killed run left is gone");
}
