//! Metrics, on the host and, where there is a kernel for one, on the device too.

use anyhow::{Result, ensure};
use brisk_program::Device;
use brisk_tensor::{DType, Graph, Persistent};

use crate::case::{Case, Outputs, Values};
use crate::form::Form;

pub(crate) fn run(case: &Case, device: &Device, _: Form) -> Result<Option<Outputs>> {
    let value = match case.op.as_str() {
        "roc_auc" => brisk_train::metrics::roc_auc(&case.tensor("in.score")?.floats, &case.tensor("in.label")?.floats)?,
        "accuracy" => {
            let logits = case.tensor("in.logits")?;
            let labels: Vec<u32> = case.tensor("in.label")?.floats.iter().map(|&label| label as u32).collect();
            let value = brisk_train::metrics::accuracy(&logits.floats, logits.shape[1], &labels)?;
            let on_device = accuracy_on(device, logits, &labels)?;
            ensure!((value - f64::from(on_device)).abs() < 1e-6, "the device says {on_device}, the host {value}");
            value
        }
        _ => return Ok(None),
    };
    Ok(Some(vec![("out.value".to_owned(), vec![value as f32])]))
}

fn accuracy_on(device: &Device, logits: &Values, labels: &[u32]) -> Result<f32> {
    let graph = Graph::inference("accuracy");
    let x = graph.constant("logits", &logits.floats, &logits.shape);
    let target = graph.constant_codes("labels", labels, &[labels.len()]);
    let value = Persistent::new("accuracy", DType::F32, 1);
    graph.store(&x.correct(&target).mean(..), &Graph::state_buffer(), &value);
    graph.compile(device)?.run(1)?;
    Ok(device.read(&value)?[0])
}
