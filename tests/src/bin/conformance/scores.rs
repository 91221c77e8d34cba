//! Metrics on the host.

use anyhow::Result;
use brisk_program::Device;

use crate::case::{Case, Outputs};

pub(crate) fn run(case: &Case, _: &Device) -> Result<Option<Outputs>> {
    let value = match case.op.as_str() {
        "roc_auc" => brisk_train::metrics::roc_auc(&case.tensor("in.score")?.floats, &case.tensor("in.label")?.floats)?,
        "accuracy" => {
            let logits = case.tensor("in.logits")?;
            let labels: Vec<u32> = case.tensor("in.label")?.floats.iter().map(|&label| label as u32).collect();
            brisk_train::metrics::accuracy(&logits.floats, logits.shape[1], &labels)?
        }
        _ => return Ok(None),
    };
    Ok(Some(vec![("out.value".to_owned(), vec![value as f32])]))
}
