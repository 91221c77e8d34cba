//! Trains a small network on any images: a folder of classes, MNIST and its relatives, CIFAR-10 or CIFAR-100.
//!
//! `cargo run --release --example images -- --data FOLDER`

mod options;

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use brisk_examples::elsewhere::{LocalFile, is_url};
use brisk_examples::higgs::stopped::{self, StartedBy};
use brisk_examples::{check_files_differ, check_output, check_outside, command_line, print, write_json};
use brisk_loader::RowSource;
use brisk_report::{closing_table, rows_per_second, seconds, thousands};
use brisk_table::{ImagesOptions, printable};
use brisk_train::report::ImageGrid;
use brisk_train::{Classification, Ended, FeedChoice, FeedConfig, Limit, Model, Standardisation, StopFlag, Trainable, Trainer};
use brisk_vision::{Recipe, View, WithViews};
use brisk_vision_examples::images::{Costs, ImageSet, KeepTables, check_ghost_batches, standardised};
use serde_json::json;

use options::Options;

/// The number of wrong predictions that the report shows.
const N_WRONG: usize = 30;

fn main() -> ExitCode {
    command_line::run(run)
}

fn run(options: Options) -> Result<ExitCode> {
    // First: the check creates a file for a moment.
    let stop = StopFlag::on_signals()?;
    check(&options)?;
    let device = options.device.builder().open()?;
    print::note(format_args!("device: {}", device.info()));

    // The images: bytes in a table, which also stay bytes on the device.
    let images = ImagesOptions {
        channels: options.channels,
        size: options.size,
        bad_files: options.bad_files,
        ..ImagesOptions::default()
    };
    let keep = options.save_tables.as_deref().map_or(KeepTables::No, KeepTables::In);
    let data = LocalFile::of(&options.data)?;
    let set = ImageSet::open(data.path(), images, keep, &stop)?;
    let [train, valid] = set.split(options.seed)?;
    let (image, n_classes) = (set.image(), set.classes().len());
    let [height, width, n_channels] = image;
    print::note(format_args!(
        "images: {height} x {width} pixels of {n_channels} channels, {n_classes} classes; {} to train on, {} {}",
        thousands(train.n_rows() as u64),
        thousands(valid.n_rows() as u64),
        if set.has_test() { "to test with" } else { "held out for validation" }
    ));

    // The recipe: network, augmentation, optimizer, schedule.
    let recipe = fitted(&options, options.recipe.recipe(image, n_classes)?, train.n_rows())?;
    let epoch_steps = recipe.epoch_steps(train.n_rows());
    let n_steps = recipe.n_steps(train.n_rows());
    let n_epochs = n_steps.div_ceil(epoch_steps);
    let started = Instant::now();
    let mut model = Model::new(options.seed, |params| recipe.build(params));
    print::note(format_args!(
        "network: {} parameters; {n_steps} steps of {} images",
        thousands(model.params().n_trained() as u64),
        recipe.batch_rows
    ));
    let scale = Standardisation::of("train", &train)?.per_channel(n_channels)?;
    let network = model.module().clone();
    let whitened = standardised(&train, recipe.whitening.n_images, &scale)?;
    recipe.initialise(&network, model.params_mut(), &device, &whitened)?;

    // Training.
    let task = Classification::of(n_classes).label_smoothing(recipe.label_smoothing);
    let mut trainer = Trainer::new(&device)
        .batch_rows(recipe.batch_rows)
        .max_epochs(n_epochs)
        .configure(|config| config.validate_every = if options.recipe.ends_with_average() { n_epochs } else { 1 })
        .max_steps(n_steps)
        .configure(|config| config.limit_train_batches = Some(Limit::Batches(epoch_steps)))
        .precision(options.precision)
        .seed(options.seed)
        .schedule(recipe.schedule(train.n_rows()))
        .try_optimizer(|params| recipe.optimizer(&network, params, train.n_rows()))
        .standardisation(scale)
        .feed(&FeedConfig { choice: FeedChoice::Resident, ..FeedConfig::default() })
        .augment(recipe.augment(options.seed))
        .stop_on(&stop)
        .progress();
    if let Some(ema) = recipe.ema(train.n_rows()) {
        trainer = trainer.ema(ema);
    }
    if let Some(path) = &options.report {
        trainer = trainer.report(path).class_names(set.classes()).report_panels(|scored| {
            let wrong = ImageGrid::wrong_predictions(&valid, image, scored, set.classes(), N_WRONG)?;
            Ok(if wrong.is_empty() { vec![] } else { vec![wrong.into()] })
        });
    }
    let costs = match &options.json {
        None => None,
        Some(_) => {
            let params = model.params();
            let optimizer = recipe.optimizer(&network, params, train.n_rows())?;
            Some(Costs::of(&device, &trainer, Trainable::new(&network, params, &*optimizer), &task, &train, &valid)?)
        }
    };
    let report = match trainer.fit(&mut model, &task, &train, &valid) {
        Ok(report) => report,
        Err(error) => return stopped::without_results(error.into(), &stop, StartedBy::CommandLine),
    };
    report.warnings.iter().for_each(|warning| print::note(format_args!("warning: {warning}")));
    if report.ended == Ended::Stopped {
        print::note("error: interrupted; no model was written");
        return Ok(stopped::status(&stop, ExitCode::FAILURE));
    }

    // The results.
    model.save(&options.model)?;
    let judge = Classification::of(n_classes);
    let plain = model.evaluate(&judge, &valid)?;
    let n_parameters = model.params().n_trained();
    let mut lines = vec![("accuracy", percent(plain.get("accuracy")))];
    let mut with_views_accuracy = None;
    if recipe.views != View::plain() {
        let views = recipe.views.clone();
        let with_views = model.map(|network| WithViews { model: network, image, views });
        with_views_accuracy = with_views.evaluate(&judge, &valid)?.get("accuracy");
        lines.push(("with views", percent(with_views_accuracy)));
    }
    if let Some(path) = &options.json {
        // Without a test set, the images that were held out.
        let set_name = if set.has_test() { "test" } else { "valid" };
        let mut results = json!({
            "device": device.info().to_string(), "executor": device.info().kind.executor(), "seed": options.seed, "rows": train.n_rows(),
            "epochs": report.n_epochs, "best_epoch": report.best_epoch, "seconds": started.elapsed().as_secs_f64(),
            "train_seconds": report.train_seconds, "loader_rows_per_s": costs.map(|costs| costs.loader_rows_per_s),
            "train_rows_per_s": report.train_rows_per_s, "planned_peak_bytes": costs.map(|costs| costs.planned_peak_bytes),
            "precision": options.precision.to_string(), "simulated": false, "parameters": n_parameters, "ended": report.ended.to_string(),
            "model": options.model.to_string_lossy(),
        });
        results[format!("{set_name}_accuracy")] = plain.get("accuracy").into();
        if let Some(accuracy) = with_views_accuracy {
            results[format!("{set_name}_accuracy_with_views")] = accuracy.into();
        }
        write_json(path, &results)?;
    }
    lines.extend([
        ("epochs", format!("{} (best: {})", report.n_epochs, report.best_epoch)),
        ("training", format!("{} images/s", rows_per_second(report.train_rows_per_s))),
        ("time", seconds(started.elapsed().as_secs_f64())),
        ("model", printable(&options.model).to_string()),
    ]);
    lines.extend(options.report.iter().map(|path| ("report", printable(path).to_string())));
    lines.extend(options.save_tables.iter().map(|path| ("tables", format!("{0}, which `--data {0}` opens", printable(path)))));
    print::result(closing_table(&lines).trim_end())?;
    Ok(ExitCode::SUCCESS)
}

/// Checks the output paths before anything is read.
fn check(options: &Options) -> Result<()> {
    options.server.apply([options.data.as_path()])?;
    ensure!(
        is_url(&options.data) || options.data.exists(),
        "{}: cannot open the images: there is no such file or folder",
        printable(&options.data)
    );
    if options.model == Path::new(options::MODEL) {
        let folder = options.model.parent().context("the default has a folder")?;
        std::fs::create_dir_all(folder).with_context(|| format!("{}: cannot create the folder", printable(folder)))?;
    }
    let data = [("--data", options.data.as_path())];
    let mut outputs = vec![("--model", options.model.as_path())];
    outputs.extend(options.report.as_deref().map(|report| ("--report", report)));
    let tables = options.save_tables.as_deref().map(|folder| ("--save-tables", folder));
    check_outside(&Vec::from_iter(outputs.iter().copied().chain(tables)), data[0])?;
    check_files_differ(&[("--model", &options.model)], &data)?;
    check_output("--model", &options.model)?;
    if let Some(json) = options.json.as_deref() {
        let (json, others) = (("--json", json), &outputs);
        check_outside(&[json], data[0])?;
        check_files_differ(&[&[json], &others[..]].concat(), &data)?;
        check_output("--json", json.1)?;
    }
    let Some(report) = options.report.as_deref() else { return Ok(()) };
    check_files_differ(&[("--report", report), ("--model", &options.model)], &data)?;
    check_output("--report", report)
}

/// The recipe for a number of images: unless options say otherwise, a batch is an eighth of them, and all epochs together are
/// about 300 steps.
fn fitted(options: &Options, recipe: Recipe, n_rows: usize) -> Result<Recipe> {
    let batch_rows = match options.batch {
        Some(batch_rows) => {
            ensure!(
                batch_rows <= n_rows,
                "--batch {batch_rows}: found {n_rows} images to train on, expected at least a batch; pass {n_rows} or less"
            );
            batch_rows
        }
        // At least 64: the recipes' learning rates are too high for the noise of smaller batches.
        None => (n_rows / 8 / 32 * 32).clamp(64, recipe.batch_rows.max(64)).min(n_rows),
    };
    check_ghost_batches(&recipe, "--batch", batch_rows)?;
    let recipe = recipe.with_batch_rows(batch_rows);
    let n_epochs = match options.epochs {
        Some(n_epochs) => n_epochs,
        None if options.recipe.is_full() => recipe.n_epochs,
        None => (300.0 / recipe.epoch_steps(n_rows) as f64).ceil().clamp(3.0, 40.0),
    };
    Ok(recipe.with_epochs(n_epochs))
}

fn percent(accuracy: Option<f64>) -> String {
    format!("{:.2} %", 100.0 * accuracy.unwrap_or(f64::NAN))
}
