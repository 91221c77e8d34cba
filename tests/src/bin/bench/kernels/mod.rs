//! Kernels alone: their twins, their WGSL, what it costs to have them run, and the same by others.

mod burn;
mod case;
mod conv;
mod families;
mod gemm;
mod limits;
mod replay;
mod turns;
mod twins;

use anyhow::Result;
use brisk_program::DeviceKind;

use crate::options::{Options, Part};
use crate::row::Table;

type Measure = fn(&Options) -> Result<Table>;

/// Those that run on the cpu executor, then those that run on an adapter.
pub(crate) const PARTS: [Part<Measure>; 5] =
    [("twins", twins::run), ("conv", conv::run), ("replay", replay::run), ("families", families::run), ("burn", burn::run)];
const ON_AN_ADAPTER: [&str; 3] = ["replay", "families", "burn"];

#[expect(clippy::print_stdout, reason = "why there is no figure belongs to the report")]
pub(crate) fn run(options: &Options) -> Result<Vec<Table>> {
    let mut tables: Vec<Table> = Vec::new();
    for (name, measure) in PARTS.iter().filter(|(name, _)| options.wants(name)) {
        if ON_AN_ADAPTER.contains(name) && options.device.info().kind == DeviceKind::Cpu {
            println!("{name}: is measured on an adapter, of which there is none here or another was asked for");
            continue;
        }
        let table = measure(options)?;
        match tables.last_mut() {
            Some(last) if last.device == table.device => last.rows.extend(table.rows),
            _ => tables.push(table),
        }
    }
    Ok(tables)
}
