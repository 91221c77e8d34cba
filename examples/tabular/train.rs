//! From the rows of a table and a target to a model folder with scores.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use brisk_examples::higgs::stopped::{self, StartedBy};
use brisk_examples::tabular::{Program, in_options_of};
use brisk_examples::{print, write_json};
use brisk_loader::{RowSource, Rows, Subset, labels_of};
use brisk_nn::tensor::Graph;
use brisk_nn::tensor::program::Device;
use brisk_nn::{Adam, Error as TensorError};
use brisk_program::Error as ProgramError;
use brisk_program::kernels::Error as KernelError;
use brisk_report::{seconds, thousands};
use brisk_table::{ImportWarning, RowBatch, Schema, Table, TableWriter, Weights, printable};
use brisk_tabular::{
    Calibration, Detected, Effort, Error as TabularError, Fitted, Fitting, Importance, ImportanceOptions, Network, Preprocessing,
    PreprocessingOptions, Recipe, SegmentOptions, TabularModel, TabularWarning, Target, TargetKind, TargetScale, Threshold,
};
use brisk_train::{Ended, Error as TrainError, FeedProbe, StopFlag, Trainable, Trainer};
use serde_json::Value;

use crate::linear;
use crate::notes;
use crate::options::Options;
use crate::page;
use crate::results::{Planned, Results};
use crate::scale;

/// How a training ended.
pub(crate) enum Outcome {
    /// With a model, which is in its folder; not complete if the page or the file of `--json` could not be written.
    Trained { model: Box<TabularModel>, results: Value, is_complete: bool },
    /// It was stopped, with a model in its folder or without one.
    Stopped(ExitCode),
}

/// Trains a model of the target of a table, tests it, writes it, and prints what it is worth.
pub(crate) fn train(
    options: &Options,
    device: &Device,
    detected: &Detected,
    started: Instant,
    stop: &StopFlag,
) -> Result<Outcome> {
    let Detected { table, columns, target, .. } = detected;
    let n_folds = n_folds(detected, options)?;
    let (train, valid, test) = split(detected, options, n_folds)?;
    notes::rows(&train, valid.as_ref(), &test, &detected.splitting);
    let mut of_split: Vec<TabularWarning> = detected.equal_rows(&train, &test)?.into_iter().collect();
    of_split.extend(detected.untrained_classes(&train)?);
    if let (None, Some(n_folds)) = (options.folds, n_folds) {
        print::note(format_args!(
            "{n_folds} folds of the training rows, since a tenth of so few rows would not show which networks are good; `--folds 1` trains faster, validated by such a tenth"
        ));
    }

    // How columns become features, fitted to the rows to train on.
    let how =
        PreprocessingOptions { scaling: options.scaling, min_category_rows: options.min_category_rows, leaves_out_same: true };
    let fitted = Preprocessing::fit_with(columns, &train, &how);
    let preprocessing = fitted.map_err(|error| in_options_of(Program::Tabular, error))?;
    ensure!(
        options.min_category_rows == 1 || !preprocessing.categories().is_empty(),
        "`--min-category-rows` has no effect, since no column is a category; leave it out"
    );
    let target = scale::asked(options, target.clone(), table)?.fitted_to("train", &train)?;
    let warnings = about_columns(detected, &preprocessing);
    notes::columns(detected, &warnings, &preprocessing, (&target, options.task.is_none()));
    notes::warnings(&of_split, &target);
    let sets_of = |target: &Target| -> Result<Sets> {
        let preprocessed = |rows: &Subset<&Table>, set: &'static str| -> Result<Rows> {
            Ok(preprocessing.over(columns, rows)?.with_target(target).to_rows(set)?)
        };
        let valid = valid.as_ref().map(|valid| preprocessed(valid, "valid")).transpose()?;
        Ok(Sets { train: preprocessed(&train, "train")?, valid, test: preprocessed(&test, "test")? })
    };
    let rows = sets_of(&target)?;
    let chosen = {
        let fitting = scale::fitting(options, device, options.recipes(&rows.train, &target), options.time_left(started)?, stop);
        let folds = n_folds.map(|n_folds| detected.folds(&train, &rows.train, options.seed, n_folds)).transpose()?;
        match (&rows.valid, folds.as_deref()) {
            (Some(valid), _) => scale::chosen(device, options, &fitting, &preprocessing, (&target, table), &rows.train, valid),
            (None, Some([first, ..])) => {
                scale::chosen(device, options, &fitting, &preprocessing, (&target, table), &first.train, &first.valid)
            }
            (None, _) => Ok(None),
        }
    };
    let chosen = match chosen {
        Ok(chosen) => chosen,
        Err(TabularError::Train(error)) => return without_results(error, stop),
        Err(error) => return Err(error.into()),
    };
    let (target, rows) = match chosen {
        Some((TargetScale::Log, Some(_))) => {
            let target = target.with_scale(TargetScale::Log, table)?.fitted_to("train", &train)?;
            let rows = sets_of(&target)?;
            (target, rows)
        }
        _ => (target, rows),
    };
    rows.save(options, &preprocessing, &target)?;
    let recipes = options.recipes(&rows.train, &target);
    if options.has_members() && recipes[0].network.kind() == "mlp" {
        let n_features = thousands(rows.train.n_cols() as u64);
        ensure!(
            options.members.is_none(),
            "`--members` has an effect on ensembles only, which are not trained on {n_features} features; leave it out"
        );
        print::note(format_args!("an mlp is trained instead of ensembles, since there are {n_features} features"));
    }
    let folds = n_folds.map(|n_folds| detected.folds(&train, &rows.train, options.seed, n_folds)).transpose()?;

    // Training.
    let n_networks = recipes.len();
    let are_linear: Vec<bool> = recipes.iter().map(Recipe::is_linear).collect();
    let configure = |trainer: Trainer<'static>, network: usize| {
        if let Some(folds) = folds.as_ref().filter(|_| network.is_multiple_of(n_networks)) {
            print::note(format_args!("fold {} of {}", network / n_networks + 1, folds.len()));
        }
        if n_networks > 1 {
            let kind = if are_linear[network % n_networks] { ", a linear model" } else { "" };
            print::note(format_args!("network {} of at most {n_networks}{kind}", network % n_networks + 1));
        }
        trainer.stop_on(stop).progress()
    };
    let fitting = Fitting {
        precision: options.precision_on(device),
        class_weights: options.class_weights,
        threshold: options.threshold,
        intervals: options.intervals,
        importance: Some(ImportanceOptions { seed: options.seed, ..ImportanceOptions::default() }),
        rows_after: n_scored(options) * rows.test.n_rows(),
        configure: Box::new(configure),
        ..Fitting::new(recipes, options.seed)
    };
    let is_enough = match &rows.valid {
        Some(valid) => fitting.check_valid(&target, [valid].into_iter()),
        None => fitting.check_valid(&target, folds.iter().flatten().map(|fold| &fold.valid)),
    };
    is_enough.map_err(|error| in_options_of(Program::Tabular, error))?;
    let model = TabularModel::new(options.seed, preprocessing.clone(), target.clone(), fitting.recipes[0].network.clone());
    let planned = match &rows.valid {
        Some(valid) => planned(device, options, &fitting.recipes[0], model, &rows.train, valid)?,
        None => {
            let first = folds.as_ref().and_then(|folds| folds.first()).context("there are neither validation rows nor folds")?;
            planned(device, options, &fitting.recipes[0], model, &first.train, &first.valid)?
        }
    };
    let left = options.time_left(started)?;
    // For a linear model that is not among the networks.
    let for_linear = if are_linear.contains(&true) { Duration::ZERO } else { linear::time_within(left) };
    let say_to_go = |to_go: Duration| print::note(format_args!("about {} to go", seconds((to_go + for_linear).as_secs_f64())));
    let max_time = left.map(|left| left.saturating_sub(for_linear));
    let fitting = Fitting { max_time, on_estimate: Some(Box::new(say_to_go)), ..fitting };
    let fitted = match (&rows.valid, &folds) {
        (Some(valid), _) => fitting.fit(device, preprocessing, target, &rows.train, valid),
        (None, folds) => fitting.fit_folds(device, preprocessing, target, folds.as_deref().unwrap_or_default()),
    };
    let mut fitted = match fitted {
        Ok(fitted) => fitted,
        Err(TabularError::Train(error)) => return without_results(error, stop),
        Err(error) => return Err(in_options_of(Program::Tabular, error)),
    };
    fitted.model.set_text_options(detected.text.clone());
    let is_stopped = fitted.reports.iter().any(|report| report.ended == Ended::Stopped);
    let warnings = warned([warnings, of_split].concat(), &fitted, options, is_stopped);
    // No time left is no error any more: there is a model.
    let left = options.time_left(started).unwrap_or(Some(Duration::ZERO)).map(|left| left.min(for_linear.max(linear::LEAST)));
    let linear = match (is_stopped, &rows.valid, folds.as_deref()) {
        (false, Some(valid), _) => linear::scores((options, device, stop), left, &fitted, (&rows.train, valid, &rows.test)),
        (false, None, Some([first, ..])) => {
            linear::scores((options, device, stop), left, &fitted, (&first.train, &first.valid, &rows.test))
        }
        _ => Ok(None),
    };
    let linear = linear.map_err(|error| in_options_of(Program::Tabular, error))?;

    // The results.
    let (scores, trivial) = (fitted.model.evaluate(&rows.test)?, fitted.model.evaluate_constant(&rows.train, &rows.test)?);
    let gain = fitted.model.gain_over_constant(&rows.train, &rows.test)?;
    say_what_predictions_are_worth(&fitted, gain);
    let at_threshold = fitted.model.threshold().map(|at| {
        let scores = [at, Threshold { value: 0.5, ..at }].map(|at| fitted.model.threshold_score(at, &rows.test));
        let [chosen, half] = scores;
        Ok::<_, TabularError>([chosen?, half?])
    });
    let at_threshold = at_threshold.transpose()?;
    let held = fitted.model.interval_score(&rows.test)?;
    let segments = fitted.model.segment_errors(columns, &test, &SegmentOptions::default())?;
    fitted.model.set_scores(scores.values.iter().map(|(name, value)| (format!("test_{name}"), *value)).collect());
    let beside = if is_stopped { options.beside_former("stopped") } else { None };
    if let Some(beside) = &beside {
        let [kept, out] = [&options.out, &beside.out].map(|folder| printable(folder));
        print::note(format_args!("the model in {kept} is kept, since this run was stopped: its own is written to {out}"));
    }
    let options = beside.as_ref().unwrap_or(options);
    options.remove_former_pages(0)?;
    fitted.model.save(&options.out)?;
    let elapsed = started.elapsed().as_secs_f64();
    let n_rows = table.n_rows();
    let results = Results {
        options,
        device,
        fitted: &fitted,
        planned,
        chosen,
        n_rows,
        warnings,
        scores,
        linear,
        trivial,
        gain,
        at_threshold,
        held,
        segments,
        elapsed,
    };
    let json = results.json();
    let page = || match options.report_path() {
        Some(path) => Ok(page::of(&results, detected, &test, &rows.test)?.write(&path)?),
        None => Ok(()),
    };
    let outputs = [page(), options.json.as_ref().map_or(Ok(()), |path| write_json(path, &json))];
    print::result(results.scores())?;
    if results.linear_is_better() {
        print::note(if fitted.linear.is_some() {
            "the linear model predicts the test rows better than what predicts the validation rows best, which is kept"
        } else {
            "a linear model predicts the test rows better: compare `--effort good`, which keeps it if it predicts the validation rows better"
        });
    }
    results.folds().map_or(Ok(()), print::result)?;
    results.importance().map_or(Ok(()), print::result)?;
    print::result(results.lines())?;
    outputs.iter().filter_map(|output| output.as_ref().err()).for_each(print::error);
    let is_complete = outputs.iter().all(Result::is_ok);
    Ok(match is_stopped {
        true => Outcome::Stopped(stopped::status(stop, if is_complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })),
        false => Outcome::Trained { model: Box::new(fitted.model), results: json, is_complete },
    })
}

/// How often the model predicts the test rows: for the scores, the gain, a threshold, intervals, segments and the page.
fn n_scored(options: &Options) -> usize {
    let counted = [options.threshold.map(|_| 2), options.intervals.map(|_| 1), options.report_path().map(|_| 1)];
    3 + counted.into_iter().flatten().sum::<usize>()
}

/// Says so if the test rows are not predicted better than by a constant, unless the validation rows have already shown it.
fn say_what_predictions_are_worth(Fitted { model, .. }: &Fitted, [gain, error]: [f64; 2]) {
    let calibration = model.calibration();
    let are_shares = calibration.and_then(Calibration::classes).is_some_and(|calibration| calibration.constant_share > 0.0);
    let number = calibration.and_then(Calibration::number);
    if are_shares || number.is_some_and(|number| !number.is_better_than_constant()) || gain > 2.0 * error {
        return;
    }
    let (loss, constant) = match model.target().kind() {
        TargetKind::Number => ("squared error", "mean of the training rows"),
        _ => ("log loss", "shares of the classes"),
    };
    print::note(format_args!(
        "warning: on the test rows, the {loss} of the predictions is not lower than that of the {constant}, except by chance"
    ));
}

/// The outcome of a run that was stopped before there was anything to keep. This program writes no checkpoints.
fn without_results(error: TrainError, stop: &StopFlag) -> Result<Outcome> {
    if let TrainError::NoEpoch { checkpoint: None, .. } = error {
        print::error(&anyhow!("stopped before the end of the first epoch; no model was written"));
        return Ok(Outcome::Stopped(stopped::status(stop, ExitCode::FAILURE)));
    }
    stopped::without_results(error.into(), stop, StartedBy::CommandLine).map(Outcome::Stopped)
}

/// What training will take, of the first network.
fn planned(
    device: &Device,
    options: &Options,
    recipe: &Recipe,
    model: TabularModel,
    train: &impl RowSource<Feature = f32>,
    valid: &impl RowSource<Feature = f32>,
) -> Result<Planned> {
    let (task, params) = (model.task(), model.model().params());
    print::note(format_args!("parameters: {}", thousands(params.n_trained() as u64)));
    let optimizer = Adam::new(params);
    let trainer = recipe.trainer(device).precision(options.precision_on(device));
    let trainable = Trainable::new(model.model().module(), params, &optimizer);
    let training = trainer.prepare(trainable, &*task, train, valid).map_err(|error| too_large(error, recipe))?;
    let [step, evaluation] = training.graphs();
    let probe = FeedProbe::new(device, training.train_rows(), training.scale())?;
    Ok(Planned { peak_bytes: Graph::planned_peak_bytes(&[step, evaluation])?, loader_rows_per_s: probe.rows_per_s()? })
}

/// The error with the options to lower if the network, or its batches, are too large.
fn too_large(error: TrainError, recipe: &Recipe) -> anyhow::Error {
    let TrainError::Tensor(cause) = &error else { return error.into() };
    let TensorError::Program(cause) = cause.kind() else { return error.into() };
    let is_of_size = matches!(
        cause,
        ProgramError::Kernel(KernelError::Size { .. } | KernelError::BindingLimit { .. })
            | ProgramError::MemoryLimit { .. }
            | ProgramError::BufferLimit { .. }
            | ProgramError::OutOfMemory { .. }
    );
    if !is_of_size {
        return error.into();
    }
    let options = match &recipe.network {
        Network::TabM { .. } | Network::RealMlp { .. } => "`--members`, `--hidden` or `--batch`",
        _ => "`--hidden` or `--batch`",
    };
    let n_rows = thousands(recipe.batch_rows as u64);
    anyhow!("the network is too large for batches of {n_rows} rows; lower {options} ({cause})")
}

/// The warnings about the columns, of which some are left out.
fn about_columns(detected: &Detected, preprocessing: &Preprocessing) -> Vec<TabularWarning> {
    let left_out: Vec<&str> = preprocessing.left_out(&detected.columns).collect();
    let is_said_again = |warning: &&TabularWarning| {
        let is_same = matches!(warning, TabularWarning::Import(ImportWarning::SameValue { .. }));
        is_same && warning.column().is_some_and(|column| left_out.contains(&column))
    };
    let others = detected.warnings.iter().filter(|warning| !is_said_again(warning)).cloned();
    let same = left_out.iter().map(|&column| TabularWarning::SameInTraining { column: column.to_owned() });
    others.chain(same).collect()
}

/// All warnings, with those about the table; those that arose in training are printed.
fn warned(mut warnings: Vec<TabularWarning>, fitted: &Fitted, options: &Options, is_stopped: bool) -> Vec<String> {
    let Fitted { model, .. } = fitted;
    let report = fitted.report();
    if report.n_epochs == 0 && report.ended == Ended::MaxTime {
        let smaller = if options.effort == Effort::Quick { "" } else { ", or choose `--effort quick`" };
        print::note(format_args!(
            "warning: the time was over before one epoch, so that the network has seen only some of the training rows; allow more `--minutes`{smaller}"
        ));
    }
    let calibration = model.calibration();
    let share = calibration.and_then(Calibration::classes).map_or(0.0, |calibration| calibration.constant_share);
    if share > 0.0 {
        print::note(format_args!(
            "warning: on the validation rows, the log loss of the network was not better than that of the shares of the classes, so that predictions are {:.0} % these shares",
            100.0 * share
        ));
    }
    match calibration.and_then(Calibration::number) {
        Some(calibration) if calibration.is_constant() => print::note(
            "warning: on the validation rows, the error of the network was not lower than that of the mean of the training rows, so that all predictions are this mean",
        ),
        Some(calibration) if !calibration.is_better_than_constant() => print::note(
            "warning: on the validation rows, the error of the network was not lower than that of the mean of the training rows, except by chance",
        ),
        _ => {}
    }
    match model.importance() {
        None if !is_stopped && options.minutes.is_some() => {
            print::note("the importance of columns is not measured, so that the run ends in time; allow more `--minutes`");
        }
        None if !is_stopped => print::note("the importance of columns is not measured: it would take too long"),
        importance => {
            let shortened =
                importance.filter(|of| options.minutes.is_some() && of.n_repeats < ImportanceOptions::default().n_repeats);
            if let Some(Importance { n_rows, n_repeats, .. }) = shortened {
                let (times, rows) = (if *n_repeats == 1 { "time" } else { "times" }, thousands(*n_rows as u64));
                print::note(format_args!(
                    "the importance of columns is measured on {rows} rows, with each column permuted {n_repeats} {times}, so that the run ends in time"
                ));
            }
            let decisive = importance.and_then(|importance| importance.decisive());
            let is_known = |column: &str| {
                let known = ImportWarning::PredictsLabel { column: column.to_owned() };
                warnings.contains(&TabularWarning::Import(known))
            };
            if let Some(column) = decisive.filter(|found| !is_known(&found.column)) {
                let warning = TabularWarning::DecidesTarget { column: column.column.clone() };
                notes::warning(&warning, model.target());
                warnings.push(warning);
            }
        }
    }
    warnings.iter().map(ToString::to_string).collect()
}

/// The folds of the rows that are not tested; `None` for a part of them to validate by. If `--folds` does not say, those that pay
/// for so many rows, if they can be made.
fn n_folds(detected: &Detected, options: &Options) -> Result<Option<usize>> {
    let n_folds = match options.folds {
        Some(n_folds) => n_folds,
        None if options.model.is_some() => 1,
        None => {
            let [rest, _] = detected.split(options.seed, REST)?;
            let n_folds = Effort::n_folds(rest.n_rows());
            let labels: Vec<f32> = labels_of(&rest)?.into_iter().map(|label| detected.target.label(label)).collect();
            let labelled = Rows::new(vec![0.0_f32; labels.len()], labels, 1)?;
            let folds = |n_folds| detected.folds(&rest, &labelled, options.seed, n_folds);
            // Fewer if a class, or the groups, are too few for so many.
            let most = (2..=n_folds).rev().find(|&n_folds| folds(n_folds).is_ok());
            match (most, (n_folds > 1).then(|| folds(n_folds))) {
                (None, Some(Err(reason))) => {
                    print::note(format_args!("validated by a tenth of the rows, although they are few: {reason}"));
                    1
                }
                (most, _) => most.unwrap_or(n_folds),
            }
        }
    };
    Ok(Some(n_folds).filter(|n_folds| *n_folds > 1))
}

/// The rows that are not tested, and those that are, as shares of all.
const REST: [f64; 2] = [0.8, 0.2];

/// The rows to train on, to validate and to test: 70, 10 and 20 %, or without validation rows if there are folds.
fn split<'a>(detected: &'a Detected, options: &Options, n_folds: Option<usize>) -> Result<Split<'a>> {
    Ok(match n_folds {
        None => {
            let [train, valid, test] = detected.split(options.seed, [0.7, 0.1, 0.2])?;
            (train, Some(valid), test)
        }
        Some(_) => {
            let [train, test] = detected.split(options.seed, REST)?;
            (train, None, test)
        }
    })
}

type Split<'a> = (Subset<&'a Table>, Option<Subset<&'a Table>>, Subset<&'a Table>);

/// The preprocessed rows.
struct Sets {
    train: Rows,
    valid: Option<Rows>,
    test: Rows,
}

impl Sets {
    /// Writes them to the folder of `--save-rows`, if there is one.
    fn save(&self, options: &Options, preprocessing: &Preprocessing, target: &Target) -> Result<()> {
        let Some(folder) = &options.save_rows else { return Ok(()) };
        std::fs::create_dir_all(folder)?;
        for (name, rows) in [("train", Some(&self.train)), ("valid", self.valid.as_ref()), ("test", Some(&self.test))] {
            if let Some(rows) = rows {
                save_rows(&folder.join(format!("{name}.safetensors")), preprocessing, target.name(), rows)?;
            }
        }
        Ok(())
    }
}

fn save_rows(path: &Path, preprocessing: &Preprocessing, target: &str, rows: &Rows) -> Result<()> {
    let categories = preprocessing.categories().iter().map(|column| column.name().to_owned()).collect();
    let label_names = vec![target.to_owned()];
    let weights = if rows.has_weights() { Weights::Present } else { Weights::Absent };
    let schema = Schema { categories, label_names, weights, ..Schema::named(preprocessing.feature_names()) };
    let mut writer = TableWriter::create(path, schema)?;
    writer.push_batch(RowBatch {
        features: rows.features(),
        categories: rows.categories(),
        labels: rows.labels(),
        weights: rows.weights().unwrap_or_default(),
    })?;
    if rows.n_categories() > 0 {
        writer.set_dictionaries(preprocessing.categories().to_vec())?;
    }
    writer.finish()?;
    Ok(())
}
