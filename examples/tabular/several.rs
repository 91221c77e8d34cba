//! A model for each of several targets.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use brisk_examples::elsewhere::LocalFile;
use brisk_examples::{print, write_json};
use brisk_nn::tensor::program::Device;
use brisk_report::closing_table;
use brisk_table::printable;
use brisk_tabular::{Detected, TabularModels};
use brisk_train::StopFlag;
use serde_json::json;

use crate::detect;
use crate::options::{Options, PAGE};
use crate::train::{Outcome, train};

/// Trains the models one after the other, each without the columns of the other targets, and writes the folder of all at last.
pub(crate) fn train_each(
    options: &Options,
    device: &Device,
    data: &LocalFile,
    started: Instant,
    stop: &StopFlag,
) -> Result<ExitCode> {
    let n_targets = options.targets().len();
    // A run that is stopped keeps the models that were there before it.
    let staged = options.beside_former("unfinished").map(|staged| Options { moved_to: Some(options.out.clone()), ..staged });
    let training = staged.as_ref().unwrap_or(options);
    if staged.is_some() {
        remove_files(training, n_targets);
    }
    // All are read before the first is trained, so that what is wrong with one of them is known at once.
    let detected = (0..n_targets).map(|i| detect(&training.of_target(i, None), data, stop));
    let detected: Vec<Detected> = detected.collect::<Result<_>>()?;
    let (mut models, mut results, mut are_complete) = (Vec::new(), Vec::new(), true);
    for (i, detected) in detected.into_iter().enumerate() {
        let name = printable(detected.target.name()).to_string();
        print::note(format_args!("target {} of {n_targets}: {name}", i + 1));
        let left = options.time_left(started);
        // No time left is no error any more: there is a model.
        let left = if i == 0 { left? } else { left.unwrap_or(Some(Duration::ZERO)) };
        let own = training.of_target(i, left.map(|left| (left / (n_targets - i) as u32).max(LEAST_TIME)));
        print::result(closing_table(&[("target", name)]))?;
        match train(&own, device, &detected, Instant::now(), stop)? {
            Outcome::Trained { model, results: own, is_complete } => {
                are_complete &= is_complete;
                models.push(*model);
                results.push(own);
            }
            Outcome::Stopped(status) => {
                let folder = printable(&training.out);
                print::note(format_args!("stopped at target {} of {n_targets}: the folder {folder} is not complete", i + 1));
                if staged.is_some() {
                    print::note(format_args!("the models in {} are kept", printable(&options.out)));
                }
                return Ok(status);
            }
        }
    }
    options.remove_former_pages(n_targets)?;
    TabularModels::new(models)?.save(&options.out)?;
    if staged.is_some() {
        for i in 0..n_targets {
            let page = training.of_target(i, None).report_path().filter(|page| page.is_file());
            page.map_or(Ok(()), |page| std::fs::rename(&page, options.out.join(i.to_string()).join(PAGE)))?;
        }
        remove_files(training, n_targets);
    }
    let written = options
        .json
        .as_ref()
        .map_or(Ok(()), |path| write_json(path, &json!({ "targets": results, "seconds": started.elapsed().as_secs_f64() })));
    print::result(closing_table(&[("models", printable(&options.out).to_string())]))?;
    written.map(|()| if are_complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Removes the models and pages of a folder as far as possible, and the folder, if nothing else is in it.
fn remove_files(options: &Options, n_targets: usize) {
    for folder in (0..n_targets).map(|i| options.out.join(i.to_string())) {
        for name in ["model.json", "parameters.safetensors", PAGE] {
            let _ = std::fs::remove_file(folder.join(name));
        }
        let _ = std::fs::remove_dir(folder);
    }
    let _ = std::fs::remove_dir(&options.out);
}

/// Given to a target although those before it took all of the time.
const LEAST_TIME: Duration = Duration::from_secs(1);
