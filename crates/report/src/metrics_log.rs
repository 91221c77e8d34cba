use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::error::Error;

/// The log of a run: one row per epoch in a CSV file, and the same as one JSON object per line in a second file. A validation
/// within an epoch has a row, too, with a fractional `epoch`: 1.5 in the middle of the second.
///
/// Each row is on disk when [`MetricsLog::append`] returns, so a run can be watched, and the log of a killed run is complete.
/// The first row's names are the header. Numbers have the fewest digits that parse back to the same number; `f32` values, such as
/// losses, the fewest that parse back to the same `f32`. In JSON, a number that is not finite is `null`.
///
/// # Examples
/// ```
/// use brisk_report::MetricsLog;
///
/// # let folder = tempfile::tempdir()?;
/// let [csv, json] = ["metrics.csv", "metrics.json"].map(|name| folder.path().join(name));
/// let mut log = MetricsLog::create(&csv, &json)?;
/// log.append(&[("epoch", 0.0), ("loss", 0.6931), ("auc", 0.7512)])?;
/// assert_eq!(std::fs::read_to_string(&csv)?, "epoch,loss,auc\n0,0.6931,0.7512\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct MetricsLog {
    csv: Lines,
    json: Lines,
    /// Empty until the first row.
    columns: Vec<String>,
}

impl MetricsLog {
    /// Starts the log of a new run. Files of a log without rows are reused.
    ///
    /// # Errors
    /// [`Error::LogExists`] if there is the log of an earlier run, with rows, which [`MetricsLog::resume`] continues;
    /// [`Error::Io`].
    pub fn create(csv: &Path, json: &Path) -> Result<Self, Error> {
        let empty = |path: &Path| {
            let path = path.to_owned();
            let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
            let len_bytes = file.as_ref().map_or(Ok(0), |file| file.metadata().map(|metadata| metadata.len()));
            match (file, len_bytes) {
                (Ok(file), Ok(0)) => Ok(Lines { path, file, len_bytes: 0 }),
                (Ok(_), Ok(_)) => Err(Error::LogExists { path }),
                (Err(cause), _) | (_, Err(cause)) => Err(Error::Io { path, action: "start the log", cause }),
            }
        };
        Ok(Self { csv: empty(csv)?, json: empty(json)?, columns: Vec::new() })
    }

    /// Continues the log after its first `n_rows` rows and drops later ones: epochs that the checkpoint does not include are
    /// trained again.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::ShortLog`] if there are fewer rows. Both files are then unchanged.
    pub fn resume(csv: &Path, json: &Path, n_rows: usize) -> Result<Self, Error> {
        // Both files are checked before either is truncated.
        let csv = Found::read(csv.to_owned(), if n_rows == 0 { 0 } else { n_rows + 1 }, n_rows)?;
        let json = Found::read(json.to_owned(), n_rows, n_rows)?;
        let columns = if n_rows == 0 { Vec::new() } else { csv.first_line.split(',').map(str::to_owned).collect() };
        Ok(Self { csv: csv.reopen()?, json: json.reopen()?, columns })
    }

    /// Adds a row: the same names in the same order each time.
    ///
    /// # Errors
    /// [`Error::LogColumns`], [`Error::ColumnName`]; [`Error::Io`], for example on a full disk. Then no part of the row is in the
    /// log.
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

/// A log file of an earlier run, which has been read and not changed yet.
#[derive(Debug)]
struct Found {
    path: PathBuf,
    first_line: String,
    /// Bytes of the lines to keep.
    kept_bytes: u64,
}

impl Found {
    /// Finds the first `n_lines` lines, which hold `n_rows` rows. A missing file has no lines.
    fn read(path: PathBuf, n_lines: usize, n_rows: usize) -> Result<Self, Error> {
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(cause) => return Err(Error::Io { path, action: CONTINUE, cause }),
        };
        // A line that a crash cut off has no line end, and does not count.
        let whole: Vec<&str> = text.split_inclusive('\n').filter(|line| line.ends_with('\n')).collect();
        let Some(kept) = whole.get(..n_lines) else {
            let n_headers = n_lines - n_rows;
            return Err(Error::ShortLog { found: whole.len().saturating_sub(n_headers), path, expected: n_rows });
        };
        let first_line = kept.first().map_or("", |line| line.trim_end()).to_owned();
        Ok(Self { path, first_line, kept_bytes: kept.iter().map(|line| line.len() as u64).sum() })
    }

    /// Drops the lines after those to keep.
    fn reopen(self) -> Result<Lines, Error> {
        let Self { path, kept_bytes: len_bytes, .. } = self;
        let opened = OpenOptions::new().write(true).create(true).truncate(false).open(&path).and_then(|mut file| {
            file.set_len(len_bytes)?;
            file.seek(SeekFrom::Start(len_bytes))?;
            Ok(file)
        });
        match opened {
            Ok(file) => Ok(Lines { path, file, len_bytes }),
            Err(cause) => Err(Error::Io { path, action: CONTINUE, cause }),
        }
    }
}

const CONTINUE: &str = "continue the log";

/// A file that consists of whole lines.
#[derive(Debug)]
struct Lines {
    path: PathBuf,
    file: File,
    len_bytes: u64,
}

impl Lines {
    /// Adds text, which is on disk when this returns: a log that is shorter than its checkpoint could not be continued.
    fn append(&mut self, text: &str) -> Result<(), Error> {
        if let Err(cause) = self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_data()) {
            self.cut(self.len_bytes);
            return Err(Error::Io { path: self.path.clone(), action: "add a row to the log", cause });
        }
        self.len_bytes += text.len() as u64;
        Ok(())
    }

    /// Removes lines after a failure. If that fails as well, the caller still reports the first error.
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

/// The fewest digits that parse back to the number, without an exponent where that is easy to read. The result is valid JSON
/// except for NaN and infinities.
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
