use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};

use super::ArrowOptions;
use super::plan::{Plan, ReadRows, report, sound};
use crate::destination::Progress;
use crate::error::Error;
use crate::import::{Dest, ImportReport, NobodyWaits, Origin};
use crate::parts::open_file;

/// How many batches of a row group may wait until those of the previous groups are written: 64 MiB of `f32`.
const N_WAITING: usize = 64;

const EXPECTED: &str = "a sound Parquet file; it is damaged or of a kind that is not read, write it again";

pub(super) fn read(
    path: &Path,
    dest: &Dest<'_>,
    options: &ArrowOptions,
    origin: Origin,
    progress: &mut dyn FnMut(Progress),
) -> Result<ImportReport, Error> {
    let file = open_file(path)?;
    let metadata = sound("the footer", EXPECTED, || ArrowReaderMetadata::load(&file, ArrowReaderOptions::default()));
    let metadata = metadata.map_err(|reason| reason.at(path))?;

    let total_bytes = origin.source.n_bytes;
    let plan = Plan::new(path, origin, metadata.schema(), options)?;
    let mask = ProjectionMask::roots(metadata.parquet_schema(), plan.columns.fields());
    let n_groups = metadata.metadata().num_row_groups();
    let n_read = AtomicU64::new(0);
    let feed = |put: &mut dyn FnMut(usize) -> Result<(), NobodyWaits>| {
        // An error means that the import has ended: then the rest need not be read.
        _ = (0..n_groups).try_for_each(put);
    };
    let read = |group: usize, put: &mut dyn FnMut(ReadRows) -> Result<(), NobodyWaits>| {
        let part = format!("row group {group}");
        let read = (|| {
            let mut reader = sound(&part, EXPECTED, || {
                let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(File::open(path)?, metadata.clone());
                builder.with_row_groups(vec![group]).with_projection(mask.clone()).with_batch_size(plan.chunk_rows()).build()
            })?;
            while let Some(batch) = sound(&part, EXPECTED, || reader.next().transpose())? {
                // An error means that the import has ended: then the rest need not be read.
                if put(Ok(batch)).is_err() {
                    return Ok(());
                }
            }
            let n_bytes = metadata.metadata().row_group(group).compressed_size();
            n_read.fetch_add(u64::try_from(n_bytes).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        })();
        if let Err(reason) = read {
            _ = put(Err(reason));
        }
    };
    let mut progress = report(progress, total_bytes, || n_read.load(Ordering::Relaxed).min(total_bytes));
    plan.write(dest, N_WAITING, feed, read, &mut progress)
}
