use std::sync::Arc;

use anyhow::Result;
use arrow_array::{ArrayRef, Float32Array, Float64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use super::output::{Kept, Predicted};

/// The predictions as a Parquet file: the columns that are kept, as text, each target, then the probability of each of its
/// classes, or the bounds of its intervals.
pub(crate) fn encode(kept: &[Kept], targets: &[Predicted]) -> Result<Vec<u8>> {
    let kept =
        kept.iter().map(|(name, cells)| -> (String, ArrayRef) { (name.clone(), Arc::new(StringArray::from_iter_values(cells))) });
    let batch = RecordBatch::try_from_iter(kept.chain(targets.iter().flat_map(columns)))?;
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties))?;
    writer.write(&batch)?;
    Ok(writer.into_inner()?)
}

fn columns(target: &Predicted) -> Vec<(String, ArrayRef)> {
    let predictions = &target.predictions;
    let classes = predictions.classes();
    let numbers = |numbers: &mut dyn Iterator<Item = f64>| -> ArrayRef {
        match predictions.are_f32() {
            true => Arc::new(Float32Array::from_iter_values(numbers.map(|number| number as f32))),
            false => Arc::new(Float64Array::from_iter_values(numbers)),
        }
    };
    let values: ArrayRef = if classes.is_empty() {
        numbers(&mut predictions.numbers().iter().copied())
    } else {
        Arc::new(StringArray::from_iter((0..predictions.n_rows()).map(|row| predictions.class(row))))
    };
    let probability = |class: usize| -> ArrayRef {
        let values = predictions.probabilities().iter().skip(class).step_by(classes.len());
        Arc::new(Float32Array::from_iter_values(values.copied()))
    };
    let probabilities = target.probability_names().enumerate().map(|(i, name)| (name, probability(i)));
    let bounds = target.bound_names().enumerate();
    let bounds = bounds.map(|(i, name)| (name, numbers(&mut predictions.intervals().iter().map(|bounds| bounds[i]))));
    std::iter::once((target.name.clone(), values)).chain(probabilities).chain(bounds).collect()
}
