use std::fs::File;
use std::io::{BufReader, Seek};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::RecordBatch;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::ArrowError;

use super::ArrowOptions;
use super::plan::{Plan, ReadRows, report, sound};
use crate::destination::Progress;
use crate::error::Error;
use crate::import::{Counted, Dest, ImportReport, Input, NobodyWaits, Origin};
use crate::parts::first_bytes;

const EXPECTED: &str = "an Arrow IPC file or stream; if it is one, it is damaged, write it again";

pub(super) fn read(
    path: &Path,
    dest: &Dest<'_>,
    options: &ArrowOptions,
    origin: Origin,
    progress: &mut dyn FnMut(Progress),
) -> Result<ImportReport, Error> {
    let (magic, mut file) = first_bytes(path, 6)?;
    if magic == *b"ARROW1" {
        file.rewind().map_err(Error::io(path, "read"))?;
        let n_read = Arc::new(AtomicU64::new(0));
        let file = BufReader::new(Counted::<File>::new(file, &n_read));
        let reader = sound("the schema", EXPECTED, || FileReader::try_new(file, None)).map_err(|reason| reason.at(path))?;
        let schema = reader.schema();
        return write(&Plan::new(path, origin, &schema, options)?, dest, reader, &n_read, progress);
    }
    let input = Input::open(path)?;
    let bytes = BufReader::new(input.bytes);
    let reader = sound("the schema", EXPECTED, || StreamReader::try_new(bytes, None)).map_err(|reason| reason.at(path))?;
    let schema = reader.schema();
    write(&Plan::new(path, origin, &schema, options)?, dest, reader, &input.n_read, progress)
}

fn write(
    plan: &Plan<'_>,
    dest: &Dest<'_>,
    mut batches: impl Iterator<Item = Result<RecordBatch, ArrowError>> + Send,
    n_read: &AtomicU64,
    progress: &mut dyn FnMut(Progress),
) -> Result<ImportReport, Error> {
    let total_bytes = plan.origin.source.n_bytes;
    let (fields, chunk_rows) = (plan.columns.fields(), plan.chunk_rows());
    let feed = |put: &mut dyn FnMut(ReadRows) -> Result<(), NobodyWaits>| {
        for index in 0_u64.. {
            let mut next = || batches.next().map(|batch| batch?.project(&fields)).transpose();
            let batch = match sound(&format!("batch {index}"), EXPECTED, &mut next) {
                Ok(Some(batch)) => batch,
                Ok(None) => break,
                Err(reason) => {
                    _ = put(Err(reason));
                    break;
                }
            };
            // Batches may be of any size; slices of them are views.
            let mut slices = (0..batch.num_rows()).step_by(chunk_rows);
            if slices.try_for_each(|row| put(Ok(batch.slice(row, chunk_rows.min(batch.num_rows() - row))))).is_err() {
                break;
            }
        }
    };
    let mut progress = report(progress, total_bytes, || n_read.load(Ordering::Relaxed).min(total_bytes));
    // An error means that the import has ended: then there is nothing left to read.
    plan.write(dest, 1, feed, |batch, put| _ = put(batch), &mut progress)
}
