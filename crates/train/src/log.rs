use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::{Error, RunFolder};

/// The log of a run: a row an epoch in `metrics.csv`, and the same as a JSON object a line in `metrics.json`.
///
/// Each row is in the files when [`MetricsLog::append`] comes back, so a run can be watched, and one that was killed has its log.
/// The first row's names are the header. Numbers have the fewest digits that give the same number back; one that is an `f32`, as
/// losses are, the fewest that give the same `f32` back. In JSON, which has no word for it, a number that is not finite is `null`.
///
/// # Examples
/// ```no_run
/// # let run = brisk_train::RunFolder::open(std::path::Path::new("runs/higgs-20261121-045501"))?;
/// let mut log = brisk_train::MetricsLog::create(&run)?;
/// log.append(&[("epoch", 0.0), ("loss", 0.6931), ("auc", 0.7512)])?;
/// # Ok::<(), brisk_train::Error>(())
/// ```
#[derive(Debug)]
pub struct MetricsLog {
    csv: Lines,
    json: Lines,
    /// Empty until there is a row.
    columns: Vec<String>,
}

impl MetricsLog {
    /// Starts the log of a new run.
    ///
    /// # Errors
    /// [`Error::Io`], also where the run has a log: [`MetricsLog::resume`] goes on with one.
    pub fn create(run: &RunFolder) -> Result<Self, Error> {
        let create = |path: PathBuf| {
            let file = OpenOptions::new().write(true).create_new(true).open(&path);
            let file = file.map_err(|source| Error::Io { path: path.clone(), action: "start the log", source })?;
            Ok::<_, Error>(Lines { path, file, len_bytes: 0 })
        };
        Ok(Self { csv: create(run.metrics_csv())?, json: create(run.metrics_json())?, columns: Vec::new() })
    }

    /// Goes on after the first `n_rows` rows, and drops later ones: the epochs that the checkpoint has not seen are run again.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::ShortLog`] if there are fewer rows.
    pub fn resume(run: &RunFolder, n_rows: usize) -> Result<Self, Error> {
        let n_csv_lines = if n_rows == 0 { 0 } else { n_rows + 1 };
        let (csv, header) = Lines::reopen(run.metrics_csv(), n_csv_lines, n_rows)?;
        let (json, _) = Lines::reopen(run.metrics_json(), n_rows, n_rows)?;
        let columns = if n_rows == 0 { Vec::new() } else { header.split(',').map(str::to_owned).collect() };
        Ok(Self { csv, json, columns })
    }

    /// Adds a row: the same names in the same order each time.
    ///
    /// # Errors
    /// [`Error::LogColumns`], [`Error::ColumnName`]; [`Error::Io`], a full disk among the reasons. No part of the row is in the log
    /// then.
    pub fn append(&mut self, row: &[(&str, f64)]) -> Result<(), Error> {
        let is_first = self.columns.is_empty();
        if is_first {
            check_names(&self.csv.path, row)?;
        } else if !self.columns.iter().map(String::as_str).eq(row.iter().map(|(name, _)| *name)) {
            return Err(Error::LogColumns {
                path: self.csv.path.clone(),
                expected: self.columns.clone(),
                found: row.iter().map(|(name, _)| (*name).to_owned()).collect(),
            });
        }

        let mut csv = String::new();
        if is_first {
            csv += &joined(row.iter().map(|(name, _)| (*name).to_owned()));
            csv.push('\n');
        }
        csv += &joined(row.iter().map(|(_, value)| shortest(*value)));
        csv.push('\n');
        let json = joined(row.iter().map(|(name, value)| {
            let value = if value.is_finite() { shortest(*value) } else { "null".to_owned() };
            format!("{}:{value}", serde_json::Value::from(*name))
        }));

        let before_bytes = self.csv.len_bytes;
        self.csv.append(&csv)?;
        if let Err(error) = self.json.append(&format!("{{{json}}}\n")) {
            self.csv.cut(before_bytes);
            return Err(error);
        }
        if is_first {
            self.columns = row.iter().map(|(name, _)| (*name).to_owned()).collect();
        }
        Ok(())
    }
}

/// A file that only ever has whole lines.
#[derive(Debug)]
struct Lines {
    path: PathBuf,
    file: File,
    len_bytes: u64,
}

impl Lines {
    /// Keeps the first `n_lines` lines, and gives the very first of them. `n_rows` is for the error.
    fn reopen(path: PathBuf, n_lines: usize, n_rows: usize) -> Result<(Self, String), Error> {
        let failed = |source: io::Error| Error::Io { path: path.clone(), action: "go on with the log", source };
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed)?;
        // A line that a crash cut off has no end, and does not count.
        let whole: Vec<&str> = text.split_inclusive('\n').filter(|line| line.ends_with('\n')).collect();
        let Some(kept) = whole.get(..n_lines) else {
            let n_headers = n_lines - n_rows;
            return Err(Error::ShortLog { found: whole.len().saturating_sub(n_headers), path, expected: n_rows });
        };
        let header = kept.first().map_or("", |line| line.trim_end()).to_owned();
        let len_bytes = kept.iter().map(|line| line.len() as u64).sum();
        file.set_len(len_bytes).and_then(|()| file.seek(SeekFrom::Start(len_bytes))).map_err(failed)?;
        Ok((Self { path, file, len_bytes }, header))
    }

    /// One write, which the system has when this comes back.
    fn append(&mut self, text: &str) -> Result<(), Error> {
        if let Err(source) = self.file.write_all(text.as_bytes()) {
            self.cut(self.len_bytes);
            return Err(Error::Io { path: self.path.clone(), action: "add a row to the log", source });
        }
        self.len_bytes += text.len() as u64;
        Ok(())
    }

    /// Takes lines away that were not to be. Where that fails too, the error that led here is the one that counts.
    fn cut(&mut self, len_bytes: u64) {
        let _ = self.file.set_len(len_bytes).and_then(|()| self.file.seek(SeekFrom::Start(len_bytes)));
        self.len_bytes = len_bytes;
    }
}

fn check_names(path: &Path, row: &[(&str, f64)]) -> Result<(), Error> {
    for (column, (name, _)) in row.iter().enumerate() {
        let is_taken = row[..column].iter().any(|(other, _)| other == name);
        if name.is_empty() || is_taken || name.contains([',', '"', '\n', '\r']) {
            return Err(Error::ColumnName { path: path.to_owned(), found: (*name).to_owned() });
        }
    }
    Ok(())
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(",")
}

/// The fewest digits that give the number back; without an exponent where people can read it so. All but NaN and the infinities
/// are numbers in JSON, too.
fn shortest(value: f64) -> String {
    let size = value.abs();
    let is_readable = size == 0.0 || (1e-5..1e16).contains(&size);
    if value.is_nan() {
        "nan".to_owned()
    } else if is_readable && (value.fract() == 0.0 || f64::from(value as f32) != value) {
        value.to_string()
    } else if is_readable {
        (value as f32).to_string()
    } else if f64::from(value as f32) == value {
        format!("{:e}", value as f32)
    } else {
        format!("{value:e}")
    }
}
