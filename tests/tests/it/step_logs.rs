//! Logs of every batch, over a run that is interrupted and resumed.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use brisk_train::tensorboard::TensorBoard;
use brisk_train::{Checkpoint, Ended, Error, Outputs, StepLog, TrainerConfig};

use crate::gpu::cpu;
use crate::run::{Setting, into_folder, quiet};

/// The number of batches of an epoch of the setting.
const N_BATCHES: usize = 8;

fn logging<'a>(outputs: Outputs<'a>, folder: &Path) -> Outputs<'a> {
    let mut outputs = outputs;
    outputs.callbacks.push(Box::new(StepLog::new(folder.join("logs/batches.csv"))));
    outputs.callbacks.push(Box::new(StepLog::new(folder.join("logs/batches.jsonl"))));
    outputs.callbacks.push(Box::new(TensorBoard::new(folder.join("events"))));
    outputs
}

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join("logs").join(name)).expect("a log")
}

fn append(path: &Path, text: &str) {
    let mut file = fs::OpenOptions::new().append(true).open(path).expect("a log");
    file.write_all(text.as_bytes()).expect("written");
}

#[test]
fn a_log_has_each_batch_once_although_the_run_was_interrupted() -> Result<(), Error> {
    let (setting, device) = (Setting::default(), cpu(1));
    let [whole, parts] = [(), ()].map(|()| tempfile::tempdir().expect("a folder"));
    let report = setting.ready().trainer(&device)?.fit(&mut logging(quiet(), whole.path()))?;
    let csv = read(whole.path(), "batches.csv");
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!((lines[0], lines.len()), ("batch,epoch,loss,learning_rate", 1 + 3 * N_BATCHES), "{csv}");
    let first_epoch: f64 =
        lines[1..=N_BATCHES].iter().map(|line| line.split(',').nth(2).and_then(|x| x.parse::<f64>().ok()).expect("a loss")).sum();
    assert!((first_epoch / N_BATCHES as f64 - report.history[0].train_loss()).abs() < 1e-6, "the mean of the epoch");
    assert!(lines[9].starts_with("8,2,") && lines[9].ends_with(",0.003"), "{}", lines[9]);
    let json = read(whole.path(), "batches.jsonl");
    for (line, json) in lines[1..].iter().zip(json.lines()) {
        let value: serde_json::Value = serde_json::from_str(json).expect("JSON");
        let number = |name: &str| value[name].as_f64().expect("a number") as f32;
        let found = ["batch", "epoch", "loss", "learning_rate"].map(|name| number(name).to_string()).join(",");
        assert_eq!(found, *line, "the same values");
    }

    let (outputs, folder) = into_folder(parts.path());
    let config = TrainerConfig { max_steps: Some(12), ..setting.config.clone() };
    let short = Setting { config, ..setting.clone() }.ready();
    assert_eq!(short.trainer(&device)?.fit(&mut logging(outputs, parts.path()))?.ended, Ended::MaxSteps, "within epoch 2");
    // Batches after the checkpoint, the last of which was being written when the process was killed.
    append(&parts.path().join("logs/batches.csv"), "12,2,9,9\n13,2,9.");
    append(&parts.path().join("logs/batches.jsonl"), "{\"batch\":12,\"epoch\":2,\"loss\":9,\"learning_rate\":9}\n{\"bat");
    let last = Checkpoint::load(folder.last())?;
    setting.ready().trainer(&device)?.resume(&last, &mut logging(quiet(), parts.path()))?;
    for name in ["batches.csv", "batches.jsonl"] {
        assert_eq!(read(parts.path(), name), read(whole.path(), name), "{name}");
    }
    let n_event_files = fs::read_dir(parts.path().join("events")).expect("a folder").count();
    assert_eq!(n_event_files, 2, "one of each part of the run");

    // A run from the start replaces the log.
    setting.ready().trainer(&device)?.fit(&mut logging(quiet(), parts.path()))?;
    assert_eq!(read(parts.path(), "batches.csv"), csv, "once");
    Ok(())
}

#[test]
fn event_files_have_the_metrics_by_set() -> Result<(), Error> {
    let folder = tempfile::tempdir().expect("a folder");
    Setting::default().ready().trainer(&cpu(1))?.fit(&mut logging(quiet(), folder.path()))?;
    let file = fs::read_dir(folder.path().join("events")).expect("a folder").next().expect("a file").expect("a file").path();
    let bytes = fs::read(file).expect("an event file");
    let count = |tag: &str| {
        // A protobuf string: its field, its length, its bytes.
        let field = [&[10, tag.len() as u8], tag.as_bytes()].concat();
        bytes.windows(field.len()).filter(|window| *window == field).count()
    };
    let counts = ["loss/batch", "learning_rate", "loss/train", "loss/valid", "auc/valid"].map(count);
    assert_eq!(counts, [3 * N_BATCHES, 3 * N_BATCHES, 3, 3, 3], "values of each tag");
    Ok(())
}

#[test]
fn a_log_that_cannot_be_written_ends_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    fs::write(&file, "").expect("written");
    let mut outputs = quiet();
    outputs.callbacks.push(Box::new(StepLog::new(file.join("batches.csv"))));
    let ready = Setting::default().ready();
    let error = ready.trainer(&cpu(1)).expect("a run").fit(&mut outputs).expect_err("a file is no folder");
    assert!(matches!(error, Error::Io { .. }), "{error}");
}
