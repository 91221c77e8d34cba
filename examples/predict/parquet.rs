use std::sync::Arc;

use anyhow::Result;
use arrow_array::{ArrayRef, Float32Array, Float64Array, RecordBatch, StringArray};
use brisk_tabular::Predictions;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use super::output::{bound_names, probability_name};

/// The predictions as a Parquet file: the target, then the probability of each class.
pub(crate) fn encode(name: &str, predictions: &Predictions) -> Result<Vec<u8>> {
    let classes = predictions.classes();
    let numbers = |numbers: &mut dyn Iterator<Item = f64>| -> ArrayRef {
        match predictions.are_f32() {
            true => Arc::new(Float32Array::from_iter_values(numbers.map(|number| number as f32))),
            false => Arc::new(Float64Array::from_iter_values(numbers)),
        }
    };
    let target: ArrayRef = if classes.is_empty() {
        numbers(&mut predictions.numbers().iter().copied())
    } else {
        Arc::new(StringArray::from_iter((0..predictions.n_rows()).map(|row| predictions.class(row))))
    };
    let probability = |class: usize| -> ArrayRef {
        let values = predictions.probabilities().iter().skip(class).step_by(classes.len());
        Arc::new(Float32Array::from_iter_values(values.copied()))
    };
    let columns = classes.iter().enumerate().map(|(i, class)| (probability_name(class), probability(i)));
    let bounds = bound_names(name).into_iter().enumerate();
    let bounds = bounds.map(|(i, bound)| (bound, numbers(&mut predictions.intervals().iter().map(|bounds| bounds[i]))));
    let bounds = bounds.filter(|_| !predictions.intervals().is_empty());
    let batch = RecordBatch::try_from_iter(std::iter::once((name.to_owned(), target)).chain(columns).chain(bounds))?;
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties))?;
    writer.write(&batch)?;
    Ok(writer.into_inner()?)
}
