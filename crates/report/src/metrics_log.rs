use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use brisk_atomic_file::{is_same_file, read_regular_file};
use serde_json::{Map, Value};

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
    /// [`Error::NotALog`] if there is any other file; [`Error::SameFile`]; [`Error::Io`].
    pub fn create(csv: &Path, json: &Path) -> Result<Self, Error> {
        let earlier = Earlier::read(csv, json, 0)?;
        for file in [&earlier.csv, &earlier.json] {
            if !file.text.is_empty() {
                return Err(Error::LogExists { path: file.path.clone() });
            }
        }
        earlier.reopen(0, "start the log")
    }

    /// Continues the log after its first `n_rows` rows and drops later ones: epochs that the checkpoint does not include are
    /// trained again.
    ///
    /// # Errors
    /// [`Error::ShortLog`] if there are fewer rows; [`Error::NotALog`] for files that are not such a log; [`Error::SameFile`];
    /// [`Error::Io`]. Both files are then unchanged.
    pub fn resume(csv: &Path, json: &Path, n_rows: usize) -> Result<Self, Error> {
        Earlier::read(csv, json, n_rows)?.reopen(n_rows, "continue the log")
    }

    /// Adds a row: the same names in the same order each time.
    ///
    /// # Errors
    /// [`Error::NoColumns`], [`Error::LogColumns`], [`Error::ColumnName`]; [`Error::Io`], for example on a full disk. Then no
    /// part of the row is in the log.
    pub fn append(&mut self, row: &[(&str, f64)]) -> Result<(), Error> {
        let is_first = self.columns.is_empty();
        let names: Vec<&str> = row.iter().map(|(name, _)| *name).collect();
        let path = || self.csv.path.clone();
        if is_first && row.is_empty() {
            return Err(Error::NoColumns { path: path() });
        } else if is_first && let Some(name) = unusable(&names) {
            return Err(Error::ColumnName { path: path(), found: name.to_owned() });
        } else if !is_first && self.columns != names {
            let found = names.into_iter().map(str::to_owned).collect();
            return Err(Error::LogColumns { path: path(), expected: self.columns.clone(), found });
        }

        let mut csv = String::new();
        if is_first {
            csv += &names.join(",");
            csv.push('\n');
        }
        csv += &joined(row.iter().map(|(_, value)| shortest(*value)));
        csv.push('\n');
        let json = joined(row.iter().map(|(name, value)| {
            let value = if value.is_finite() { shortest(*value) } else { "null".to_owned() };
            format!("{}:{value}", Value::from(*name))
        }));

        let before_bytes = self.csv.len_bytes;
        self.csv.append(&csv)?;
        if let Err(error) = self.json.append(&format!("{{{json}}}\n")) {
            self.csv.cut(before_bytes);
            return Err(error);
        }
        if is_first {
            self.columns = names.into_iter().map(str::to_owned).collect();
        }
        Ok(())
    }
}

/// The files of a log of an earlier run, which have been read and not changed yet.
#[derive(Debug)]
struct Earlier {
    csv: Found,
    json: Found,
    /// Empty for a log without rows.
    columns: Vec<String>,
}

impl Earlier {
    /// Reads both files, and checks that they are a log of at least `n_rows` rows, so that no other file is ever replaced.
    fn read(csv: &Path, json: &Path, n_rows: usize) -> Result<Self, Error> {
        if is_same_file(csv, json) {
            return Err(Error::SameFile { path: csv.to_owned() });
        }
        let (csv, json) = (Found::read(csv)?, Found::read(json)?);
        let mut lines = csv.lines();
        let columns: Vec<&str> = lines.next().map(|line| line.split(',').collect()).unwrap_or_default();
        if unusable(&columns).is_some() || (columns.is_empty() && !csv.text.is_empty()) {
            return Err(csv.refused("its first line does not name columns".to_owned()));
        }
        let n_csv_rows = (2..).zip(lines).try_fold(0, |n_rows, (number, line)| {
            let is_row = line.split(',').count() == columns.len() && line.split(',').all(|cell| cell.parse::<f64>().is_ok());
            if is_row { Ok(n_rows + 1) } else { Err(csv.refused(format!("line {number} has no number for each column"))) }
        })?;
        csv.check_count(n_csv_rows, n_rows)?;
        json.check_count(json.lines().count(), n_rows)?;
        let is_row = |line: &str| {
            let row: Option<Map<String, Value>> = serde_json::from_str(line).ok();
            row.is_some_and(|row| row.len() == columns.len() && columns.iter().all(|name| row.contains_key(*name)))
        };
        if let Some((number, _)) = (1..).zip(json.lines()).find(|(_, line)| !is_row(line)) {
            return Err(json.refused(format!("line {number} is no object with the columns of {}", csv.path.display())));
        }
        // A run creates both files before its first row.
        for (file, other) in [(&csv, &json), (&json, &csv)] {
            if !file.text.is_empty() && !other.exists {
                return Err(file.refused(format!("there is no {}", other.path.display())));
            }
        }
        let columns = columns.into_iter().map(str::to_owned).collect();
        Ok(Self { csv, json, columns })
    }

    /// Drops the lines after the first `n_rows` rows.
    fn reopen(self, n_rows: usize, action: &'static str) -> Result<MetricsLog, Error> {
        let columns = if n_rows == 0 { Vec::new() } else { self.columns };
        let n_csv_lines = if n_rows == 0 { 0 } else { n_rows + 1 };
        Ok(MetricsLog { csv: self.csv.reopen(n_csv_lines, action)?, json: self.json.reopen(n_rows, action)?, columns })
    }
}

#[derive(Debug)]
struct Found {
    path: PathBuf,
    exists: bool,
    text: String,
}

impl Found {
    fn read(path: &Path) -> Result<Self, Error> {
        let (exists, bytes) = match read_regular_file(path) {
            Ok(bytes) => (true, bytes),
            Err(error) if error.kind() == ErrorKind::NotFound => (false, Vec::new()),
            Err(cause) => return Err(Error::Io { path: path.to_owned(), action: "read the log", cause }),
        };
        let found = Self { path: path.to_owned(), exists, text: String::new() };
        let text = String::from_utf8(bytes).map_err(|_| found.refused("it is not text".to_owned()))?;
        Ok(Self { text, ..found })
    }

    /// The complete lines. One that a crash cut off has no line end, and does not count.
    fn lines(&self) -> impl Iterator<Item = &str> {
        self.text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'))
    }

    fn check_count(&self, found: usize, expected: usize) -> Result<(), Error> {
        if found < expected { Err(Error::ShortLog { path: self.path.clone(), expected, found }) } else { Ok(()) }
    }

    fn refused(&self, problem: String) -> Error {
        Error::NotALog { path: self.path.clone(), problem }
    }

    /// Opens the file and keeps its first `n_lines` lines.
    fn reopen(self, n_lines: usize, action: &'static str) -> Result<Lines, Error> {
        let len_bytes = self.text.split_inclusive('\n').take(n_lines).map(|line| line.len() as u64).sum();
        let path = self.path;
        let opened = OpenOptions::new().write(true).create(true).truncate(false).open(&path).and_then(|mut file| {
            file.set_len(len_bytes)?;
            file.seek(SeekFrom::Start(len_bytes))?;
            Ok(file)
        });
        match opened {
            Ok(file) => Ok(Lines { path, file, len_bytes }),
            Err(cause) => Err(Error::Io { path, action, cause }),
        }
    }
}

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

/// The first name that cannot head a column.
fn unusable<'a>(names: &[&'a str]) -> Option<&'a str> {
    let is_unusable = |(column, name): &(usize, &&str)| {
        name.is_empty() || names[..*column].contains(name) || name.contains([',', '"', '\n', '\r'])
    };
    names.iter().enumerate().find(is_unusable).map(|(_, name)| *name)
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
