//! Trains a small network on any images: a folder of classes, MNIST and its relatives, CIFAR-10 or CIFAR-100.
//!
//! `cargo run --release --example images -- --data FOLDER`

mod options;
mod outputs;
mod predict;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use brisk_examples::elsewhere::LocalFile;
use brisk_examples::higgs::stopped::{self, StartedBy};
use brisk_examples::{command_line, print, write_json};
use brisk_loader::RowSource;
use brisk_report::{closing_table, rows_per_second, seconds, thousands};
use brisk_table::{ImagesOptions, printable};
use brisk_train::report::ImageGrid;
use brisk_train::{Classification, Ended, FeedChoice, FeedConfig, Limit, Model, Standardisation, StopFlag, Trainable, Trainer};
use brisk_vision::{Recipe, View, WithViews};
use brisk_vision_examples::images::{
    Costs, ImageSet, KeepTables, Split, Trained, check_ghost_batches, check_steps, report_settings, standardised,
};
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
    if let Some(images) = &options.predict {
        return predict::run(&options, images, &stop);
    }
    let path = options.data.as_deref().context("there is --data without --predict")?;
    outputs::check(&options, path)?;
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
    let data = LocalFile::of(path)?;
    let set = ImageSet::open(data.path(), images, keep, &stop)?;
    let Split { train, valid, test } = set.split(options.seed)?;
    let (image, n_classes) = (set.image(), set.classes().len());
    let [height, width, n_channels] = image;
    print::note(format_args!(
        "images: {height} x {width} pixels of {n_channels} channels, {n_classes} classes; {} to train on, {} {}{}",
        thousands(train.n_rows() as u64),
        thousands(valid.n_rows() as u64),
        if set.is_held_out() { "held out for validation" } else { "to validate with" },
        test.as_ref().map_or(String::new(), |test| format!(", {} to test with", thousands(test.n_rows() as u64)))
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
    let columns = Standardisation::of("train", &train)?;
    warn_of_constant_channels(&columns, n_channels);
    let scale = columns.per_channel(n_channels)?;
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
        let width = if options.recipe.is_full() { "full width" } else { "narrow" };
        let settings = report_settings(format!("{}, {width}", options.recipe.name().name()), &recipe);
        trainer = trainer.report(path).class_names(set.classes()).report_settings(settings).report_panels(|scored| {
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

    // The results.
    let judge = Classification::of(n_classes);
    let validated = model.evaluate(&judge, &valid)?;
    outputs::check_finite(model.params(), &validated)?;
    let about = Trained {
        recipe: options.recipe.name(),
        rung: None,
        is_full: options.recipe.is_full(),
        widths: None,
        image,
        classes: set.classes().to_vec(),
    };
    let saved = about.save_somewhere(&model, &options.model)?;
    let is_elsewhere = saved != options.model;
    if report.ended == Ended::Stopped {
        print::note(format_args!(
            "interrupted after {} epochs; {} has the network of epoch {}, the best so far, whose validation accuracy is {}",
            report.n_epochs,
            printable(&saved),
            report.best_epoch,
            percent(validated.get("accuracy"))
        ));
        return Ok(stopped::status(&stop, ExitCode::FAILURE));
    }
    // The images to test with are used once; those to validate with have chosen the epoch.
    let n_parameters = model.params().n_trained();
    let mut lines = vec![("validation accuracy", percent(validated.get("accuracy")))];
    let mut accuracies = vec![("valid_accuracy", validated.get("accuracy"))];
    if let Some(test) = &test {
        let accuracy = model.evaluate(&judge, test)?.get("accuracy");
        lines.push(("test accuracy", percent(accuracy)));
        accuracies.push(("test_accuracy", accuracy));
    }
    if recipe.views != View::plain() {
        let views = recipe.views.clone();
        let with_views = model.map(|network| WithViews { model: network, image, views });
        let (name, rows) = match &test {
            Some(test) => ("test_accuracy_with_views", test),
            None => ("valid_accuracy_with_views", &valid),
        };
        let accuracy = with_views.evaluate(&judge, rows)?.get("accuracy");
        lines.push(("with views", percent(accuracy)));
        accuracies.push((name, accuracy));
    }
    let written = options.json.as_ref().map_or(Ok(()), |path| {
        let mut results = json!({
            "device": device.info().to_string(), "executor": device.info().kind.executor(), "seed": options.seed, "rows": train.n_rows(),
            "epochs": report.n_epochs, "best_epoch": report.best_epoch, "seconds": started.elapsed().as_secs_f64(),
            "train_seconds": report.train_seconds, "loader_rows_per_s": costs.map(|costs| costs.loader_rows_per_s),
            "train_rows_per_s": report.train_rows_per_s, "planned_peak_bytes": costs.map(|costs| costs.planned_peak_bytes),
            "precision": options.precision.to_string(), "simulated": false, "parameters": n_parameters, "ended": report.ended.to_string(),
            "model": saved.to_string_lossy(),
        });
        accuracies.into_iter().for_each(|(name, accuracy)| results[name] = accuracy.into());
        write_json(path, &results)
    });
    lines.extend([
        ("epochs", format!("{} (best: {})", report.n_epochs, report.best_epoch)),
        ("training", format!("{} images/s", rows_per_second(report.train_rows_per_s))),
        ("time", seconds(started.elapsed().as_secs_f64())),
        ("model", printable(&saved).to_string()),
    ]);
    lines.extend(options.report.iter().map(|path| ("report", printable(path).to_string())));
    lines.extend(options.save_tables.iter().map(|path| ("tables", format!("{0}, which `--data {0}` opens", printable(path)))));
    print::result(closing_table(&lines).trim_end())?;
    written.map(|()| if is_elsewhere { ExitCode::FAILURE } else { stopped::written(&report.warnings) })
}

/// Names the channels that have the same value in all pixels, such as the alpha of opaque images.
fn warn_of_constant_channels(columns: &Standardisation, n_channels: usize) {
    let (mean, inv_std) = (columns.mean(), columns.inv_std());
    // A column that never changes has a factor of 1.
    let is_constant = |channel: &usize| {
        (*channel..mean.len()).step_by(n_channels).all(|col| inv_std[col] == 1.0 && mean[col] == mean[*channel])
    };
    for channel in (0..n_channels).filter(is_constant) {
        let value = mean[channel];
        let remedy = if n_channels == 4 { "; `--channels rgb` leaves out the fourth" } else { "" };
        print::note(format_args!(
            "warning: channel {channel} of {n_channels} is {value} in all pixels, from which nothing can be learned{remedy}"
        ));
    }
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
        None => {
            let batch_rows = (n_rows / 8 / 32 * 32).clamp(64, recipe.batch_rows.max(64)).min(n_rows);
            match recipe.ghost_rows() {
                Some(ghost_rows) if ghost_rows > n_rows => anyhow::bail!(
                    "found {n_rows} images to train on, expected at least {ghost_rows} for --recipe page; choose another recipe"
                ),
                Some(ghost_rows) => batch_rows / ghost_rows * ghost_rows,
                None => batch_rows,
            }
        }
    };
    check_ghost_batches(&recipe, "--batch", batch_rows)?;
    let recipe = recipe.with_batch_rows(batch_rows);
    let n_epochs = match options.epochs {
        Some(n_epochs) => {
            check_steps(&recipe, n_epochs, n_rows)?;
            n_epochs
        }
        None if options.recipe.is_full() => recipe.n_epochs,
        None => (300.0 / recipe.epoch_steps(n_rows) as f64).ceil().clamp(3.0, 40.0),
    };
    Ok(recipe.with_epochs(n_epochs))
}

fn percent(accuracy: Option<f64>) -> String {
    format!("{:.2} %", 100.0 * accuracy.unwrap_or(f64::NAN))
}
