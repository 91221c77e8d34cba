//! Examples that receive signals, as sent by shells, batch systems and closing terminals.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use brisk_table::{DType, Schema, TableWriter};

use crate::data_parallel_cli::Place;
use crate::example::built;
#[cfg(feature = "all-formats")]
use crate::server::{Fault, Server};

const SIGNALS: [(&str, &str, i32); 3] = [("-INT", "SIGINT", 130), ("-TERM", "SIGTERM", 143), ("-HUP", "SIGHUP", 129)];

/// Starts an example, waits for a file in the folder `run`, and sends it a signal.
fn interrupted(place: &Place, example: &'static str, args: &[&str], awaited: &str, signal: &str) -> Output {
    let mut command = place.prepared(Command::new(built(example)), &[args, &["--out", "run"]].concat());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the example runs");
    wait_for(&place.path("run").join(awaited));
    send(&child, signal);
    child.wait_with_output().expect("it ends")
}

fn wait_for(path: &Path) {
    let since = Instant::now();
    while !path.exists() {
        assert!(since.elapsed() < Duration::from_secs(60), "{} takes too long", path.display());
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn send(child: &Child, signal: &str) {
    let status = Command::new("kill").args([signal, &child.id().to_string()]).status().expect("there is `kill`");
    assert!(status.success(), "the example is running");
}

/// The names in a folder, in order.
fn names(folder: PathBuf) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("readable").map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = entries.map(|name| name.into_string().expect("UTF-8")).collect();
    names.sort();
    names
}

/// The command that a stopped run has printed, executed with `more` options.
fn carry_out(place: &Place, said: &str, more: &str) -> Output {
    let line = said.lines().find_map(|line| line.strip_prefix("to resume: ")).unwrap_or_else(|| panic!("no command in: {said}"));
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("{line} {more}")).current_dir(place.path(""));
    shell.env("BRISK_DEVICE", "cpu").env("XDG_RUNTIME_DIR", place.path("")).output().expect("there is a shell")
}

#[test]
fn each_signal_ends_a_run_with_a_checkpoint_and_the_command_to_resume() {
    for example in ["higgs", "data_parallel"] {
        for (signal, name, status) in SIGNALS {
            let place = Place::new();
            let args = ["--epochs", "1000000000", "--patience", "0"];
            let output = interrupted(&place, example, &args, "best.safetensors", signal);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(status), "{example}, {name}: {said}");
            assert!(String::from_utf8_lossy(&output.stdout).contains("stopped on request"), "{example}, {name}: the results");
            assert!(said.contains(&format!("stopped by {name} after ")), "{said}");
            assert!(said.contains("a checkpoint was written to run/last.safetensors"), "{said}");
            let expected = ["best.safetensors", "config.json", "last.safetensors", "metrics.csv", "metrics.json"];
            assert_eq!(names(place.path("run")), expected, "{example}, {name}: no temporary file, no lock");
            // Fewer epochs than it has finished: there is nothing left to train.
            let resumed = carry_out(&place, &said, "--epochs 1");
            let said = String::from_utf8_lossy(&resumed.stderr).into_owned();
            assert!(resumed.status.success() && said.contains("resuming from run/last.safetensors"), "{said}");
        }
    }
}

#[test]
fn a_signal_in_the_first_epoch_keeps_what_was_trained() {
    for example in ["higgs", "data_parallel"] {
        let place = Place::new();
        // A first epoch of many seconds.
        let args = ["--rows", "4000", "--batch", "2", "--hidden", "200,200"];
        let output = interrupted(&place, example, &args, "config.json", "-TERM");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(143), "{example}: {said}");
        let error = "error: stopped before the end of the first epoch; a checkpoint was written to run/last.safetensors";
        assert!(said.contains(error), "{example}: {said}");
        assert!(said.contains("to resume: ") && output.stdout.is_empty(), "{example}: there are no results: {said}");
        let expected = ["config.json", "last.safetensors", "metrics.csv", "metrics.json"];
        assert_eq!(names(place.path("run")), expected, "{example}: no temporary file, no lock");
    }
}

/// Runs an example and sends it SIGTERM when it says `word`; returns its status and what it said.
fn terminated(dir: &Path, example: &'static str, args: &[&str], word: &str) -> (Option<i32>, String) {
    let mut command = Command::new(built(example));
    command.args(args).env("BRISK_DEVICE", "cpu").env("XDG_RUNTIME_DIR", dir).current_dir(dir);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the example runs");
    let (mut said, mut is_sent) = (String::new(), false);
    for line in BufReader::new(child.stderr.take().expect("it is piped")).lines() {
        let line = line.expect("text");
        if line.contains(word) && !is_sent {
            send(&child, "-TERM");
            is_sent = true;
        }
        said += &(line + "\n");
    }
    (child.wait().expect("it ends").code(), said)
}

#[cfg(feature = "all-formats")]
#[test]
fn a_signal_ends_the_wait_for_a_server() {
    let (place, server) = (Place::new(), Server::start());
    server.misbehave(|_, _| Some(Fault::Status(503, "Retry-After: 60\r\n", "")));
    let url = server.url("/t.safetensors");
    let rows = ["--train", url.as_str(), "--test", url.as_str()];
    for (example, args) in [
        ("higgs", &rows[..]),
        ("data_parallel", &[&rows[..], &["--stream", "16"]].concat()),
        ("import", &[url.as_str(), "t.safetensors"]),
    ] {
        let (status, said) = terminated(&place.path(""), example, args, "trying again");
        assert_eq!(status, Some(143), "{example}: {said}");
        assert!(said.contains("asked to stop while it waited for the server"), "{example}: {said}");
    }
}

#[test]
fn examples_that_cannot_resume_end_with_the_status_of_the_signal() {
    let place = Place::new();
    let dir = place.path("");
    let schema = Schema { dtype: DType::U8, label_dtype: DType::U8, ..Schema::shaped(&[12, 10, 3]) };
    let mut writer = TableWriter::create(place.path("images.safetensors"), schema).expect("a table");
    (0..60_u8).for_each(|row| writer.push(&[100 + row; 360], &[row % 2]).expect("a row"));
    writer.finish().expect("a table");
    let args = ["--data", "images.safetensors", "--model", "m.safetensors", "--epochs", "100000"];
    for (word, has_model) in [("network:", false), ("epoch 1/", true)] {
        let (status, said) = terminated(&dir, "images", &args, word);
        assert_eq!(status, Some(143), "{word}: {said}");
        assert_eq!(place.path("m.safetensors").exists(), has_model, "{word}: {said}");
        let kept = "m.safetensors has the network of epoch ";
        assert_eq!(said.contains("interrupted after ") && said.contains(kept), has_model, "{word}: {said}");
    }
    // This recipe validates only at its end.
    let (status, said) = terminated(&dir, "images", &[&args[..], &["--recipe", "airbench"]].concat(), "epoch 1/");
    assert!(status == Some(143) && said.contains("error: stopped after "), "{said}");
    assert!(said.contains(", before the first validation; no checkpoint was written"), "{said}");

    let record = |i: u8| std::iter::once(i % 10).chain((0..3072).map(move |at: usize| (at * usize::from(i) % 251) as u8));
    let records: Vec<u8> = (0..64).flat_map(record).collect();
    for name in
        ["data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"]
    {
        fs::write(place.path(name), &records).expect("there is room");
    }
    let args = ["--data", ".", "--widths", "4,4,4", "--batch-rows", "64", "--epochs", "100000"];
    let (status, said) = terminated(&dir, "cifar10", &args, "epoch 1/");
    assert!(status == Some(143) && said.contains("error: stopped after "), "{said}");

    let rows: String = (0..2000).map(|row| format!("{},{}\n", row * 37 % 101, row % 3 / 2)).collect();
    fs::write(place.path("rows.csv"), format!("x,y\n{rows}")).expect("there is room");
    let args = ["rows.csv", "--target", "y", "--epochs", "100000", "--patience", "100000", "--out", "model"];
    for (word, has_model) in [("parameters:", false), ("epoch 2/", true)] {
        let (status, said) = terminated(&dir, "tabular", &args, word);
        assert_eq!(status, Some(143), "{word}: {said}");
        assert_eq!(place.path("model/model.json").exists(), has_model, "{word}: {said}");
        assert!(!said.contains("checkpoint") && said.contains("no model was written") != has_model, "{word}: {said}");
    }
    // A model that is there is kept.
    let model = || fs::read(place.path("model/model.json")).expect("the model");
    let kept = model();
    let (status, said) = terminated(&dir, "tabular", &[&args[..], &["--seed", "1"]].concat(), "epoch 2/");
    assert!(status == Some(143) && said.contains("the model in model is kept") && said.contains("model-stopped"), "{said}");
    assert!(model() == kept && place.path("model-stopped/model.json").exists());
}

/// Of several targets, all that were there are kept until all are trained again.
#[test]
fn the_models_of_several_targets_are_kept_if_a_run_is_stopped() {
    let place = Place::new();
    let dir = place.path("");
    let rows: String = (0..500).map(|row| format!("{},{},{}\n", row * 37 % 101, row % 3 / 2, row * 37 % 101 / 50)).collect();
    fs::write(place.path("rows.csv"), format!("x,y,z\n{rows}")).expect("there is room");
    let args = ["rows.csv", "--target", "y,z", "--model", "mlp", "--hidden", "4", "--out", "model"];
    let short = [&args[..], &["--epochs", "2"]].concat();
    let run = |args: &[&str]| {
        let mut command = Command::new(built("tabular"));
        command.args(args).env("BRISK_DEVICE", "cpu").env("XDG_RUNTIME_DIR", &dir).current_dir(&dir);
        let output = command.output().expect("the example runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    run(&short);
    let files = ["model/targets.json", "model/0/model.json", "model/1/model.json"];
    let models = || files.map(|file| fs::read(place.path(file)).expect("the models"));
    let kept = models();
    let long = [&args[..], &["--epochs", "100000", "--patience", "100000", "--seed", "1"]].concat();
    let (status, said) = terminated(&dir, "tabular", &long, "epoch 2/");
    assert!(status == Some(143) && said.contains("the models in model are kept"), "{said}");
    assert!(models() == kept && place.path("model-unfinished/0/model.json").exists());
    let shown = run(&[&short[..], &["--seed", "1"]].concat());
    assert!(models() != kept && !place.path("model-unfinished").exists() && place.path("model/1/report.html").exists());
    assert!(!shown.contains("unfinished"), "{shown}");
}

/// Shells start background jobs of scripts with SIGINT ignored, and `nohup` ignores SIGHUP.
#[test]
fn background_jobs_and_ignored_signals_are_no_error() {
    let place = Place::new();
    let ignoring = ["\"$@\" & wait $!", "trap '' INT; \"$@\"", "trap '' HUP; \"$@\"", "trap '' INT TERM HUP; \"$@\" & wait $!"];
    for script in ignoring {
        for example in ["higgs", "data_parallel"] {
            let run = place.prepared(Command::new(built(example)), &["--epochs", "1"]);
            let mut shell = Command::new("sh");
            shell.args(["-c", script, "sh"]).arg(run.get_program()).args(run.get_args()).current_dir(place.path(""));
            let output = shell.env("BRISK_DEVICE", "cpu").env("XDG_RUNTIME_DIR", place.path("")).output().expect("a shell");
            assert!(output.status.success(), "{example}, {script}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
}

/// The import of the rows takes most of the time of a first run.
#[test]
fn a_signal_during_the_import_leaves_nothing() {
    for example in ["higgs", "data_parallel"] {
        let place = Place::new();
        let row = ["0.25", "-1.5e-3", "0.333333333"].join(",");
        let rows = format!("1,{row}\n0,{row}\n").repeat(1 << 20);
        fs::write(place.path("long.csv"), format!("signal,a,b,c\n{rows}")).expect("there is room");
        let args = ["--train", "long.csv", "--test", "long.csv"];
        let mut command = place.prepared(Command::new(built(example)), &args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the example runs");
        let data = place.path("data");
        while !data.is_dir() || names(data.clone()).is_empty() {
            assert!(matches!(child.try_wait(), Ok(None)), "{example} ends before it imports");
            std::thread::sleep(Duration::from_millis(1));
        }
        send(&child, "-TERM");
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(143), "{example}: {said}");
        assert!(said.contains("error: long.csv: stopped on request while it was imported"), "{example}: {said}");
        assert_eq!(names(data), Vec::<String>::new(), "{example}");
    }
}
