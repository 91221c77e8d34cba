#![expect(unsafe_code, reason = "the suite measures maps")]

use std::path::Path;

use crate::higgs_table::N_COLS;
use brisk_table::{Error, Schema, Table, TableWriter};

/// The columns of all tables in this suite: `x0`, `x1`, …, and a label.
pub(crate) fn schema() -> Schema {
    Schema { label_names: vec!["label".to_owned()], ..Schema::named((0..N_COLS).map(|col| format!("x{col}"))) }
}

/// Writes a table of these rows.
pub(crate) fn write(path: &Path, features: &[f32], labels: &[f32]) -> Result<(), Error> {
    let mut writer = TableWriter::create(path, schema())?;
    writer.push(features, labels)?;
    writer.finish().map(|_| ())
}

/// Maps the table at `path`, which is in the suite's own folder.
pub(crate) fn mapped(path: &Path) -> Result<Table, Error> {
    // SAFETY: the folder was created for this process, which does not change a file in it once it is written.
    unsafe { Table::open_mapped(path) }
}
