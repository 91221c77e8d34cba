use std::io;
use std::path::Path;

use super::TableWriter;
use crate::dtype::{DType, Element};
use crate::error::{Error, SourceError};
use crate::remedy::Remedy;
use crate::schema::Schema;
use crate::statistics::Moments;

impl TableWriter {
    /// Replaces NaN by the mean of its column in the first `n_columns` features, in the file and in the statistics, and records
    /// the means in the metadata. `table` is its path or URL, for errors.
    ///
    /// # Cost
    /// Reads the features once, and writes the blocks with missing values.
    pub(crate) fn impute_means(&mut self, n_columns: usize, table: &Path) -> Result<(), Error> {
        let means = means_of(&mut self.moments, &self.schema, self.n_rows, n_columns);
        let (means, any_missing) = means.map_err(|reason| reason.at(table))?;
        if any_missing {
            self.fill(&means).map_err(|source| self.failed(source))?;
        }
        self.metadata.imputed = Some(means);
        Ok(())
    }

    fn fill(&mut self, values: &[f32]) -> io::Result<()> {
        let n_cols = self.schema.n_cols();
        let n_bytes = (self.n_rows * n_cols * self.schema.dtype.n_bytes()) as u64;
        let dtype = self.schema.dtype;
        self.out.rewrite(n_bytes, |start, bytes| {
            let first = (start / dtype.n_bytes() as u64) as usize % n_cols;
            match dtype {
                DType::F32 => fill_missing::<f32>(bytes, first, n_cols, values),
                #[cfg(feature = "half")]
                DType::F16 => {
                    let values: Vec<half::f16> = values.iter().map(|&value| half::f16::from_f32(value)).collect();
                    fill_missing(bytes, first, n_cols, &values)
                }
                other => unreachable!("importers write no features of {other} with values missing"),
            }
        })
    }
}

/// The means of the first `n_columns` features as they are stored, and whether any value is missing; `moments` are then those of
/// rows in which the means take the place of what is missing.
pub(crate) fn means_of(
    moments: &mut Moments,
    schema: &Schema,
    n_rows: usize,
    n_columns: usize,
) -> Result<(Vec<f32>, bool), SourceError> {
    let (mut means, mut any_missing) = (Vec::with_capacity(n_columns), false);
    for (col, (column, name)) in moments.statistics()[..n_columns].iter().zip(&schema.column_names).enumerate() {
        if column.count == 0 {
            let problem = format!("every value of `{name}` is missing, so it has no mean");
            return Err(SourceError::roles(problem, &[Remedy::DropColumn, Remedy::FillMissingWithNumber]));
        }
        let mean = match schema.dtype {
            #[cfg(feature = "half")]
            DType::F16 => half::f16::from_f64(column.mean).to_f32(),
            _ => column.mean as f32,
        };
        let n_missing = n_rows as u64 - column.count;
        any_missing |= n_missing > 0;
        moments.add_repeated(col, n_missing, mean.into());
        means.push(mean);
    }
    Ok((means, any_missing))
}

/// Fills NaN in values of which the first belongs to column `first`. Returns whether there were any.
fn fill_missing<T: Element>(bytes: &mut [u8], first: usize, n_cols: usize, values: &[T]) -> bool {
    let mut any = false;
    // A block of bytes need not be aligned for its values.
    for (i, bytes) in bytes.chunks_exact_mut(size_of::<T>()).enumerate() {
        let value: T = bytemuck::pod_read_unaligned(bytes);
        if value.to_f32().is_nan()
            && let Some(fill) = values.get((first + i) % n_cols)
        {
            bytes.copy_from_slice(bytemuck::bytes_of(fill));
            any = true;
        }
    }
    any
}
