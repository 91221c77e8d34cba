use std::path::Path;

use anyhow::{Result, bail};
use brisk_examples::command_line::Given;
use brisk_examples::elsewhere::{Streamed, Use, is_table, open_streamed, shown};
use brisk_examples::interruptible::{self, interruptible};
use brisk_table::{Destination, ImportReport, ReadAhead, copy_table};
use brisk_train::StopFlag;

use crate::bar::Bar;
use crate::options::{Options, SETTINGS};

/// Memory for rows that are read ahead: about twice what the copy announces.
const READ_AHEAD_BYTES: usize = 64 << 20;

/// The table at a path or URL, which is copied as it is; `None` if there is something else to be imported.
pub(crate) fn open(path: &Path) -> Result<Option<Streamed>> {
    Ok(if is_table(path) { open_streamed(path, &ReadAhead::new(READ_AHEAD_BYTES), Use::Copy).ok() } else { None })
}

/// Refuses options that would have no effect on a copy.
pub(crate) fn check(options: &Options, given: &[Given]) -> Result<()> {
    let is_of_import = |name: &&Given| *name == "format" || SETTINGS.iter().any(|(setting, _)| setting == name);
    match given.iter().find(is_of_import) {
        Some(name) => bail!("{}: is a table, which is copied as it is; leave out `--{name}`", shown(&options.source)),
        None => Ok(()),
    }
}

/// Copies with a bar, and returns what an import reports, and the number of bytes that were read; `None` if a signal stopped it.
pub(crate) fn copy(table: &Streamed, dest: &Destination, stop: &StopFlag) -> Result<Option<(ImportReport, u64)>> {
    let (mut bar, mut n_read) = (Bar::stderr(), 0);
    macro_rules! copied {
        ($table:expr) => {{
            let progress = |progress| {
                bar.show(&progress);
                n_read = progress.bytes_read;
                interruptible::check(stop);
            };
            let Some(written) = interruptible(|| copy_table($table, dest, progress)) else { return Ok(None) };
            let (written, mut report) = (written?, ImportReport::default());
            (report.n_rows, report.n_bytes) = (written.n_rows, written.n_bytes);
            report.row_shape = $table.row_shape().to_vec();
            report.column_names = $table.column_names().to_vec();
            report.label_names = $table.label_names().to_vec();
            report.dictionaries = $table.dictionaries().to_vec();
            report.classes = $table.classes().to_vec();
            report.statistics = $table.statistics().unwrap_or_default().to_vec();
            report
        }};
    }
    let report = match table {
        Streamed::File(table) => copied!(table),
        Streamed::Shards(table) => copied!(table),
    };
    Ok(Some((report, n_read)))
}
