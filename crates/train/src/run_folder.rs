mod checkpoints;
mod fetch;
mod lock;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use brisk_atomic_file::write_atomically;
use lock::RunLock;
use serde_json::Value;

use crate::error::Error;

pub use checkpoints::FoundCheckpoint;
pub use fetch::Fetched;

const CREATE: &str = "create the folder of a run";

/// The folder of one run: its settings, its log, its checkpoints.
///
/// ```text
/// runs/higgs-20261121-045501/
///   config.json         the settings
///   metrics.csv         one row per validation    metrics.json   the same, one JSON object per line
///   best.safetensors    the best checkpoint       last.safetensors   the latest
///   epoch-7-valid_auc-0.9312.safetensors          one of the best, if several are kept
///   run.lock            held while a run uses the folder
///   earlier-1/          log and damaged checkpoints of a run that could not be resumed
/// ```
///
/// Clones share the lock that [`RunFolder::lock`] takes. Two values are equal if their paths are.
#[derive(Clone, Debug)]
pub struct RunFolder {
    path: PathBuf,
    lock: Arc<Mutex<Option<RunLock>>>,
}

impl PartialEq for RunFolder {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path
    }
}

impl Eq for RunFolder {}

impl RunFolder {
    /// Creates a new folder in `root`, named after the run (`run` without a name) and the time, in UTC. `root` is created as well
    /// if it does not exist. An existing folder is not changed: the new one is then called `…-2`, `…-3` and so on.
    ///
    /// # Errors
    /// [`Error::Setting`] if the name cannot be a folder's; [`Error::Io`].
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
            let expected = "letters, digits, `.`, `-` and `_`, and no `.` in front; the folder is named after it";
            return Err(Error::setting("run name", format!("{name:?}"), expected));
        }
        fs::create_dir_all(root).map_err(Error::io(root, CREATE))?;
        let name = format!("{name}-{}", stamp(now));
        let mut path = root.join(&name);
        for number in 2.. {
            match fs::create_dir(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => path = root.join(format!("{name}-{number}")),
                Err(error) => return Err(Error::io(&path, CREATE)(error)),
                Ok(()) => break,
            }
        }
        Ok(Self::at(path))
    }

    /// Makes `path` itself the folder of a run, so that its name is known in advance. An existing folder is used as it is.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be created.
    pub fn create_at(path: &Path) -> Result<Self, Error> {
        fs::create_dir_all(path).map_err(Error::io(path, CREATE))?;
        Ok(Self::at(path.to_owned()))
    }

    /// Opens the folder of an earlier run, to resume it or to look at it.
    ///
    /// # Errors
    /// [`Error::WrongFile`] if it contains no `config.json`.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let run = Self::at(path.to_owned());
        if run.config().is_file() {
            return Ok(run);
        }
        Err(Error::wrong_file(path, "no `config.json`", "the folder of a run, with `config.json` in it"))
    }

    fn at(path: PathBuf) -> Self {
        Self { path, lock: Arc::default() }
    }

    /// Reserves the folder for this run, until the last clone of this value is dropped or the process ends, however it ends.
    ///
    /// [`Trainer`](crate::Trainer) calls this before it writes to the folder; a program that reads a checkpoint to resume from
    /// calls it before that. Calling it again changes nothing. The lock is the operating system's, on `run.lock`: a killed
    /// process leaves at most the file. On a file system without locks the folder is not protected.
    ///
    /// # Errors
    /// [`Error::RunInUse`] if another run holds the lock, with its process where known; [`Error::Io`].
    pub fn lock(&self) -> Result<(), Error> {
        let mut lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if lock.is_none() {
            *lock = Some(RunLock::take(&self.path)?);
        }
        Ok(())
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// `config.json`: the settings.
    pub fn config(&self) -> PathBuf {
        self.path.join("config.json")
    }

    /// `metrics.csv`: one row per epoch, and one per validation within an epoch.
    pub fn metrics_csv(&self) -> PathBuf {
        self.path.join("metrics.csv")
    }

    /// `metrics.json`: the same rows, one JSON object per line.
    pub fn metrics_json(&self) -> PathBuf {
        self.path.join("metrics.json")
    }

    /// What a run needs, besides a checkpoint, to resume in another folder.
    pub(crate) fn companions(&self) -> [PathBuf; 3] {
        [self.config(), self.metrics_csv(), self.metrics_json()]
    }

    /// `best.safetensors`: the checkpoint with the best metric.
    pub fn best(&self) -> PathBuf {
        self.path.join("best.safetensors")
    }

    /// `last.safetensors`: the latest checkpoint.
    pub fn last(&self) -> PathBuf {
        self.path.join("last.safetensors")
    }

    /// The times of kernels, if [requested](crate::TrainerConfig::profile_batches): `trace.json`, which Perfetto and
    /// `chrome://tracing` show.
    pub fn trace(&self) -> PathBuf {
        self.path.join("trace.json")
    }

    /// `epoch-7-valid_auc-0.9312.safetensors`: the checkpoint of an epoch that is
    /// [one of the best](crate::TrainerConfig::keep_best) by a metric.
    pub fn best_of(&self, epoch: usize, watched: &str, value: f64) -> PathBuf {
        self.path.join(format!("epoch-{epoch}-{}-{value}.safetensors", plain(watched)))
    }

    /// `epoch-7-batch-120-valid_auc-0.9312.safetensors`: the same for a validation
    /// [within an epoch](crate::TrainerConfig::validate_within_epoch).
    pub fn best_within(&self, epoch: usize, batch: usize, watched: &str, value: f64) -> PathBuf {
        self.path.join(format!("epoch-{epoch}-batch-{batch}-{}-{value}.safetensors", plain(watched)))
    }

    /// Writes `config.json` atomically, indented for people.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn write_config(&self, config: &Value) -> Result<(), Error> {
        Ok(write_atomically(&self.config(), |writer| {
            serde_json::to_writer_pretty(&mut *writer, config)?;
            writer.write_all(b"\n")
        })?)
    }
}

/// The name of a metric as part of a file name.
fn plain(metric: &str) -> String {
    metric.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect()
}

/// `20261121-045501`, in UTC. Times before 1970 count as the start of 1970.
fn stamp(now: SystemTime) -> String {
    let seconds = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}")
}

/// Year, month and day, with months and days counted from 1, of the day that is this many days after 1970-01-01.
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
