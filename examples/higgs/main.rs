//! From a file of collisions to a trained network: simulate or import, train with early stopping, test.
//!
//! `cargo run --release --example higgs -- --help`

mod options;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use brisk_examples::higgs::stopped::StartedBy;
use brisk_examples::higgs::{Data, Network, Outcome, Place, stopped};
use brisk_examples::{command_line, higgs, print, write_json};
use brisk_loader::{Order, RowSource as _};
use brisk_nn::tensor::Graph;
use brisk_report::{closing_table, mebibytes, thousands};
use brisk_train::metrics::roc_auc;
use brisk_train::{
    Binary, Checkpoint, Feed, FeedProbe, Outputs, Progress, ResidentRows, Scorer, StopFlag, Trainable, Trainer, TrainerConfig,
};

use options::Options;

fn main() -> ExitCode {
    command_line::run(run)
}

fn run(options: Options) -> Result<ExitCode> {
    let Options { device, run: options, place } = options;
    // First: the checks create files for a moment.
    let stop = StopFlag::on_signals()?;
    options.check(Some(&place))?;
    place.check::<Options>()?;
    let started = Instant::now();

    // Where it runs.
    let device = device.builder().open()?;
    print::note(format_args!("device: {}", device.info()));

    // The rows: a tenth of the training rows is held out for early stopping.
    let data = match Data::open(&options, &stop, &|said| print::note(said)) {
        Ok(data) => data,
        Err(error) => return stopped::without_results(error, &stop, StartedBy::CommandLine),
    };
    let (n_train_rows, n_cols) = (data.train.n_rows(), data.train.n_cols());
    let [train_part, valid_part] = brisk_loader::split(&data.train, options.seed, [0.9, 0.1])?;

    // The model.
    let Network { model, params, optimizer } = Network::new(n_cols, &options);

    // One step and one evaluation, recorded and laid out in memory before anything runs.
    let config = TrainerConfig { checkpoint_every: place.checkpoint_every, ..options.trainer_config() };
    let trainer = Trainer::new(&device).config(config).prepare(
        Trainable::new(&model, &params, &optimizer),
        &Binary::new(),
        &train_part,
        &valid_part,
    );
    let trainer = data.of_train(trainer)?;
    trainer.warnings().iter().for_each(|warning| print::note(format_args!("warning: {warning}")));
    let test_labels = data.test_labels()?;
    let test_rows = data.of_test(ResidentRows::upload(&device, "test", &data.test))?;
    let test_rows = Feed::of_resident(&test_rows, Order::Sequential, 1024);
    let tester = Scorer::new(&device, &model, &params, &test_rows, trainer.scale(), options.precision)?;
    let feed = FeedProbe::new(&device, trainer.train_rows(), trainer.scale())?;
    let [step, evaluation] = trainer.graphs();
    let planned_peak_bytes = Graph::planned_peak_bytes(&[step, evaluation, tester.graph(), feed.graph()])?;
    drop(data.test);
    print::note(format_args!(
        "rows: {} of {n_cols} columns, {} to test on",
        thousands(n_train_rows as u64),
        thousands(test_labels.len() as u64)
    ));
    print::note(format_args!("training rows on the device: {}", trainer.train_rows().fact()));
    print::note(format_args!("parameters: {}", thousands(params.n_trained() as u64)));
    let resolved = options.precision.resolved(&device).to_string();
    print::note(format_args!("precision: {}, {resolved}", options.precision));
    print::note(format_args!("planned peak memory: {}", mebibytes(planned_peak_bytes as u64)));

    // The run, in a folder of its own or from a checkpoint in it.
    let config = options.config(&device.info().to_string(), data.train.names().columns);
    let note = |said: &str| print::note(said);
    let found = Place::find(&place, &options, 1, &config, &note)?;
    let checkpoint = found.load(&place, |path| Checkpoint::load(path), true, &note)?;
    let folder = found.folder;
    let loader_rows_per_s = feed.rows_per_s()?;
    let mut outputs = Outputs {
        progress: Progress::stderr(options.epochs, trainer.train_rows().n_rows() as u64),
        folder: Some(folder.clone()),
        store: place.store()?,
        config: Some(config),
        stop: stop.clone(),
        ..Outputs::default()
    };
    let report = match higgs::train(&trainer, checkpoint, &place, &mut outputs, &note) {
        Ok(report) => report,
        Err(error) => return stopped::without_results(error, &stop, StartedBy::CommandLine),
    };
    let exit_code = stopped::finish(&report, stop.signal(), &folder.last(), StartedBy::CommandLine);
    let test_auc = roc_auc(&tester.scores()?, &test_labels)?;

    // The results.
    let outcome = Outcome {
        device: device.info().clone(),
        resolved,
        n_train_rows,
        n_test_rows: test_labels.len(),
        n_parameters: params.n_trained(),
        loader_rows_per_s,
        report,
        test_auc,
        planned_peak_bytes,
        allocated_bytes: device.allocated_bytes(),
        seconds: started.elapsed().as_secs_f64(),
        folder: Some(folder.path().to_owned()),
    };
    let written = options.json.as_ref().map_or(Ok(()), |path| write_json(path, &outcome.json(&options)));
    print::result(closing_table(&outcome.lines(&options)))?;
    written.map(|()| exit_code)
}
