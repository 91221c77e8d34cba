use anyhow::Result;
use brisk_tensor::{Mode, Precision};

use super::SUITE;
use super::task::tasks;
use crate::options::Options;
use crate::row::{Better, Row};

/// Rows per batch: enough that activations dominate, as in training that is limited by memory.
const BATCH: usize = 8192;

/// The planned memory for activations and their gradients: half precision compared with f32, and inference compared with
/// training.
pub(super) fn run(options: &Options) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for task in tasks(options) {
        let bytes = |mode, precision| Ok::<_, anyhow::Error>(task.plan(BATCH, mode, precision)?.transient_bytes() as f64);
        let in_f32 = bytes(Mode::Training, Precision::F32)?;
        let row = |case: String, ours: f64, reference: &str, target| Row {
            suite: SUITE,
            case,
            ours: vec![ours],
            unit: "B",
            reference: Some((reference.to_owned(), vec![in_f32])),
            target: Some(target),
            better: Better::Less,
        };
        for precision in [Precision::F16, Precision::Bf16] {
            let ours = bytes(Mode::Training, precision)?;
            rows.push(row(format!("{}, training in {precision}, transients", task.name), ours, "in f32", 1.82));
        }
        let ours = bytes(Mode::Inference, Precision::F32)?;
        rows.push(row(format!("{}, scores in f32, transients", task.name), ours, "training", 2.5));
    }
    Ok(rows)
}
