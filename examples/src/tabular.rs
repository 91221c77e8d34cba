//! Shared code of `tabular` and `predict`: tables of any format, with columns of numbers and categories.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use brisk_table::{
    Categorical, ColumnOptions, CsvOptions, Error, Header, ImportOptions, Missing, Remedy, Table, import_with_progress, printable,
};
use brisk_train::StopFlag;
use clap::Args;
use tempfile::TempDir;

use crate::command_line::value::{MAX_COUNT, one_of, whole};
use crate::import_error::{in_words_of, training};
use crate::interruptible::{self, Stopped, interruptible};

/// How text files are read.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub struct TextOptions {
    /// Whether the first row of a text file names the columns: auto, present, absent
    #[arg(long, value_name = "WHICH", help_heading = "Data", default_value = "auto",
        value_parser = one_of([("auto", Header::Auto), ("present", Header::Present), ("absent", Header::Absent)]))]
    pub header: Header,
    /// Lines to leave out at the start of a text file
    #[arg(long, value_name = "N", help_heading = "Data", default_value = "0", allow_negative_numbers = true,
        value_parser = whole::<usize>(0..=MAX_COUNT))]
    pub skip_lines: usize,
}

/// A table, and the folder that it was imported into, which is removed with it.
#[derive(Debug)]
pub struct OpenTable {
    /// The table.
    pub table: Table,
    _folder: Option<TempDir>,
}

/// Whether the file is a table by its name; any other is imported.
pub fn is_table(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "safetensors")
}

/// Opens a brisk table.
///
/// # Errors
/// If it is not one, or cannot be read.
pub fn open_table(path: &Path) -> Result<OpenTable> {
    Ok(OpenTable { table: Table::open(path)?, _folder: None })
}

/// Imports a file of any format into a temporary table in `folder`. Text becomes categories, missing numbers stay missing.
///
/// # Errors
/// If the file cannot be read as a table, with the options of these examples as remedies; if a stop was requested.
pub fn import(path: &Path, text: &TextOptions, columns: ColumnOptions, folder: &Path, stop: &StopFlag) -> Result<OpenTable> {
    let scratch = tempfile::tempdir_in(folder)?;
    let table = import_into(path, text, columns, &scratch.path().join("rows.safetensors"), stop)
        .map_err(|error| anyhow!(in_words_of(&error, remedy)))?;
    let table = table.ok_or_else(|| stopped(path, stop))?;
    Ok(OpenTable { table, _folder: Some(scratch) })
}

/// Imports rows with a label: numbers if they are numbers, else classes.
///
/// # Errors
/// As [`import`].
pub fn import_labelled(
    path: &Path,
    text: &TextOptions,
    columns: ColumnOptions,
    folder: &Path,
    stop: &StopFlag,
) -> Result<OpenTable> {
    let scratch = tempfile::tempdir_in(folder)?;
    let dest = scratch.path().join("rows.safetensors");
    let mut imported = import_into(path, text, columns.clone(), &dest, stop);
    if matches!(&imported, Err(error) if error.remedies().contains(&Remedy::LabelsAsClasses)) {
        let columns = ColumnOptions { label_kind: brisk_table::LabelKind::Classes, ..columns };
        imported = import_into(path, text, columns, &dest, stop);
    }
    let table = imported.map_err(|error| anyhow!(in_words_of(&error, remedy)))?;
    let table = table.ok_or_else(|| stopped(path, stop))?;
    Ok(OpenTable { table, _folder: Some(scratch) })
}

/// The table; `None` if a stop was requested.
fn import_into(
    path: &Path,
    text: &TextOptions,
    columns: ColumnOptions,
    dest: &PathBuf,
    stop: &StopFlag,
) -> Result<Option<Table>, Error> {
    let columns = ColumnOptions { categorical: Categorical::Auto, missing: Missing::Keep, ..columns };
    let csv = CsvOptions { columns: columns.clone(), header: text.header, skip_lines: text.skip_lines, ..CsvOptions::default() };
    let options = ImportOptions { csv, ..ImportOptions::default() };
    #[cfg(feature = "all-formats")]
    let options = {
        let arrow = brisk_table::ArrowOptions { columns, ..brisk_table::ArrowOptions::default() };
        ImportOptions { arrow, ..options }
    };
    let imported = interruptible(|| import_with_progress(path, dest, &options, |_| interruptible::check(stop)));
    imported.map_or(Ok(None), |imported| imported.and_then(|_| Table::open(dest)).map(Some))
}

fn stopped(path: &Path, stop: &StopFlag) -> Stopped {
    Stopped::new(stop, format!("{}: stopped on request while it was imported", printable(path)))
}

/// Remedies as options of these examples.
fn remedy(remedy: Remedy) -> Option<&'static str> {
    Some(match remedy {
        Remedy::OtherLabel => "name another column with `--target`",
        Remedy::DropColumn => "leave the column out with `--drop`",
        Remedy::HeaderPresent => "pass `--header present`",
        Remedy::HeaderAbsent => "pass `--header absent`",
        Remedy::SkipRows | Remedy::FillMissing | Remedy::KeepMissing => return None,
        other => return training(other),
    })
}

/// A column by its name, or by its index from 0.
pub fn column(word: &str) -> brisk_table::ColumnRef {
    brisk_table::ColumnRef::Word(word.to_owned())
}
