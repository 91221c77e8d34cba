//! The run of one replica, in order.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Result, bail};
use brisk_examples::elsewhere::checkpoint_store;
use brisk_examples::higgs::{Data, Network, Outcome, Place};
use brisk_examples::{higgs, print};
use brisk_loader::RowSource as _;
use brisk_nn::tensor::Graph;
use brisk_replicate::buckets;
use brisk_report::{mebibytes, thousands};
use brisk_train::metrics::roc_auc;
use brisk_train::{
    Binary, Checkpoint, CheckpointFiles, DataParallel, Ended, Error, Feed, FeedConfig, FeedProbe, Outputs, Progress, RunFolder,
    Scorer, StopFlag, StopSignal, Trainable, Trainer, TrainerConfig, Training,
};
use serde_json::{Value, json};

use crate::options::Options;
use crate::replica_device::ReplicaDevice;
use crate::streamed;
use crate::texts;

/// The result of a replica's run, and what it knows about the others.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) outcome: Outcome,
    /// The flag that may have stopped it, and where the newest checkpoint then is.
    pub(crate) stop: StopFlag,
    pub(crate) checkpoint: PathBuf,
    pub(crate) everybody: Vec<String>,
    pub(crate) engine: String,
    /// The number of reductions, their size in MiB, and the share of their time that was hidden behind computation.
    pub(crate) n_reductions: u64,
    pub(crate) reduced_mebibytes: String,
    pub(crate) hidden: f64,
    /// Bytes of parameters, gradients and optimizer state on each replica.
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

    // The replicas and their devices.
    let ReplicaDevice { device, everybody } = ReplicaDevice::open(replicas, &options.devices)?;
    everybody.iter().for_each(|one| note(one));
    note(&format!("{} replicas by {}", replicas.world_size(), replicas.engine()));

    // The same rows, split and model on each; a difference between them is an error before anything is trained. Rows that are
    // streamed are split in another way.
    let stream = options.stream.map_or_else(|| "none".to_owned(), |mebibytes| mebibytes.to_string());
    replicas.agree(vec![("stream".to_owned(), stream)])?;
    let n_cols = data.train.n_cols();
    let [train_part, valid_part] = streamed::parts(&data.train, options)?;
    let Network { model, params, optimizer } = Network::new(n_cols, run).try_map(|params| replicas.shard_parameters(params))?;
    let config = TrainerConfig { checkpoint_every: options.place.checkpoint_every, ..run.trainer_config() };
    let feed = streamed::feed(options);
    let trainer = Trainer::new(&device).config(config).feed(&feed).replicas(replicas).prepare(
        Trainable::new(&model, &params, &optimizer),
        &Binary::new(),
        &train_part,
        &valid_part,
    );
    let trainer = data.of_train(trainer)?;
    trainer.warnings().iter().for_each(|warning| note(&format!("warning: {warning}")));
    let test_labels = data.test_labels()?;
    let test_rows = data.of_test(Feed::new(
        &device,
        "test",
        &data.test,
        streamed::test_order(&data.test, TEST_ROWS, options, replicas),
        TEST_ROWS,
        &FeedConfig { order: None, rank: replicas.shard(), ..feed.clone() },
    ))?;
    let tester = Scorer::with_replicas(&device, &model, &params, &test_rows, trainer.scale(), run.precision, replicas)?;
    let probe = FeedProbe::new(&device, trainer.train_rows(), trainer.scale())?;
    let [step, evaluation] = trainer.graphs();
    let planned_peak_bytes = Graph::planned_peak_bytes(&[step, evaluation, tester.graph(), probe.graph()])?;
    let [n_train_rows, n_test_rows] = [data.train.n_rows(), test_labels.len()];
    note(&format!("rows: {} of {n_cols} columns, {} to test on", thousands(n_train_rows as u64), thousands(n_test_rows as u64)));
    note(&format!("parameters: {}", thousands(params.n_trained() as u64)));
    let resolved = run.precision.resolved(&device).to_string();
    note(&format!("precision: {}, {resolved}", run.precision));
    let ranges: Vec<_> = params.entries().iter().map(|entry| entry.range.clone()).collect();
    let n_buckets = buckets(&ranges, size_of::<f32>(), options.parallel().buckets).len();
    if options.checkpoint_files == CheckpointFiles::OneAReplica && n_buckets < replicas.world_size() {
        note(&format!(
            "warning: with `--checkpoint-files each`, a bucket of parameters is written by one replica; there are {n_buckets}, so that the files of other replicas are empty: a smaller `--bucket-mb` makes more"
        ));
    }
    let state_bytes = trainer.memory()?.state();
    note(&format!("parameters, gradients and optimizer on each replica: {}", mebibytes(state_bytes as u64)));
    note(&format!("planned peak memory of each replica: {}", mebibytes(planned_peak_bytes as u64)));

    // Replica 0 finds the run's folder and the checkpoint to resume from; the others load the same.
    let mut config: Value = run.config(&device.info().to_string(), data.train.names().columns);
    config["replicas"] = json!(replicas.world_size());
    config["wire"] = json!(format!("{:?}", options.wire).to_lowercase());
    config["zero"] = json!(format!("{:?}", options.zero).to_lowercase());
    let (folder, checkpoint) = place_of_all(replicas, &trainer, options, &config, &note)?;
    // The probe runs on one replica while the machine is otherwise idle.
    let loader_rows_per_s = if is_first { probe.rows_per_s()? } else { 0.0 };
    let mut outputs = Outputs {
        progress: if is_first { Progress::stderr(run.epochs, trainer.train_rows().n_rows() as u64) } else { Progress::quiet() },
        folder: Some(folder.clone()),
        store: options.place.store()?,
        config: Some(config),
        stop: stop.clone(),
        ..Outputs::default()
    };
    let trained = higgs::train(&trainer, checkpoint, &options.place, &mut outputs, &note);
    let is_stopped = match &trained {
        Ok(report) => report.ended == Ended::Stopped,
        Err(error) => matches!(error.downcast_ref(), Some(Error::NoEpoch { .. })),
    };
    if is_stopped {
        share_signal(replicas, stop)?;
    }
    let report = trained?;
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
        stop: stop.clone(),
        checkpoint: folder.last(),
        state_bytes,
        everybody,
        engine: replicas.engine().to_owned(),
        n_reductions: overlap.n_reductions(),
        reduced_mebibytes: mebibytes(overlap.reduced_bytes()),
        hidden: (1.0 - share_waited).max(0.0),
    })
}

/// Sets the flag of this replica to the signal of the first replica that has received one, which stops all of them.
fn share_signal(replicas: &DataParallel, stop: &StopFlag) -> Result<()> {
    let mine = stop.signal().map_or(String::new(), |signal| signal.number().to_string());
    let all = texts::gather(replicas, &mine)?;
    let mut signals = [StopSignal::Interrupt, StopSignal::Terminate, StopSignal::Hangup].into_iter();
    let first = all.iter().find(|number| !number.is_empty());
    if let Some(signal) = signals.find(|signal| first.is_some_and(|number| *number == signal.number().to_string())) {
        stop.request_by(signal);
    }
    Ok(())
}

/// Rows scored at a time, of all replicas together.
const TEST_ROWS: usize = 1024;

/// The folder of the run's files and the checkpoint that it resumes from, on every replica.
fn place_of_all(
    replicas: &DataParallel,
    trainer: &Training<'_>,
    options: &Options,
    config: &Value,
    note: &dyn Fn(&str),
) -> Result<(RunFolder, Option<(PathBuf, Checkpoint)>)> {
    let found = match replicas.rank() {
        0 => Some(Place::find(&options.place, &options.run, replicas.world_size(), config, note)?),
        _ => None,
    };
    let said = found.as_ref().map_or_else(Default::default, |place| {
        let checkpoints: Vec<String> = place.checkpoints.iter().map(|path| path.display().to_string()).collect();
        [place.folder.path().display().to_string(), checkpoints.join("\0"), place.in_store.to_string()]
    });
    let [folder, checkpoints, in_store] = said.map(|mine| texts::gather(replicas, &mine).map(|all| all[0].clone()));
    let [folder, checkpoints, in_store] = [folder?, checkpoints?, in_store?];
    let checkpoints = checkpoints.split('\0').filter(|path| !path.is_empty()).map(PathBuf::from).collect();
    let create = || {
        let folder = RunFolder::create_at(Path::new(&folder))?;
        Ok::<_, Error>(Place { folder, checkpoints, in_store: in_store == "true" })
    };
    let place = found.map_or_else(create, Ok);
    // A replica that cannot use the folder that the others can ends the run on all of them, with its name.
    let errors = texts::gather(replicas, &place.as_ref().err().map_or(String::new(), |error| format!("{error:#}")))?;
    let place = match errors.iter().position(|error| !error.is_empty()) {
        Some(rank) => bail!("rank {rank}: {}", errors[rank]),
        None => place?,
    };
    let store = options.place.fetched_from().filter(|_| place.in_store).map(checkpoint_store).transpose()?;
    // Each replica reads what it needs.
    let load = |path: &Path| match &store {
        Some(store) => trainer.load_checkpoint_from(&**store, &path.display().to_string()),
        None => trainer.load_checkpoint(path),
    };
    let checkpoint = place.load(&options.place, load, replicas.rank() == 0, note)?;
    let shown = |(path, checkpoint): (PathBuf, _)| match &store {
        Some(store) => (PathBuf::from(store.name_of(&path.display().to_string())), checkpoint),
        None => (path, checkpoint),
    };
    Ok((place.folder, checkpoint.map(shown)))
}
