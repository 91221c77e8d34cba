//! Training on CIFAR-10 with the fast recipes: Page's bag of tricks, airbench94, and airbench94 with Muon, at their full size or
//! narrowed to train on a CPU.
//!
//! `cargo run --release --example cifar10 -- --data FOLDER` trains with the Muon recipe; `--recipe page --rung N` stops at a rung
//! of the ladder of tricks; `--narrow` selects a network that a CPU trains in minutes, and `--widths W,W,W --batch-rows N` any
//! other size. FOLDER has the binary version of the data set; the tables made from it are kept in target/cifar10.
//!
//! It prints four test accuracies: with the unchanged images, with mirrored views, with six views, and with six views of only the
//! least confident quarter (`--selective SHARE`), which evaluates the network 2.5 times per image instead of six times.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, bail, ensure};
use brisk_examples::command_line::value::{self, MAX_COUNT};
use brisk_examples::command_line::{self, DeviceOption};
use brisk_examples::higgs::stopped::{self, StartedBy};
use brisk_examples::{check_files_differ, check_output, print, write_json};
use brisk_nn::tensor::Precision;
use brisk_report::thousands;
use brisk_table::printable;
use brisk_train::StopFlag;
use brisk_vision::{PAGE_RUNGS, Recipe};
use brisk_vision_examples::cifar10::{Cifar10, Settings, TABLE_NAMES, run};
use brisk_vision_examples::images::{
    MixingOptions, RecipeName, Trained, WIDTHS, check_ghost_batches, check_steps, report_settings,
};
use clap::Parser;
use serde_json::{Value, json};

/// Trains on CIFAR-10 with a fast recipe, and prints its accuracy and time
#[derive(Debug, Parser)]
#[command(name = "cifar10")]
struct Options {
    /// Folder or archive with the binary version of CIFAR-10, which is imported into tables in target/cifar10 unless they are of
    /// these files; or a folder with such tables [default: target/cifar10]
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,
    /// The recipe
    #[arg(long, value_enum, default_value_t = RecipeName::Muon)]
    recipe: RecipeName,
    /// Rung of the ladder of tricks of the recipe `page`; 0 is the baseline [default: the last]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(..PAGE_RUNGS.len() as i64))]
    rung: Option<u8>,
    /// Train a narrow network in small batches, which takes a CPU minutes instead of days
    #[arg(long)]
    narrow: bool,
    /// Train a network with these widths instead of the recipe's: three for airbench and Muon, four for Page's network
    #[arg(long, value_name = "W,W,...", conflicts_with = "narrow", value_parser = value::list(value::whole::<usize>(WIDTHS)))]
    widths: Option<std::vec::Vec<usize>>,
    /// Images per batch [default: the recipe's]
    #[arg(long, value_name = "N", value_parser = value::whole::<usize>(1..=100_000))]
    batch_rows: Option<usize>,
    /// Train on this many images only
    #[arg(long, value_name = "N", value_parser = value::whole::<usize>(1..=MAX_COUNT))]
    images: Option<usize>,
    /// Test on this many images only
    #[arg(long, value_name = "N", value_parser = value::whole::<usize>(1..=MAX_COUNT))]
    test_images: Option<usize>,
    /// Number of epochs [default: the recipe's]
    #[arg(long, value_name = "N", value_parser = value::positive(1e6))]
    epochs: Option<f64>,
    #[command(flatten)]
    mixing: MixingOptions,
    /// End each run after this many steps
    #[arg(long, value_name = "N", value_parser = value::whole::<usize>(1..=MAX_COUNT))]
    steps: Option<usize>,
    /// Fraction of the test images, the least confident, that the last of the four accuracies evaluates with six views
    #[arg(long, value_name = "SHARE", default_value_t = 0.25, value_parser = value::share())]
    selective: f64,
    /// Number of runs, with consecutive seeds
    #[arg(long, value_name = "N", default_value = "1", value_parser = value::whole::<u64>(1..=MAX_COUNT))]
    runs: u64,
    /// Seed of the first run
    #[arg(long, value_name = "N", default_value = "0", value_parser = value::whole::<u64>(0..=MAX_COUNT))]
    seed: u64,
    /// Precision of matrix products: f32, f16 or bf16
    #[arg(long, default_value = "f32")]
    precision: Precision,
    /// Write the model of the last run to FILE; `images --predict` predicts the classes of other images with it
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
    /// Write the report of the last run to this file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Write the results to FILE as one JSON object: those of the last run, and the accuracies of each
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceOption,
}

impl Options {
    /// What the recipe and its network are called in a report.
    fn network(&self) -> String {
        let rung = self.rung.map_or(String::new(), |rung| format!(", rung {rung}"));
        let width = match &self.widths {
            Some(widths) => format!("widths {widths:?}"),
            None => if self.narrow { "narrow" } else { "full width" }.to_owned(),
        };
        format!("{}{rung}, {width}", self.recipe.name())
    }
}

/// The folder of the tables that are made of the files of CIFAR-10.
const TABLES: &str = "target/cifar10";

fn main() -> ExitCode {
    command_line::run(|options| {
        // First: the checks create files for a moment.
        let stop = StopFlag::on_signals()?;
        let trained = train(&options, &stop);
        trained.or_else(|error| stopped::without_results(error, &stop, StartedBy::CommandLine))
    })
}

/// The recipe with the requested widths and batch size.
fn sized(recipe: Recipe, options: &Options) -> Result<Recipe> {
    let recipe = if options.narrow { recipe.narrow() } else { recipe };
    let batch_rows = options.batch_rows.unwrap_or(recipe.batch_rows);
    check_ghost_batches(&recipe, "--batch-rows", batch_rows)?;
    let Some(widths) = &options.widths else { return Ok(recipe.with_batch_rows(batch_rows)) };
    let n_widths = if matches!(options.recipe, RecipeName::Page) { 4 } else { 3 };
    ensure!(widths.len() == n_widths, "--widths: this recipe's network has {n_widths} widths, found {}", widths.len());
    Ok(recipe.narrowed(widths, batch_rows))
}

fn train(options: &Options, stop: &StopFlag) -> Result<ExitCode> {
    let recipe = match (options.recipe, options.rung) {
        (RecipeName::Page, Some(rung)) => Recipe::page_rung(usize::from(rung)),
        (name, None) => name.recipe(),
        (_, Some(rung)) => bail!("--rung {rung}: only the recipe page has rungs; pass `--recipe page`"),
    };
    let recipe = sized(recipe, options)?;
    let recipe = options.epochs.map_or_else(|| recipe.clone(), |n_epochs| recipe.clone().with_epochs(n_epochs));

    let recipe = Recipe { mixing: options.mixing.mixing(), ..recipe };

    let data = options.data.as_deref().map(|data| ("--data", data));
    let folders = [Path::new(TABLES)].into_iter().chain(options.data.as_deref());
    let tables: Vec<PathBuf> = folders.flat_map(|folder| TABLE_NAMES.map(|name| folder.join(name))).collect();
    let tables = tables.iter().map(|path| ("the tables", path.as_path()));
    let outputs =
        [("--model", options.model.as_deref()), ("--json", options.json.as_deref()), ("--report", options.report.as_deref())];
    let outputs: Vec<_> = outputs.into_iter().filter_map(|(option, path)| Some((option, path?))).collect();
    check_files_differ(&outputs, &Vec::from_iter(data.into_iter().chain(tables)))?;
    // The trainer checks the report, for which it creates a folder.
    let checked = outputs.iter().filter(|(option, _)| *option != "--report");
    checked.into_iter().try_for_each(|(option, path)| check_output(option, path))?;
    let started = Instant::now();
    let device = options.device.builder().open()?;
    let mut runs = Vec::new();
    let data = Cifar10::open(options.data.as_deref(), TABLES.as_ref())?;
    for (option, n, table) in [("--images", options.images, &data.train), ("--test-images", options.test_images, &data.test)] {
        let (n, n_rows) = (n.unwrap_or(0), table.n_rows());
        ensure!(n <= n_rows, "{option} {n}: {} has {n_rows} images; pass {n_rows} or less", printable(table.path()));
    }
    let n_rows = options.images.unwrap_or(data.train.n_rows());
    if recipe.epoch_steps(n_rows) > 0 {
        options.epochs.map_or(Ok(()), |n_epochs| check_steps(&recipe, n_epochs, n_rows))?;
        if let Some(steps) = options.steps {
            let n_steps = recipe.n_steps(n_rows);
            ensure!(
                steps <= n_steps,
                "--steps {steps}: the epochs of the run have {n_steps} steps; pass fewer, or more --epochs"
            );
        }
    }
    let mut status = ExitCode::SUCCESS;
    for seed in options.seed..options.seed + options.runs {
        let settings = Settings {
            recipe: recipe.clone(),
            n_train: options.images,
            n_test: options.test_images,
            precision: options.precision,
            seed,
            max_steps: options.steps,
            selective_share: Some(options.selective),
            has_progress: true,
            measures_costs: options.json.is_some(),
            report: options.report.clone(),
            report_settings: report_settings(options.network(), &recipe),
            stop: stop.clone(),
        };
        let outcome = run(&device, &data, &settings)?;
        if let Some(path) = options.model.as_deref().filter(|_| seed + 1 == options.seed + options.runs) {
            let about = Trained {
                recipe: options.recipe,
                rung: options.rung,
                is_full: !options.narrow,
                widths: options.widths.clone(),
                image: recipe.image(),
                classes: data.class_names(),
            };
            if about.save_somewhere(&outcome.model, path)? != path {
                status = ExitCode::FAILURE;
            }
        }
        if stopped::written(&outcome.warnings) != ExitCode::SUCCESS {
            status = ExitCode::FAILURE;
        }
        let [plain, mirrored, six] = outcome.accuracy.map(|accuracy| 100.0 * accuracy);
        let (selective, n_careful) = outcome.selective.map_or((f64::NAN, 0), |(accuracy, n)| (100.0 * accuracy, n));
        print::result(format_args!(
            "seed {seed}: {} steps in {:.1} s, {:.0} images/s; test accuracy {plain:.2} %, with mirrored views {mirrored:.2} %, with six views {six:.2} %, \
             with six views of the {} least confident images {selective:.2} %",
            outcome.n_steps,
            outcome.train_seconds,
            outcome.images_per_second,
            thousands(n_careful as u64)
        ))?;
        if let Some(path) = &options.json {
            let [plain, mirrored, six] = outcome.accuracy;
            runs.push(json!({
                "seed": seed, "test_accuracy": plain, "test_accuracy_mirrored": mirrored, "test_accuracy_six_views": six,
                "test_accuracy_selective": outcome.selective.map(|(accuracy, _)| accuracy), "train_seconds": outcome.train_seconds,
            }));
            let mut results = json!({
                "device": device.info().to_string(), "executor": device.info().kind.executor(), "rows": outcome.n_images,
                "epochs": outcome.n_epochs, "steps": outcome.n_steps, "seconds": started.elapsed().as_secs_f64(),
                "loader_rows_per_s": outcome.costs.map(|costs| costs.loader_rows_per_s), "train_rows_per_s": outcome.images_per_second,
                "planned_peak_bytes": outcome.costs.map(|costs| costs.planned_peak_bytes), "precision": options.precision.to_string(),
                "simulated": false, "parameters": outcome.n_parameters, "runs": runs,
            });
            if let (Some(results), Some(last)) = (results.as_object_mut(), runs.last().and_then(Value::as_object)) {
                results.extend(last.clone());
            }
            write_json(path, &results)?;
        }
    }
    Ok(status)
}
