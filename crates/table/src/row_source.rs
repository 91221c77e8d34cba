use std::ops::Range;

use brisk_loader::RowSource;

use crate::format::{FEATURES, LABELS};
use crate::{DType, Element, Error, Table};

/// Runs the expression with `$T` as the Rust type of a dtype.
macro_rules! for_dtype {
    ($table:expr, $tensor:expr, $dtype:expr, $T:ident => $run:expr) => {
        match $dtype {
            DType::F32 => {
                type $T = f32;
                $run
            }
            DType::U8 => {
                type $T = u8;
                $run
            }
            DType::U32 => {
                type $T = u32;
                $run
            }
            DType::I32 => {
                type $T = i32;
                $run
            }
            DType::I64 => {
                type $T = i64;
                $run
            }
            DType::F64 => {
                type $T = f64;
                $run
            }
            #[cfg(feature = "half")]
            DType::F16 => {
                type $T = half::f16;
                $run
            }
            #[cfg(feature = "half")]
            DType::BF16 => {
                type $T = half::bf16;
                $run
            }
            stored => return Err(Error::NotGathered { path: $table.path().to_owned(), tensor: $tensor, stored }),
        }
    };
}
/// A table feeds batches as it is: `f32` rows by memcpy, `u8` and the other [`Element`]s converted on the way (`u8` as 0 to 255).
impl RowSource for Table {
    type Feature = f32;
    type Error = Error;

    fn n_rows(&self) -> usize {
        self.n_rows()
    }

    fn n_cols(&self) -> usize {
        self.n_cols()
    }

    fn gather(&self, rows: &[u32], features: &mut [f32], labels: &mut [f32]) -> Result<(), Error> {
        self.check_buffers("gather", rows.len(), features, labels)?;
        if let Some(&row) = rows.iter().find(|&&row| row as usize >= self.n_rows()) {
            return Err(self.rows_out_of_range(row as usize..row as usize + 1));
        }
        for_dtype!(self, FEATURES, self.dtype(), T => {
            let (stored, n_cols) = (self.rows::<T>(0..self.n_rows())?, self.n_cols());
            for (&row, out) in rows.iter().zip(features.chunks_exact_mut(n_cols.max(1))) {
                convert(&stored[row as usize * n_cols..][..n_cols], out);
            }
        });
        for_dtype!(self, LABELS, self.label_dtype(), T => {
            let stored = self.labels::<T>()?;
            for (&row, out) in rows.iter().zip(labels) {
                *out = stored[row as usize].to_f32();
            }
        });
        Ok(())
    }

    fn gather_range(&self, rows: Range<usize>, features: &mut [f32], labels: &mut [f32]) -> Result<(), Error> {
        // A range that ends before it starts is empty.
        let rows = rows.start..rows.end.max(rows.start);
        self.check_buffers("gather_range", rows.len(), features, labels)?;
        if rows.is_empty() {
            return Ok(());
        }
        for_dtype!(self, FEATURES, self.dtype(), T => convert(self.rows::<T>(rows.clone())?, features));
        for_dtype!(self, LABELS, self.label_dtype(), T => convert(&self.labels::<T>()?[rows], labels));
        Ok(())
    }
}

impl Table {
    fn check_buffers(&self, op: &'static str, n_rows: usize, features: &[f32], labels: &[f32]) -> Result<(), Error> {
        if labels.len() != n_rows {
            return Err(Error::Length { op, arg: "labels", expected: n_rows, found: labels.len() });
        }
        // Rows that no buffer could hold are no rows of this table: not a number to overflow on.
        let expected = n_rows.saturating_mul(self.n_cols());
        if features.len() != expected {
            return Err(Error::Length { op, arg: "features", expected, found: features.len() });
        }
        Ok(())
    }
}

/// Stored values as `f32`; a memcpy where they are that.
fn convert<T: Element>(stored: &[T], out: &mut [f32]) {
    if let Ok(stored) = bytemuck::try_cast_slice::<T, f32>(stored)
        && T::DTYPE == DType::F32
    {
        out.copy_from_slice(stored);
        return;
    }
    for (out, value) in out.iter_mut().zip(stored) {
        *out = value.to_f32();
    }
}
