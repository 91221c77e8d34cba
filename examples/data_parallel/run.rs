//! A replica's run, read straight down.

use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use brisk_examples::higgs::{Data, Network, Outcome};
use brisk_examples::print;
use brisk_loader::Order;
use brisk_nn::tensor::Graph;
use brisk_train::metrics::roc_auc;
use brisk_train::{
    DataParallel, Feed, FeedConfig, FeedProbe, Outputs, Progress, RunFolder, Scorer, StopFlag, Trainer, TrainerConfig, mebibytes,
    thousands,
};
use serde_json::{Value, json};

use crate::options::Options;
use crate::place::Place;
use crate::{folder, texts};

/// What a replica's run came to, with what it knows of the others.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) outcome: Outcome,
    pub(crate) everybody: Vec<String>,
    pub(crate) engine: String,
    /// Reductions done, MiB of them, and how much of their time nobody waited for.
    pub(crate) n_reductions: u64,
    pub(crate) reduced_mebibytes: String,
    pub(crate) hidden: f64,
    /// Bytes of parameters, gradients and what the optimizer keeps, on each.
    pub(crate) state_bytes: usize,
}

/// Trains as one of the replicas.
pub(crate) fn train(
    replicas: &DataParallel,
    data: &Data,
    options: &Options,
    stop: &StopFlag,
    started: Instant,
) -> Result<Finished> {
    let run = &options.run;
    let is_first = replicas.rank() == 0;
    let note = |said: &str| {
        if is_first {
            print::note(said)
        }
    };

    // Who takes part, and where.
    let Place { device, everybody } = Place::take(replicas, &options.devices)?;
    everybody.iter().for_each(|one| note(one));
    note(&format!("{} replicas by {}", replicas.world_size(), replicas.engine()));

    // The same rows, split and model on each; what differs between them is told before anything is trained.
    let n_cols = data.train.n_cols();
    let [train_part, valid_part] = brisk_loader::split(&data.train, run.seed, [0.9, 0.1])?;
    let Network { model, params, optimizer } = Network::new(n_cols, run).try_map(|params| replicas.divide(params))?;
    let config = TrainerConfig { checkpoint_every: options.checkpoint_every, ..run.trainer_config() };
    let feed = FeedConfig::default();
    let trainer = Trainer::with_replicas(&device, &model, &params, &optimizer, &train_part, &valid_part, config, &feed, replicas);
    let trainer = data.of_train(trainer)?;
    trainer.warnings().iter().for_each(|warning| note(&format!("warning: {warning}")));
    let test_labels = data.test_labels()?;
    let test_rows = data.of_test(Feed::new(&device, "test", &data.test, Order::Sequential, TEST_ROWS, &feed))?;
    let tester = Scorer::with_replicas(&device, &model, &params, &test_rows, trainer.scale(), run.precision, replicas)?;
    let probe = FeedProbe::new(&device, trainer.train_rows(), trainer.scale())?;
    let [step, evaluation] = trainer.graphs();
    let planned_peak_bytes = Graph::planned_peak_bytes(&[step, evaluation, tester.graph(), probe.graph()])?;
    let [n_train_rows, n_test_rows] = [data.train.n_rows(), test_labels.len()];
    note(&format!("rows: {} of {n_cols} columns, {} to test on", thousands(n_train_rows as u64), thousands(n_test_rows as u64)));
    note(&format!("parameters: {}", thousands(params.n_trained() as u64)));
    let resolved = run.precision.resolved(&device).to_string();
    note(&format!("precision: {}, {resolved}", run.precision));
    let state_bytes = trainer.memory()?.state();
    note(&format!("parameters, gradients and optimizer on each replica: {}", mebibytes(state_bytes as u64)));
    note(&format!("planned peak memory of each replica: {}", mebibytes(planned_peak_bytes as u64)));

    // The first says where the run's files are and what it goes on from; no replica begins elsewhere than its peers.
    let (folder, checkpoint) = place_of_files(replicas, options, &data.train, &device.info().to_string())?;
    let checkpoint = checkpoint.map(|path| folder::load(Path::new(&path)).map(|checkpoint| (path, checkpoint))).transpose()?;
    // Rows for one replica alone, on a machine that is otherwise idle.
    let loader_rows_per_s = if is_first { probe.rows_per_s()? } else { 0.0 };
    let mut outputs = Outputs {
        progress: if is_first { Progress::stderr(run.epochs, trainer.train_rows().n_rows() as u64) } else { Progress::quiet() },
        folder: Some(folder.clone()),
        stop: stop.clone(),
    };
    let report = match &checkpoint {
        None => trainer.fit(&mut outputs)?,
        Some((path, checkpoint)) => {
            note(&format!("going on from {path}"));
            trainer.resume(checkpoint, &mut outputs)?
        }
    };
    let test_auc = roc_auc(&tester.scores()?, &test_labels)?;

    let outcome = Outcome {
        device: device.info().clone(),
        resolved,
        n_train_rows,
        n_test_rows,
        n_parameters: params.n_trained(),
        loader_rows_per_s,
        report,
        test_auc,
        planned_peak_bytes,
        allocated_bytes: device.allocated_bytes(),
        seconds: started.elapsed().as_secs_f64(),
        folder: Some(folder.path().to_owned()),
    };
    let overlap = replicas.overlap();
    let share_waited = overlap.waiting().as_secs_f64() / overlap.reducing().as_secs_f64();
    Ok(Finished {
        outcome,
        state_bytes,
        everybody,
        engine: replicas.engine().to_owned(),
        n_reductions: overlap.n_reductions(),
        reduced_mebibytes: mebibytes(overlap.reduced_bytes()),
        hidden: (1.0 - share_waited).max(0.0),
    })
}

/// Rows scored at a time, of all replicas together.
const TEST_ROWS: usize = 1024;

fn place_of_files(
    replicas: &DataParallel,
    options: &Options,
    train: &brisk_table::Table,
    device: &str,
) -> Result<(RunFolder, Option<String>)> {
    let mut said = [String::new(), String::new()];
    if replicas.rank() == 0 {
        let mut config: Value = options.run.config(device, train.column_names());
        config["replicas"] = json!(replicas.world_size());
        config["wire"] = json!(format!("{:?}", options.wire).to_lowercase());
        config["zero"] = json!(format!("{:?}", options.zero).to_lowercase());
        let folder::Place { folder, checkpoint } = folder::found(options, &config)?;
        said = [folder.path().display().to_string(), checkpoint.map_or(String::new(), |path| path.display().to_string())];
    }
    let [folder, checkpoint] = said.map(|mine| texts::gather(replicas, &mine).map(|all| all[0].clone()));
    Ok((RunFolder::create_at(Path::new(&folder?))?, Some(checkpoint?).filter(|path| !path.is_empty())))
}
