//! Mixed precision compared with f32: memory, time, and metrics after training.

mod memory;
mod profile;
mod quality;
mod speed;
mod task;

use anyhow::Result;

use crate::command_line::{AmpPart, selected};
use crate::options::Options;
use crate::row::Table;

pub(crate) use profile::profile;

const SUITE: &str = "amp";

pub(crate) fn run(options: &Options, only: &[AmpPart]) -> Result<Vec<Table>> {
    let mut rows = Vec::new();
    for part in selected(only) {
        rows.extend(match part {
            AmpPart::Memory => memory::run(options)?,
            AmpPart::Speed => speed::run(options)?,
            AmpPart::Quality => quality::run(options)?,
        });
    }
    Ok(vec![Table { device: options.device.info().clone(), rows }])
}
