//! The ladder of tricks: accuracy and time of each rung of Page's recipe. Narrowed for a CPU, all rungs train for the same number
//! of epochs, so the accuracy shows the effect of a trick; at full width each trains for the article's number of epochs, so the
//! time shows it.

use std::io::{IsTerminal, stderr};
use std::path::Path;

use anyhow::{Result, ensure};
use brisk_train::StopFlag;
use brisk_vision::{PAGE_RUNGS, Recipe};
use brisk_vision_examples::cifar10::{Cifar10 as Data, EpochEnd, Settings, run_by_epochs};
use serde_json::Value;

use crate::command_line::{Cifar10, Cifar10Part};
use crate::options::{Options, Scale};
use crate::row::{Better, Row, commit, median, told};

/// How the rungs are trained.
struct Climb {
    is_full: bool,
    /// The number of training images; all if `None`.
    n_train: Option<usize>,
    n_test: Option<usize>,
    /// The number of epochs; the article's if `None`.
    n_epochs: Option<f64>,
    /// The test accuracy up to which training is timed.
    target: f64,
}

impl Climb {
    fn new(options: &Options, suite: &Cifar10) -> Self {
        let is_smoke = options.scale == Scale::Smoke;
        let (n_train, n_epochs, target) = match (suite.full, is_smoke) {
            (true, false) => (None, None, 0.94),
            (true, true) => (Some(512), Some(1.0), 0.94),
            (false, false) => (Some(10_000), Some(15.0), 0.75),
            (false, true) => (Some(256), Some(2.0), 0.75),
        };
        let n_test = is_smoke.then_some(128);
        Self { is_full: suite.full, n_train, n_test, n_epochs, target: suite.target_accuracy.unwrap_or(target) }
    }

    fn recipe(&self, rung: usize) -> Recipe {
        let recipe = Recipe::page_rung(rung);
        let recipe = if self.is_full { recipe } else { recipe.narrow() };
        self.n_epochs.map_or_else(|| recipe.clone(), |n_epochs| recipe.clone().with_epochs(n_epochs))
    }
}

/// Prints the table rung by rung as it is measured, and returns its figures as JSON rows.
#[expect(clippy::print_stdout, reason = "its figures are its result")]
pub(super) fn run(options: &Options, suite: &Cifar10) -> Result<Vec<Value>> {
    let Some(source) = &suite.data else {
        let is_asked_for = suite.only.contains(&Cifar10Part::Ladder);
        ensure!(
            !is_asked_for,
            "--only ladder trains on CIFAR-10; pass `--data PATH`, which `cargo xtask fetch cifar10` downloads"
        );
        return Ok(vec![]);
    };
    let data = Data::open(Some(source), Path::new("target/cifar10"))?;
    let climb = Climb::new(options, suite);
    let target = 100.0 * climb.target;
    println!("\non {}, commit {}\n", options.device.info(), commit());
    println!(
        "Page's ladder of tricks: medians of {} runs. Times follow DAWNBench's rule: training with whitening and augmentation, without evaluation; here they include the\n\
         compilation of the step. The time to {target} % ends with the first epoch after which the test accuracy is at least that high.\n",
        suite.runs
    );
    let line = |[rung, trick, epochs, accuracy, range, training, reached, to_target, epoch]: [&str; 9]| {
        println!(
            "| {rung:>4} | {trick:<28} | {epochs:>6} | {accuracy:>13} | {range:>17} | {training:>8} | {reached:>12} | {to_target:>8} | {epoch:>8} |"
        );
    };
    let (reached, to_target) = (format!("reach {target} %"), format!("to {target} %"));
    line(["rung", "trick", "epochs", "test accuracy", "lowest to highest", "training", &reached, &to_target, "an epoch"]);
    line(["---:", "---", "---:", "---:", "---:", "---:", "---:", "---:", "---:"]);

    let mut rows = Vec::new();
    // Rung 1, which moves augmentation to the device, is skipped: here it always runs on the device.
    for (rung, trick) in PAGE_RUNGS.iter().enumerate().filter(|(rung, _)| *rung != 1) {
        let recipe = climb.recipe(rung);
        let runs = (0..suite.runs as u64).map(|seed| {
            let settings = Settings {
                recipe: recipe.clone(),
                n_train: climb.n_train,
                n_test: climb.n_test,
                precision: suite.precision.into(),
                seed,
                max_steps: None,
                selective_share: None,
                measures_costs: false,
                has_progress: stderr().is_terminal(),
                report: None,
                report_settings: Vec::new(),
                stop: StopFlag::default(),
            };
            run_by_epochs(&options.device, &data, &settings)
        });
        let climbed = Climbed::new(&runs.collect::<Result<Vec<_>>>()?, climb.target);
        let Climbed { accuracies, training, to_target, epochs } = &climbed;
        let percent = |share: f64| format!("{:.1}", 100.0 * share);
        let (low, high) = accuracies.iter().fold((f64::MAX, f64::MIN), |(low, high), &x| (low.min(x), high.max(x)));
        let seconds = |values: &[f64]| if values.is_empty() { "—".to_owned() } else { told(median(values), "s") };
        line([
            &rung.to_string(),
            trick,
            &recipe.n_epochs.to_string(),
            &(percent(median(accuracies)) + " %"),
            &format!("{} to {} %", percent(low), percent(high)),
            &seconds(training),
            &format!("{} of {}", to_target.len(), suite.runs),
            &seconds(to_target),
            &seconds(epochs),
        ]);
        rows.extend(climbed.rows(options, &format!("rung {rung}, {trick}, {} epochs", recipe.n_epochs), target));
    }
    Ok(rows)
}

/// The results of a rung's runs.
struct Climbed {
    /// The test accuracy of each run after its last epoch.
    accuracies: Vec<f64>,
    /// The training time of each run in seconds.
    training: Vec<f64>,
    /// The time to the target in seconds, of each run that reached it.
    to_target: Vec<f64>,
    /// The time in seconds of each epoch, except the first of each run, in which the step is compiled.
    epochs: Vec<f64>,
}

impl Climbed {
    fn new(runs: &[Vec<EpochEnd>], target: f64) -> Self {
        let ends: Vec<&EpochEnd> = runs.iter().filter_map(|run| run.last()).collect();
        let to_target = |run: &Vec<EpochEnd>| run.iter().find(|epoch| epoch.accuracy >= target).map(|epoch| epoch.train_seconds);
        Self {
            accuracies: ends.iter().map(|end| end.accuracy).collect(),
            training: ends.iter().map(|end| end.train_seconds).collect(),
            to_target: runs.iter().filter_map(to_target).collect(),
            epochs: runs
                .iter()
                .flat_map(|run| run.windows(2).map(|pair| pair[1].train_seconds - pair[0].train_seconds))
                .collect(),
        }
    }

    fn rows(self, options: &Options, rung: &str, target: f64) -> Vec<Value> {
        let n_runs = self.accuracies.len();
        let to_target = format!("training to {target} %, {} of {n_runs} runs", self.to_target.len());
        let figures = [
            ("test accuracy".to_owned(), self.accuracies, "", Better::More),
            ("training".to_owned(), self.training, "s", Better::Less),
            (to_target, self.to_target, "s", Better::Less),
            ("an epoch".to_owned(), self.epochs, "s", Better::Less),
        ];
        let measured = figures.into_iter().filter(|(_, ours, ..)| !ours.is_empty());
        let row = |(what, ours, unit, better)| Row {
            suite: "cifar10",
            case: format!("{rung}: {what}"),
            ours,
            unit,
            reference: None,
            target: None,
            better,
        };
        measured.map(|figure| row(figure).json(options.device.info())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_to_the_target_ends_with_the_first_epoch_that_reaches_it() {
        let run = |accuracies: [f64; 3]| {
            let end = |(i, accuracy)| EpochEnd { train_seconds: 2.0 + 3.0 * i as f64, accuracy };
            accuracies.into_iter().enumerate().map(end).collect::<Vec<_>>()
        };
        let climbed = Climbed::new(&[run([0.5, 0.75, 0.7]), run([0.5, 0.6, 0.7]), run([0.5, 0.6, 0.8])], 0.75);
        assert_eq!(climbed.to_target, [5.0, 8.0]);
        assert_eq!(climbed.accuracies, [0.7, 0.7, 0.8]);
        assert_eq!(climbed.training, [8.0; 3]);
        assert_eq!(climbed.epochs, [3.0; 6]);
    }
}
