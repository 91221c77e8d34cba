//! What a training step takes on more ranks: predicted, and measured where there are ranks to measure on.

mod check;
mod links;
mod simulate;

use anyhow::{Result, bail};
use serde_json::Value;

use crate::options::Options;
use crate::row::Table;

#[cfg(feature = "mpi")]
pub(crate) use check::rank;
pub(crate) use links::OwnLink;

const SUITE: &str = "scaling";

/// Tables of predictions beside what was measured, and the predictions of what cannot be, as programs read them.
pub(crate) fn run(options: &Options) -> Result<(Vec<Table>, Vec<Value>)> {
    let (rows, shared_memory) = check::run(options)?;
    let predictions = if options.simulate { simulate::run(options, shared_memory)? } else { Vec::new() };
    if !options.simulate && options.link.is_given() {
        bail!("--latency-us and --gbit are of a link that --simulate predicts for");
    }
    Ok((vec![Table { device: options.device.info().clone(), rows }], predictions))
}
