use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::Error;
use crate::atomic_file::write_atomically;

/// The folder of one run: its settings, its log, its checkpoints.
///
/// ```text
/// runs/higgs-20261121-045501/
///   config.json         the settings, written before the first step
///   metrics.csv         a row an epoch            metrics.json   the same, a JSON object a line
///   best.safetensors    the best checkpoint       last.safetensors   the latest
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    /// Makes a new folder in `root`, named after the run (`run` without a name) and the time, in UTC. `root` is made as well where
    /// there is none. A folder that is there already is left alone: the new one is then called `…-2`, `…-3` and so on.
    ///
    /// # Errors
    /// [`Error::RunName`] if the name cannot be a folder's; [`Error::Io`].
    /// # Examples
    /// ```
    /// use std::time::{Duration, SystemTime};
    ///
    /// use brisk_train::RunFolder;
    ///
    /// # let root = std::env::temp_dir().join(format!("brisk-train-doc-{}", std::process::id()));
    /// let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_236_901); // `SystemTime::now()`, as a rule
    /// let run = RunFolder::create(&root, Some("higgs"), now)?;
    /// assert!(run.path().ends_with("higgs-20261121-045501"));
    /// # std::fs::remove_dir_all(&root).expect("it was made above");
    /// # Ok::<(), brisk_train::Error>(())
    /// ```
    pub fn create(root: &Path, name: Option<&str>, now: SystemTime) -> Result<Self, Error> {
        let name = name.unwrap_or("run");
        let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_');
        if name.is_empty() || name.starts_with('.') || !name.chars().all(is_plain) {
            return Err(Error::RunName { found: name.to_owned() });
        }
        let failed = |path: &Path, source| Error::Io { path: path.to_owned(), action: "make the folder of a run", source };
        fs::create_dir_all(root).map_err(|source| failed(root, source))?;
        let name = format!("{name}-{}", stamp(now));
        let mut path = root.join(&name);
        for number in 2.. {
            match fs::create_dir(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => path = root.join(format!("{name}-{number}")),
                Err(error) => return Err(failed(&path, error)),
                Ok(()) => break,
            }
        }
        Ok(Self { path })
    }

    /// Makes `path` itself the folder of a new run, which is then found under a name that is known beforehand. A folder that is there is
    /// taken as it is.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be made.
    pub fn create_at(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Io { path: path.to_owned(), action: "make the folder of a run", source };
        fs::create_dir_all(path).map_err(failed)?;
        Ok(Self { path: path.to_owned() })
    }

    /// The folder of a run from before, to resume it or to look at it.
    ///
    /// # Errors
    /// [`Error::NotARun`] if there is no `config.json` in it.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let run = Self { path: path.to_owned() };
        if run.config().is_file() { Ok(run) } else { Err(Error::NotARun { path: path.to_owned() }) }
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// `config.json`: the settings.
    pub fn config(&self) -> PathBuf {
        self.path.join("config.json")
    }

    /// `metrics.csv`: a row an epoch.
    pub fn metrics_csv(&self) -> PathBuf {
        self.path.join("metrics.csv")
    }

    /// `metrics.json`: the same rows, a JSON object a line.
    pub fn metrics_json(&self) -> PathBuf {
        self.path.join("metrics.json")
    }

    /// `best.safetensors`: the checkpoint with the best metric.
    pub fn best(&self) -> PathBuf {
        self.path.join("best.safetensors")
    }

    /// `last.safetensors`: the latest checkpoint.
    pub fn last(&self) -> PathBuf {
        self.path.join("last.safetensors")
    }

    /// Writes `config.json` atomically, indented for people.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn write_config(&self, config: &Value) -> Result<(), Error> {
        write_atomically(&self.config(), |writer| {
            serde_json::to_writer_pretty(&mut *writer, config)?;
            writer.write_all(b"\n")
        })
    }
}

/// `20261121-045501`, in UTC. Times before 1970 count as its beginning.
fn stamp(now: SystemTime) -> String {
    let seconds = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}")
}

/// Year, month and day, the months and days counted from 1, of the day so many days after 1970-01-01.
fn date(mut days: u64) -> (u64, usize, u64) {
    const DAYS_OF_400_YEARS: u64 = 146_097;
    let mut year = 1970 + 400 * (days / DAYS_OF_400_YEARS);
    days %= DAYS_OF_400_YEARS;
    let is_leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    for (month, length) in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31].into_iter().enumerate() {
        if days < length {
            return (year, month + 1, days + 1);
        }
        days -= length;
    }
    unreachable!("the days of a year are those of its months")
}
