//! Checkpoints of several files of which each replica reads what it needs.

use std::fs;
use std::path::Path;

use brisk_loader::Rows;
use brisk_nn::{Activation, Mlp, MlpConfig};
use brisk_train::{
    CheckpointFiles, DataParallelConfig, Error, Model, Outputs, Regression, RunFolder, Trainer, TrainerConfig, Wire, ZeroStage,
    run_threads,
};

use crate::gpu::cpu;
use crate::replicas::CONFIG;
use crate::run::{Setting, into_folder, quiet};

/// Enough parameters that headers are a small part of a file.
fn wide() -> Setting {
    let config = TrainerConfig { max_epochs: 1, ..Setting::default().config };
    Setting { hidden: vec![128, 128, 128], n_rows: 100, n_valid: 64, config, ..Setting::default() }
}

fn config(zero: ZeroStage, wire: Wire) -> DataParallelConfig {
    DataParallelConfig { zero, wire, files: CheckpointFiles::OneAReplica, ..CONFIG }
}

/// The checkpoint that `n` replicas write.
fn written(root: &Path, n: usize, config: DataParallelConfig) -> Result<RunFolder, Error> {
    let (_, folder) = into_folder(root);
    run_threads(n, &config, |replica| {
        let ready = wide().ready().sharded(replica)?;
        let device = cpu(1);
        let mut outputs = Outputs { folder: (replica.rank() == 0).then(|| folder.clone()), ..quiet() };
        ready.on_replica(&device, replica)?.fit(&mut outputs).map(drop)
    })?;
    Ok(folder)
}

/// The bytes that this thread has read by system calls.
#[cfg(target_os = "linux")]
fn n_read() -> u64 {
    let io = fs::read_to_string("/proc/thread-self/io").expect("Linux has it");
    let line = io.lines().find_map(|line| line.strip_prefix("rchar: "));
    line.and_then(|n| n.parse().ok()).expect("it is the first line")
}

#[cfg(target_os = "linux")]
#[test]
fn each_replica_reads_its_share_whatever_number_wrote_it() -> Result<(), Error> {
    for (n_writers, zero, wire) in
        [(4, ZeroStage::Parameters, Wire::F32), (3, ZeroStage::Optimizer, Wire::Bf16), (2, ZeroStage::Gradients, Wire::F32)]
    {
        let root = tempfile::tempdir().expect("a folder for a while");
        let folder = written(root.path(), n_writers, config(zero, wire))?;
        let files = fs::read_dir(folder.path()).expect("a folder").map(|entry| entry.expect("an entry"));
        let is_last = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with("last-");
        let n_bytes: u64 = files.filter(is_last).map(|entry| entry.metadata().expect("a file").len()).sum();
        for (n, zero) in [(4, ZeroStage::Parameters), (4, ZeroStage::Optimizer), (2, ZeroStage::Gradients)] {
            let read = run_threads(n, &config(zero, wire), |replica| {
                let ready = wide().ready().sharded(replica)?;
                let device = cpu(1);
                let training = ready.on_replica(&device, replica)?;
                let before = n_read();
                training.load_checkpoint(folder.last())?;
                Ok::<_, Error>(n_read() - before)
            })?;
            // Headers, the index, and this text.
            let more = 40_000;
            assert!(n_bytes > 500_000, "{n_bytes} bytes");
            assert!(read.iter().sum::<u64>() >= n_bytes, "all of it: {read:?} of {n_bytes} bytes");
            // The rounding errors of a replica are as many as there are parameters, and are read by one replica.
            let share = if wire == Wire::F32 { n_bytes / n as u64 * 105 / 100 } else { n_bytes * 6 / 10 };
            assert!(read.iter().all(|&read| read <= share + more), "{n_writers} to {n}, {zero:?}: {read:?} of {n_bytes} bytes");
        }
    }
    Ok(())
}

#[test]
fn what_one_replica_cannot_read_is_an_error_of_all() -> Result<(), Error> {
    let root = tempfile::tempdir().expect("a folder for a while");
    let config = config(ZeroStage::Optimizer, Wire::F32);
    let folder = written(root.path(), 2, config)?;
    let errors = |words: &[&str]| {
        let said = run_threads(3, &config, |replica| {
            let ready = wide().ready().sharded(replica)?;
            let device = cpu(1);
            let training = ready.on_replica(&device, replica)?;
            Ok::<_, Error>(training.load_checkpoint(folder.last()).expect_err("refused").to_string())
        });
        for said in said.expect("errors are those of loading") {
            assert!(words.iter().all(|word| said.contains(word)), "{words:?} in {said}");
        }
    };
    let name = "last-1-00002-of-00002.safetensors";
    let path = folder.path().join(name);
    let bytes = fs::read(&path).expect("it is there");
    // One bit of the header, and of values of each third of the file.
    for at in [12, bytes.len() / 4, bytes.len() / 2, bytes.len() - 1] {
        let mut changed = bytes.clone();
        changed[at] ^= 4;
        fs::write(&path, changed).expect("there is room");
        errors(&[name]);
    }
    fs::write(&path, &bytes[..bytes.len() - 4]).expect("there is room");
    errors(&[name, "4 are missing"]);
    fs::remove_file(&path).expect("it is there");
    errors(&[name, "missing"]);
    Ok(())
}

/// A part of a checkpoint is not one.
#[test]
fn a_part_cannot_be_saved_or_taken_for_the_whole() -> Result<(), Error> {
    let root = tempfile::tempdir().expect("a folder for a while");
    let config = config(ZeroStage::Parameters, Wire::F32);
    let folder = written(root.path(), 2, config)?;
    let found = run_threads(2, &config, |replica| {
        let ready = wide().ready().sharded(replica)?;
        let device = cpu(1);
        let part = ready.on_replica(&device, replica)?.load_checkpoint(folder.last())?;
        let path = root.path().join(format!("part-{}", replica.rank()));
        let error = part.save(&path).expect_err("refused").to_string();
        assert!(error.contains("DataParallel::load_checkpoint") && !path.exists(), "{error}");
        let matrix = part.f32("layers.1.weight", &[128, 128]).map(drop).map_err(|error| error.to_string());
        Ok::<_, Error>((part.fingerprint(), matrix))
    })?;
    assert_eq!(found[0].0, found[1].0, "of the same checkpoint");
    let refused = found.iter().filter_map(|(_, matrix)| matrix.as_ref().err()).collect::<Vec<_>>();
    assert!(!refused.is_empty(), "at most one of them has all elements");
    assert!(refused.iter().all(|error| error.contains("DataParallel::load_checkpoint")), "{refused:?}");
    Ok(())
}

#[test]
fn the_trainer_resumes_from_the_path_of_a_checkpoint() -> Result<(), Error> {
    let root = tempfile::tempdir().expect("a folder for a while");
    let x: Vec<f32> = (0..96).map(|row| row as f32 / 48.0 - 1.0).collect();
    let labels = x.iter().map(|x| x * x).collect::<Vec<_>>();
    let rows = Rows::new(x, labels, 1).expect("one column");
    let sizes = MlpConfig { n_inputs: 1, hidden: vec![8], n_outputs: 1, activation: Activation::tanh() };
    let run = |folder: &RunFolder, epochs, from: Option<&Path>| {
        run_threads(2, &config(ZeroStage::Parameters, Wire::F32), |replicas| {
            let mut model = Model::new(7, |params| Mlp::new(params, &sizes));
            let mut trainer = Trainer::new(&cpu(1)).batch_rows(16).max_epochs(epochs).folder(folder).replicas(replicas);
            let task = Regression::mse();
            match from {
                None => trainer.fit(&mut model, &task, &rows, &rows),
                Some(path) => trainer.resume_from(&mut model, path, &task, &rows, &rows),
            }?;
            model.predict(&rows)
        })
    };
    let [in_two, at_once] = ["in_two", "at_once"].map(|name| RunFolder::create_at(&root.path().join(name)).expect("a folder"));
    run(&in_two, 2, None)?;
    let resumed = run(&in_two, 4, Some(&in_two.last()))?;
    assert_eq!(resumed, run(&at_once, 4, None)?, "bit-identical to a run without a break");
    let missing = run(&in_two, 5, Some(&root.path().join("none.safetensors"))).expect_err("there is no file");
    assert!(missing.to_string().contains("none.safetensors"), "{missing}");
    Ok(())
}
