use std::path::Path;

use anyhow::Result;
use brisk_examples::elsewhere::is_url;
use brisk_examples::{NamedFile, check_files_differ, check_output};
use brisk_table::ImportOptions;

use crate::options::Options;

/// Checks, before anything is opened for writing, that the table, if it is a file, and the report can be written and replace
/// nothing that is read.
pub(crate) fn check(options: &Options, import: &ImportOptions, source: &Path) -> Result<()> {
    let is_file = options.shard_rows.is_none() && !is_url(&options.dest);
    let (table, source) = (is_file.then_some(("OUT", &*options.dest)), ("IN", source));
    let report = options.json.as_deref().map(|path| ("--json", path));
    let like = import.csv.columns.like.as_deref().map(|path| ("--like", path));
    // The name of an array in an archive, or the number of a column, is not a file.
    let labels = import.idx.labels.as_deref().filter(|path| path.exists());
    let others: Vec<NamedFile<'_>> = like.into_iter().chain(labels.map(|path| ("--labels", path))).collect();

    check_files_differ(table.as_slice(), &others)?;
    // A table may be in the folder that it is made from; the importer knows which files of the folder it reads.
    if !source.1.is_dir() {
        check_files_differ(table.as_slice(), &[source])?;
    }
    check_files_differ(report.as_slice(), &[&others[..], &[source], table.as_slice()].concat())?;
    for (option, path) in table.into_iter().chain(report) {
        check_output(option, path)?;
    }
    Ok(())
}
