use std::sync::Arc;

use anyhow::Result;
use arrow_array::{ArrayRef, Float32Array, Float64Array, RecordBatch, StringArray};
use brisk_tabular::Predictions;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use super::output::probability_name;

/// The predictions as a Parquet file: the target, then the probability of each class.
pub(crate) fn encode(name: &str, predictions: &Predictions) -> Result<Vec<u8>> {
    let classes = predictions.classes();
    let target: ArrayRef = if classes.is_empty() {
        let numbers = predictions.numbers().iter().copied();
        match predictions.are_f32() {
            true => Arc::new(Float32Array::from_iter_values(numbers.map(|number| number as f32))),
            false => Arc::new(Float64Array::from_iter_values(numbers)),
        }
    } else {
        Arc::new(StringArray::from_iter((0..predictions.n_rows()).map(|row| predictions.class(row))))
    };
    let probability = |class: usize| -> ArrayRef {
        let values = predictions.probabilities().iter().skip(class).step_by(classes.len());
        Arc::new(Float32Array::from_iter_values(values.copied()))
    };
    let columns = classes.iter().enumerate().map(|(i, class)| (probability_name(class), probability(i)));
    let batch = RecordBatch::try_from_iter(std::iter::once((name.to_owned(), target)).chain(columns))?;
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties))?;
    writer.write(&batch)?;
    Ok(writer.into_inner()?)
}
