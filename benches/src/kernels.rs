//! Single kernels: their twins, their WGSL, the cost of a dispatch, and the same in PyTorch and Burn.

mod burn;
mod case;
mod conv;
mod convnet;
mod elementwise;
mod families;
mod gemm;
mod limits;
mod peak;
mod replay;
mod turns;
mod twins;

use anyhow::Result;
use brisk_program::DeviceKind;

use crate::command_line::{KernelsPart, selected};
use crate::options::Options;
use crate::row::Table;

#[expect(clippy::print_stdout, reason = "why there is no figure belongs to the report")]
pub(crate) fn run(options: &Options, only: &[KernelsPart]) -> Result<Vec<Table>> {
    let mut tables: Vec<Table> = Vec::new();
    for part in selected(only) {
        let needs_adapter = matches!(part, KernelsPart::Replay | KernelsPart::Families | KernelsPart::Burn);
        if needs_adapter && options.device.info().kind == DeviceKind::Cpu {
            println!("{part:?}: skipped, since it is measured on an adapter and this run uses the CPU executor");
            continue;
        }
        let table = match part {
            KernelsPart::Twins => twins::run(options)?,
            KernelsPart::Elementwise => elementwise::run(options)?,
            KernelsPart::Conv => conv::run(options)?,
            KernelsPart::Convnet => convnet::run(options)?,
            KernelsPart::Replay => replay::run(options)?,
            KernelsPart::Families => families::run(options)?,
            KernelsPart::Burn => burn::run(options)?,
        };
        match tables.last_mut() {
            Some(last) if last.device == table.device => last.rows.extend(table.rows),
            _ => tables.push(table),
        }
    }
    Ok(tables)
}
