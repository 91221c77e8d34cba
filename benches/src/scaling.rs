//! The time of a training step on several ranks: predicted, and measured on the ranks of this machine.

mod check;
mod links;
mod reader;
mod reading;
mod served;
mod simulate;
mod training;

use anyhow::Result;
use serde_json::Value;

use crate::command_line::Scaling;
use crate::options::Options;
use crate::row::Table;

#[cfg(feature = "mpi")]
pub(crate) use check::rank;
pub(crate) use reader::{READER, reader};
#[cfg(feature = "mpi")]
pub(crate) use training::{limited, train};

const SUITE: &str = "scaling";

/// Tables of measured and predicted times, and JSON rows of the predictions for more ranks than can be measured.
pub(crate) fn run(options: &Options, scaling: &Scaling) -> Result<(Vec<Table>, Vec<Value>)> {
    let (mut rows, shared_memory) = check::run(options)?;
    let mut predictions = Vec::new();
    if scaling.simulate {
        predictions = simulate::run(options, links::links(shared_memory, scaling))?;
        predictions.extend(reading::simulate());
        rows.extend(reading::check(options)?);
    }
    if let Some(n_gigabytes) = scaling.table_gb {
        rows.extend(training::run(options, n_gigabytes)?);
    }
    Ok((vec![Table { device: options.device.info().clone(), rows }], predictions))
}
