//! Event files and logs of a run that is killed again and again: those of an uninterrupted one.

use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};
use brisk_nn::Activation;
use brisk_train::{Binary, Checkpoint, RunFolder, StepLog, TensorBoard, TrainerConfig};

use super::training::{class, network, rows as training_rows, trainer};
use super::{Row, row, said};
use crate::event_files::scalars;

/// The command that starts this program as a run: `train-with-logs FOLDER`.
pub(crate) const CHILD: &str = "train-with-logs";

/// Trains, or resumes what an earlier process has left in the folder.
#[expect(clippy::print_stdout, reason = "it is a program of its own")]
pub(crate) fn child(dir: &Path) -> Result<()> {
    let folder = RunFolder::create_at(&dir.join("run"))?;
    let config = TrainerConfig { batch_rows: 20, max_epochs: 6, checkpoint_every: 7, ..TrainerConfig::default() };
    let mut trainer = trainer()?
        .config(config)
        .folder(&folder)
        .callback(StepLog::new(dir.join("batches.csv")))
        .callback(TensorBoard::new(dir.join("events")));
    let (mut model, train, valid) = (network(1, Activation::relu()), training_rows(1000, class)?, training_rows(200, class)?);
    let report = if folder.last().is_file() {
        let last = Checkpoint::load(folder.last())?;
        trainer.resume(&mut model, &last, &Binary::new(), &train, &valid)?
    } else {
        trainer.fit(&mut model, &Binary::new(), &train, &valid)?
    };
    println!("{} epochs", report.n_epochs);
    Ok(())
}

fn compare(dir: &Path) -> Result<()> {
    let [parts, whole] = ["parts", "whole"].map(|name| dir.join(name));
    let n_files = fs::read_dir(parts.join("events"))?.count();
    let [found, expected] = [&parts, &whole].map(|dir| scalars(&dir.join("events")));
    for (tag, expected) in &expected {
        let Some(found) = found.get(tag) else { anyhow::bail!("the event files have no `{tag}`") };
        let missing: Vec<_> = expected.keys().filter(|step| !found.contains_key(step)).collect();
        ensure!(missing.is_empty(), "`{tag}` has no value at the steps {missing:?}, in {n_files} event files");
        ensure!(found == expected, "`{tag}` has other values, in {n_files} event files");
    }
    ensure!(found.len() == expected.len(), "the event files have the tags {:?}", found.keys());
    let [found, expected] = [&parts, &whole].map(|dir| fs::read_to_string(dir.join("batches.csv")));
    ensure!(found? == expected?, "the log of batches differs");
    Ok(())
}

pub(super) fn rows() -> Vec<Row> {
    let lines = [format!("attack {CHILD} parts"), format!("attack {CHILD} whole")];
    let lines = lines.each_ref().map(String::as_str);
    vec![row("event files of a run that is killed again and again", &lines, said(&["6 epochs"])).killed(40).then(compare)]
}
