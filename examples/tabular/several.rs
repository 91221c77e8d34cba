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
use crate::options::Options;
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
    // All are read before the first is trained, so that what is wrong with one of them is known at once.
    let detected = (0..n_targets).map(|i| detect(&options.of_target(i, None), data, stop));
    let detected: Vec<Detected> = detected.collect::<Result<_>>()?;
    let (mut models, mut results, mut are_complete) = (Vec::new(), Vec::new(), true);
    for (i, detected) in detected.into_iter().enumerate() {
        let name = printable(detected.target.name()).to_string();
        print::note(format_args!("target {} of {n_targets}: {name}", i + 1));
        let left = options.time_left(started);
        // No time left is no error any more: there is a model.
        let left = if i == 0 { left? } else { left.unwrap_or(Some(Duration::ZERO)) };
        let own = options.of_target(i, left.map(|left| (left / (n_targets - i) as u32).max(LEAST_TIME)));
        print::result(closing_table(&[("target", name)]))?;
        match train(&own, device, &detected, Instant::now(), stop)? {
            Outcome::Trained { model, results: own, is_complete } => {
                are_complete &= is_complete;
                models.push(*model);
                results.push(own);
            }
            Outcome::Stopped(status) => {
                print::note(format_args!("stopped at target {} of {n_targets}: the folder is not complete", i + 1));
                return Ok(status);
            }
        }
    }
    TabularModels::new(models)?.save(&options.out)?;
    options.remove_former_page()?;
    let written = options
        .json
        .as_ref()
        .map_or(Ok(()), |path| write_json(path, &json!({ "targets": results, "seconds": started.elapsed().as_secs_f64() })));
    print::result(closing_table(&[("models", printable(&options.out).to_string())]))?;
    written.map(|()| if are_complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Given to a target although those before it took all of the time.
const LEAST_TIME: Duration = Duration::from_secs(1);
