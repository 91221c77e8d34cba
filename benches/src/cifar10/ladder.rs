//! The ladder of tricks: accuracy and time of each rung of Page's recipe, narrowed for a CPU, with the same number of images.

use anyhow::Result;
use brisk_nn::tensor::Precision;
use brisk_vision::{PAGE_RUNGS, Recipe};
use brisk_vision_examples::cifar10::{Cifar10 as Data, Settings, run as run_recipe};

use crate::command_line::Cifar10;
use crate::options::{Options, Scale};
use crate::row::{Better, Row, Table};

pub(super) fn run(options: &Options, suite: &Cifar10) -> Result<Table> {
    let device = &options.device;
    let mut rows = Vec::new();
    if suite.data.is_some() {
        let folder = std::path::Path::new("target/cifar10");
        let data = Data::open(suite.data.as_deref(), folder)?;
        let (n_train, n_test, n_epochs) = if options.scale == Scale::Smoke { (256, 128, 1.0) } else { (10_000, 2_000, 15.0) };
        for (rung, trick) in PAGE_RUNGS.iter().enumerate().filter(|(rung, _)| *rung != 1) {
            let recipe = Recipe::page_rung(rung).narrow();
            let recipe = recipe.with_epochs(n_epochs);
            let (mut accuracies, mut seconds) = (Vec::new(), Vec::new());
            for seed in 0..suite.runs as u64 {
                let settings = Settings {
                    recipe: recipe.clone(),
                    n_train: Some(n_train),
                    n_test: Some(n_test),
                    precision: Precision::F32,
                    seed,
                    max_steps: None,
                    selective_share: None,
                    has_progress: false,
                    report: None,
                };
                let outcome = run_recipe(device, &data, &settings)?;
                accuracies.push(outcome.by_recipe);
                seconds.push(outcome.train_seconds);
            }
            let row = |case: &str, ours, unit, better| Row {
                suite: "cifar10",
                case: format!("rung {rung}, {trick}: {case}"),
                ours,
                unit,
                reference: None,
                target: None,
                better,
            };
            rows.push(row("test accuracy", accuracies, "", Better::More));
            rows.push(row("training", seconds, "s", Better::Less));
        }
    }
    Ok(Table { device: device.info().clone(), rows })
}
