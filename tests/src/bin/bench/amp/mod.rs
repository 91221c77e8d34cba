//! Mixed precision beside f32: memory, time, and what comes of training.

mod memory;
mod quality;
mod speed;
mod task;

use anyhow::Result;

use crate::options::{Options, Part};
use crate::row::{Row, Table};

const SUITE: &str = "amp";

type Measure = fn(&Options) -> Result<Vec<Row>>;

pub(crate) const PARTS: [Part<Measure>; 3] = [("memory", memory::run), ("speed", speed::run), ("quality", quality::run)];

pub(crate) fn run(options: &Options) -> Result<Vec<Table>> {
    let mut rows = Vec::new();
    for (_, measure) in PARTS.iter().filter(|(name, _)| options.wants(name)) {
        rows.extend(measure(options)?);
    }
    Ok(vec![Table { device: options.device.info().clone(), rows }])
}
