//! Checkpoints from which a run refuses to resume, and what it then leaves unchanged.

use std::fs;
use std::path::Path;

use brisk_loader::Rows;
use brisk_tensor::Precision;
use brisk_train::{
    Binary, Checkpoint, EarlyStopping, Ended, Error, FitReport, GradientClip, Outputs, ResumeMismatch, RunFolder, Trainable,
    Trainer, TrainerConfig, report,
};
use serde_json::json;

use crate::gpu::cpu;
use crate::run::{Ready, Setting, after_each_epoch, into_folder, quiet, rows};

/// A run of one epoch, and its last checkpoint.
fn finished(root: &Path) -> Result<(Setting, Outputs<'static>, RunFolder, Checkpoint), Error> {
    let default = Setting::default();
    let setting = Setting { config: TrainerConfig { max_epochs: 1, ..default.config.clone() }, ..default };
    let (mut outputs, folder) = into_folder(root);
    outputs.config = Some(json!({ "written by": "the first run" }));
    setting.ready().trainer(&cpu(1))?.fit(&mut outputs)?;
    let last = Checkpoint::load(folder.last())?;
    let config = TrainerConfig { max_epochs: 2, ..setting.config.clone() };
    Ok((Setting { config, ..setting }, outputs, folder, last))
}

fn resumed(
    ready: &Ready,
    [train, valid]: [&Rows; 2],
    checkpoint: &Checkpoint,
    allowed: &[ResumeMismatch],
) -> Result<FitReport, Error> {
    let Ready { model, params, adam, .. } = ready;
    let device = cpu(1);
    let trainer = Trainer::new(&device).config(ready.config()).prepare(
        Trainable::new(model, params, adam),
        &Binary::new(),
        train,
        valid,
    )?;
    trainer.resume_with(checkpoint, allowed, &mut quiet())
}

/// The same rows, changed.
fn changed(of: &Rows, features: impl FnOnce(&mut [f32]), labels: impl FnOnce(&mut [f32])) -> Rows {
    let (mut x, mut y) = (of.features().to_vec(), of.labels().to_vec());
    features(&mut x);
    labels(&mut y);
    Rows::new(x, y, crate::run::N_COLS).expect("as many as before")
}

#[test]
fn other_rows_are_refused_by_name_unless_allowed() -> Result<(), Error> {
    let root = tempfile::tempdir().expect("a temporary folder");
    let (setting, _, _, last) = finished(root.path())?;
    let ready = setting.ready();
    let (train, valid) = (&ready.train, &ready.valid);
    let flipped = |labels: &mut [f32]| labels.iter_mut().for_each(|label| *label = 1.0 - *label);
    let bit = |features: &mut [f32]| features[1234] = f32::from_bits(features[1234].to_bits() ^ 1);
    let swapped = |labels: &mut [f32]| labels.swap(0, labels.iter().position(|&label| label != labels[0]).expect("two classes"));
    for (train, valid, what) in [
        (&changed(train, |_| {}, flipped), valid, "training rows"),
        (&changed(train, bit, |_| {}), valid, "training rows"),
        (&changed(train, |_| {}, swapped), valid, "training rows"),
        (&rows(1, 500), valid, "training rows"),
        (train, &changed(valid, |_| {}, swapped), "validation rows"),
    ] {
        let error = resumed(&ready, [train, valid], &last, &[]).expect_err("the rows are others");
        let Error::ResumeMismatch { differences, .. } = &error else { panic!("{error}") };
        assert_eq!(differences.iter().map(|difference| difference.what.as_str()).collect::<Vec<_>>(), [what], "{error}");
        assert!(error.to_string().contains(&format!("{what}: digest ")), "{error}");
        assert!(error.to_string().contains("or allow the difference (rows) by `Trainer::resume_anyway` or "), "{error}");
        let report = resumed(&ready, [train, valid], &last, &[ResumeMismatch::Rows])?;
        assert_eq!(report.history.len(), 1, "it was allowed");
    }
    Ok(())
}

#[test]
fn other_settings_are_refused_by_name_unless_allowed() -> Result<(), Error> {
    let root = tempfile::tempdir().expect("a temporary folder");
    let (setting, _, _, last) = finished(root.path())?;
    let config = &setting.config;
    for (config, expected, kind) in [
        (
            TrainerConfig { precision: Precision::Bf16, ..config.clone() },
            "precision: f32 in the checkpoint, bf16 here",
            ResumeMismatch::Precision,
        ),
        (TrainerConfig { batch_rows: 50, ..config.clone() }, "batch_rows: 64 in", ResumeMismatch::Settings),
        (TrainerConfig { accumulate: 2, ..config.clone() }, "accumulate: 1 in", ResumeMismatch::Settings),
        (
            TrainerConfig { clip: Some(GradientClip::Norm(1.0)), ..config.clone() },
            "clip: none in the checkpoint, norm 1.0 here",
            ResumeMismatch::Settings,
        ),
        (
            TrainerConfig { schedule: brisk_nn::Schedule::Constant { lr: 0.1 }, ..config.clone() },
            "schedule.lr: 0.003 in the checkpoint, 0.1 here",
            ResumeMismatch::Settings,
        ),
    ] {
        let ready = Setting { config, ..setting.clone() }.ready();
        let error = resumed(&ready, [&ready.train, &ready.valid], &last, &[]).expect_err("a setting differs").to_string();
        assert!(error.contains(expected) && error.contains(&format!("allow the difference ({kind}) by ")), "{error}");
        let allowed = ResumeMismatch::ALL.map(|other| if other == kind { ResumeMismatch::Format } else { other });
        assert!(resumed(&ready, [&ready.train, &ready.valid], &last, &allowed).is_err(), "{expected}: others are allowed");
        assert_eq!(resumed(&ready, [&ready.train, &ready.valid], &last, &[kind])?.n_epochs, 2, "{expected}: allowed");
    }
    // Settings that do not change results may differ.
    let more = TrainerConfig {
        max_epochs: 3,
        early_stopping: Some(EarlyStopping::default().patience(9)),
        checkpoint_every: 1,
        ..config.clone()
    };
    let ready = Setting { config: more, ..setting.clone() }.ready();
    assert_eq!(resumed(&ready, [&ready.train, &ready.valid], &last, &[])?.n_epochs, 3, "three epochs");
    Ok(())
}

/// Each of these would otherwise be an overflow, an index out of range, or an endless run.
#[test]
fn values_that_cannot_be_right_are_refused() -> Result<(), Error> {
    let root = tempfile::tempdir().expect("a temporary folder");
    let (setting, _, _, last) = finished(root.path())?;
    let ready = setting.ready();
    let most = u64::MAX.to_string();
    for (entries, expected) in [
        (&[("step", most.as_str())][..], "is more than a run can count"),
        (&[("epoch", &most), ("step", &most)], "is more than a run can count"),
        (&[("step", "0")], "expected at least one each"),
        (&[("batch", "8"), ("skipped", "0")], "after batch 8 of an epoch that has 8"),
        (&[("batch", "3"), ("skipped", "9")], "9 steps were skipped in 3 batches"),
        (&[("valid_auc", "NaN")], "the watched metric is not a number"),
        (&[("best_epoch", "5")], "the best of 1 epochs is epoch 5"),
        (&[("best_value", "NaN")], "is epoch 1 with NaN"),
        (&[("early_stopping", &format!("wait_count={most} best=0.5 stopped=no"))], "the state of early stopping"),
    ] {
        let mut forged = last.clone();
        for (name, value) in entries {
            forged.insert_metadata(*name, value);
            if *name == "batch" {
                let n = value.parse().expect("a number");
                forged.insert("run.losses", &[n], vec![0.5_f32; n])?;
            }
        }
        let error = resumed(&ready, [&ready.train, &ready.valid], &forged, &[]).expect_err("it cannot be right");
        assert!(matches!(error, Error::Damaged { .. }) && error.to_string().contains(expected), "{entries:?}: {error}");
    }
    for (name, value) in [("step", "-1"), ("batch", "18446744073709551616"), ("epoch", "1e3"), ("early_stopping", "")] {
        let mut forged = last.clone();
        forged.insert_metadata(name, value);
        let error = resumed(&ready, [&ready.train, &ready.valid], &forged, &[]).expect_err("it is no number");
        assert!(matches!(&error, Error::CheckpointEntry { kind: "metadata", name: key, .. } if key == name), "{error}");
    }
    let mut forged = last.clone();
    forged.insert_metadata("batch", 1_u64 << 60);
    forged.insert_metadata("skipped", 0);
    let error = resumed(&ready, [&ready.train, &ready.valid], &forged, &[]).expect_err("no tensor has so many losses");
    assert!(matches!(error, Error::CheckpointEntry { kind: "tensor", .. }), "{error}");
    Ok(())
}

/// The bytes of a checkpoint in the format before there were format versions.
fn unversioned(checkpoint: &Checkpoint) -> Vec<u8> {
    let mut bytes = Vec::new();
    checkpoint.write_to(&mut bytes).expect("memory takes it");
    let header_bytes = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes")) as usize;
    let header: serde_json::Value = serde_json::from_slice(&bytes[8..8 + header_bytes]).expect("a JSON header");
    let mut header = header;
    let strings = header["__metadata__"].as_object_mut().expect("named strings");
    for name in ["brisk.format_version", "brisk.crc32", "train_rows", "valid_rows", "order"] {
        strings.remove(name).expect("it is recorded");
    }
    let text = format!("{:header_bytes$}", header.to_string());
    [&bytes[..8], text.as_bytes(), &bytes[8 + header_bytes..]].concat()
}

#[test]
fn a_checkpoint_without_a_version_is_refused_unless_allowed() -> Result<(), Error> {
    let root = tempfile::tempdir().expect("a temporary folder");
    let (setting, _, _, last) = finished(root.path())?;
    let ready = setting.ready();
    let old = Checkpoint::from_bytes(&unversioned(&last))?;
    let error = resumed(&ready, [&ready.train, &ready.valid], &old, &[]).expect_err("it cannot be checked").to_string();
    assert!(error.contains("format version: none in the checkpoint, 1 here"), "{error}");
    let expected = resumed(&ready, [&ready.train, &ready.valid], &last, &[])?;
    let found = resumed(&ready, [&ready.train, &ready.valid], &old, &[ResumeMismatch::Format])?;
    assert_eq!(found.history, expected.history, "the same values");
    // What it does record is still compared.
    let other = Setting { seed: 2, ..setting }.ready();
    let error = resumed(&other, [&other.train, &other.valid], &old, &[ResumeMismatch::Format]).expect_err("another seed");
    assert!(error.to_string().contains("seed: 1 in the checkpoint, 2 here"), "{error}");
    Ok(())
}

/// Names and contents of all files in a folder.
fn contents(folder: &RunFolder) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder.path()).expect("readable").map(|entry| entry.expect("an entry"));
    let mut files: Vec<_> = entries
        .filter(|entry| entry.file_name() != "run.lock")
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path()).expect("readable")))
        .collect();
    files.sort();
    files
}

#[test]
fn a_refused_checkpoint_changes_nothing_in_the_folder() -> Result<(), Error> {
    let root = tempfile::tempdir().expect("a temporary folder");
    let (setting, mut outputs, folder, last) = finished(root.path())?;
    let before = contents(&folder);
    outputs.config = Some(json!({ "written by": "the second run" }));
    let other = Setting { seed: 2, ..setting.clone() }.ready();
    other.trainer(&cpu(1))?.resume(&last, &mut outputs).expect_err("another seed");
    assert!(contents(&folder) == before, "another seed");

    // A log of a different run.
    let mut longer = last.clone();
    longer.insert_metadata("epoch", 3);
    let error = setting.ready().trainer(&cpu(1))?.resume(&longer, &mut outputs).expect_err("the log has one row");
    assert!(matches!(error, Error::Report(report::Error::ShortLog { .. })), "{error}");
    assert!(contents(&folder) == before, "a log of another run");

    let error = setting.ready().trainer(&cpu(1))?.fit(&mut outputs).expect_err("the folder has a run");
    assert!(matches!(error, Error::Report(report::Error::LogExists { .. })), "{error}");
    assert!(contents(&folder) == before, "a new run");

    setting.ready().trainer(&cpu(1))?.resume(&last, &mut outputs)?;
    let config = fs::read_to_string(folder.config()).expect("readable");
    assert!(config.contains("the second run"), "an accepted one writes its settings: {config}");
    Ok(())
}

#[test]
fn two_runs_do_not_use_one_folder_at_a_time() -> Result<(), Error> {
    let root = tempfile::tempdir().expect("a temporary folder");
    let (setting, mut outputs, folder, last) = finished(root.path())?;
    let path = folder.path().to_owned();
    let (refusals, second) = (std::sync::Arc::<std::sync::Mutex<Vec<Error>>>::default(), setting.clone());
    let seen = refusals.clone();
    outputs.progress = after_each_epoch(move || {
        let folder = Some(RunFolder::open(&path).expect("a run"));
        let (ready, device) = (second.ready(), cpu(1));
        let trainer = ready.trainer(&device).expect("a trainer");
        let mut outputs = Outputs { folder, ..quiet() };
        let errors = [trainer.resume(&last, &mut outputs), trainer.fit(&mut outputs)].map(|run| run.expect_err("it is in use"));
        seen.lock().expect("no panic").extend(errors);
    });
    let last = Checkpoint::load(folder.last())?;
    setting.ready().trainer(&cpu(1))?.resume(&last, &mut outputs)?;
    let refusals = refusals.lock().expect("no panic");
    assert!(!refusals.is_empty(), "the second run was tried");
    for error in refusals.iter() {
        assert!(matches!(error, Error::RunInUse { .. }), "{error}");
    }
    drop((outputs, folder));
    let n_locks = fs::read_dir(root.path()).expect("readable").flatten().filter(|entry| entry.path().join("run.lock").exists());
    assert_eq!(n_locks.count(), usize::from(cfg!(not(unix))), "the lock goes with the run");
    Ok(())
}

#[test]
fn a_run_that_is_stopped_in_its_first_epoch_says_where_its_checkpoint_is() -> Result<(), Error> {
    let ready = Setting::default().ready();
    let expected = ready.fit(&cpu(1))?;
    let root = tempfile::tempdir().expect("a temporary folder");
    let (mut outputs, folder) = into_folder(root.path());
    outputs.stop.request();
    let error = ready.trainer(&cpu(1))?.fit(&mut outputs).expect_err("there is no result yet");
    assert!(matches!(&error, Error::NoEpoch { checkpoint: Some(path), .. } if *path == folder.last()), "{error}");
    let said = error.to_string();
    assert!(said.contains(&format!("a checkpoint was written to {}", folder.last().display())), "{said}");
    outputs.stop.clear();
    let device = cpu(1);
    let report = ready.trainer(&device)?.resume(&Checkpoint::load(folder.last())?, &mut outputs)?;
    assert_eq!((report.ended, &report.history), (Ended::MaxEpochs, &expected.0.history), "as without the interruption");
    assert!(device.read::<f32>(ready.params.values())? == expected.1, "bit for bit");

    let mut nowhere = quiet();
    nowhere.stop.request();
    let error = ready.trainer(&cpu(1))?.fit(&mut nowhere).expect_err("there is no result yet").to_string();
    assert!(error.ends_with("no checkpoint was written"), "{error}");
    Ok(())
}
