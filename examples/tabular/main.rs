//! From a table of any format to a trained network: finds the kinds of the columns and of the target, trains, tests, and writes a
//! model folder; for several targets, one for each.
//!
//! `cargo run --release --example tabular -- DATA [--target COLUMN]`

mod columns;
mod linear;
mod notes;
mod options;
mod page;
mod results;
mod scale;
mod several;
mod train;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, ensure};
use brisk_examples::command_line::Given;
use brisk_examples::elsewhere::{LocalFile, is_url};
use brisk_examples::tabular::{Program, in_options_of, read};
use brisk_examples::{check_files_differ, check_folder, check_output, command_line, print};
use brisk_table::printable;
use brisk_tabular::{ClassWeights, DetectOptions, Detected, Fitting, TabularModel, TextOptions};
use brisk_train::StopFlag;

use options::{Kind, Options, is_none};
use train::{Outcome, train};

fn main() -> ExitCode {
    command_line::run_with_given(run)
}

fn run(options: Options, given: &[Given]) -> Result<ExitCode> {
    // First: the check creates a file for a moment.
    let stop = StopFlag::on_signals()?;
    check(&options, given)?;
    let started = Instant::now();
    let device = options.device.builder().open()?;
    print::note(format_args!("device: {}", device.info()));
    std::fs::create_dir_all(&options.out)?;
    let data = LocalFile::of(&options.data)?;
    if options.targets().len() > 1 {
        return several::train_each(&options, &device, &data, started, &stop);
    }
    Ok(match train(&options, &device, &detect(&options, &data, &stop)?, started, &stop)? {
        Outcome::Trained { is_complete: true, .. } => ExitCode::SUCCESS,
        Outcome::Trained { .. } => ExitCode::FAILURE,
        Outcome::Stopped(status) => status,
    })
}

/// Checks the options as far as possible before any rows are read.
fn check(options: &Options, given: &[Given]) -> Result<()> {
    options.server.apply([options.data.as_path()])?;
    let has_hidden = given.iter().any(|option| option == "hidden");
    ensure!(
        !has_hidden || options.model != Some(Kind::ResidualMlp),
        "`--hidden` has no effect on `--model resnet`; leave it out"
    );
    ensure!(
        options.members.is_none() || options.has_members(),
        "`--members` has an effect on ensembles only; leave it out, or choose `--model tabm` or `realmlp`"
    );
    let are_weighted = options.weight.is_some() || options.class_weights != ClassWeights::Observed;
    ensure!(
        !are_weighted || options.monitor.as_deref() != Some("valid_loss"),
        "`--monitor valid_loss` counts each row once, without `--weight` and `--class-weights`; choose valid_log_loss or valid_rmse"
    );
    ensure!(
        is_url(&options.data) || options.data.exists(),
        "{}: cannot open the table: there is no such file",
        printable(&options.data)
    );
    check_folder("--out", &options.out)?;
    options.save_rows.as_deref().map_or(Ok(()), |folder| check_folder("--save-rows", folder))?;
    options.check_targets()?;
    // The page in the model folder is written with it.
    let outputs = [("--json", options.json.as_deref()), ("--report", options.report.as_deref().filter(|path| !is_none(path)))];
    let outputs: Vec<_> = outputs.into_iter().filter_map(|(option, path)| Some((option, path?))).collect();
    let in_folders = options.files_in_folders();
    let in_folders: Vec<_> = in_folders.iter().map(|(option, path)| (*option, path.as_path())).collect();
    check_files_differ(&[&in_folders, &outputs[..]].concat(), &[("DATA", &options.data)])?;
    outputs.into_iter().try_for_each(|(option, path)| check_output(option, path))
}

/// The table: which columns are numbers, which are categories, and which is the target, whose kind suits the options.
pub(crate) fn detect(options: &Options, data: &LocalFile, stop: &StopFlag) -> Result<Detected> {
    let Options { task, drop, categorical, date_order, group, group_equal, time, weight, keep_index, text, .. } = options;
    let [drop, categorical] = [drop, categorical].map(|columns| columns.clone().unwrap_or_default());
    let text = text.added_to(&TextOptions::default());
    let [group, time, weight] = [group, time, weight].map(Clone::clone);
    let (target, other_targets) = (options.targets().first().cloned(), options.other_targets.clone());
    let how = DetectOptions {
        target,
        other_targets,
        task: *task,
        drop,
        categorical,
        date_order: *date_order,
        group,
        group_equal: *group_equal,
        time,
        weight,
        keep_index: *keep_index,
        text,
    };
    let detected =
        read(data.path(), Program::Tabular, stop, |progress| TabularModel::detect_with_progress(data.path(), &how, progress))?;
    ensure!(detected.table.n_rows() > 0, "{}: the table has no rows", printable(&options.data));
    let fitting = Fitting {
        class_weights: options.class_weights,
        threshold: options.threshold,
        intervals: options.intervals,
        ..Fitting::new(Vec::new(), options.seed)
    };
    fitting.check(&detected.target).map_err(|error| in_options_of(Program::Tabular, error))?;
    scale::asked(options, detected.target.clone(), &detected.table)?;
    Ok(detected)
}
