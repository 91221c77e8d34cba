use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use brisk_atomic_file::{check_output, open_regular_file, read_regular_file};

use crate::error::Error;

/// How long the replicas of a run waited for the last one in the exchanges of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchWait {
    /// On average over the replicas that waited, for all that came last in an exchange.
    pub time: Duration,
    /// The replica that was waited for the longest.
    pub rank: usize,
}

/// Writes the loss and the learning rate of every batch to a file, and what a late replica costs.
///
/// A path that ends in `.jsonl` becomes JSON lines, any other CSV, with the same names: `batch`, counted over the whole run from
/// 0, `epoch`, from 1, `loss`, `learning_rate`, `waited_s` and `waited_for`, the seconds and the replica of a [`BatchWait`]. The
/// last two are empty for a single replica, and are times, so that they differ between runs that are otherwise the same. In JSON,
/// what is empty and a loss that is not finite are `null`. Lines are in the file as soon as their batches are appended. A run
/// that starts replaces the file; a run that resumes keeps the lines of earlier batches and replaces the others. Neither replaces
/// a file that is not such a log, which [`start`](Self::start) refuses.
///
/// In a run of `brisk-train` it is a callback: `trainer.callback(StepLog::new("runs/letters/batches.csv"))`.
///
/// # Examples
/// ```
/// use brisk_report::StepLog;
///
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("runs/letters/batches.csv");
/// let mut log = StepLog::new(&path);
/// log.start(0)?;
/// log.append(0, 1, &[0.75, 0.5], &[0.001, 0.002], &[])?;
/// let lines = ["batch,epoch,loss,learning_rate,waited_s,waited_for", "0,1,0.75,0.001,,", "1,1,0.5,0.002,,"];
/// assert_eq!(std::fs::read_to_string(&path)?.lines().collect::<Vec<_>>(), lines);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct StepLog {
    path: PathBuf,
    every: u64,
    file: Option<File>,
}

const HEADER: &str = "batch,epoch,loss,learning_rate,waited_s,waited_for\n";

impl StepLog {
    /// Writes to `path`, whose folder is created if it does not exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), every: 1, file: None }
    }

    /// Writes only every `n`-th batch of the run, starting with the first; 1 by default. 0 is refused when the run starts.
    pub fn every(mut self, n: u64) -> Self {
        self.every = n;
        self
    }

    /// A run starts at the batch `first`, counted from 0. If the file cannot be written, the error is returned now rather than
    /// after the first batches; the file does not change yet.
    ///
    /// # Errors
    /// [`Error::NoInterval`]; [`Error::Write`]; [`Error::Io`], also for a file of another kind; [`Error::BatchGap`] if batches
    /// between the last one in the file and `first` are missing.
    pub fn start(&mut self, first: u64) -> Result<(), Error> {
        self.file = None;
        self.prepare()?;
        check_output(&self.path)?;
        match open_regular_file(&self.path) {
            Err(cause) if cause.kind() != ErrorKind::NotFound => {
                Err(Error::Io { path: self.path.clone(), action: "write the log", cause })
            }
            _ => self.kept_bytes(first).map(drop),
        }
    }

    /// Adds batches of an epoch, of which the first is the batch `first` of the run: as many learning rates as losses. `waits`
    /// may be shorter, if they are not known. The first call after [`start`](Self::start) drops lines of this batch and later
    /// ones.
    ///
    /// # Errors
    /// As [`start`](Self::start); [`Error::BatchCounts`]; [`Error::Io`], for example on a full disk.
    pub fn append(
        &mut self,
        first: u64,
        epoch: usize,
        losses: &[f32],
        learning_rates: &[f32],
        waits: &[Option<BatchWait>],
    ) -> Result<(), Error> {
        check_counts(losses, learning_rates, waits)?;
        if self.file.is_none() {
            self.file = Some(self.open(first)?);
        }
        let waits = waits.iter().copied().chain(std::iter::repeat(None));
        let values = losses.iter().zip(learning_rates).zip(waits);
        let logged = (first..).zip(values).filter(|(batch, _)| batch.is_multiple_of(self.every));
        let lines: String = logged.map(|(batch, ((&loss, &rate), wait))| self.line(batch, epoch, loss, rate, wait)).collect();
        let written = self.file.as_mut().map_or(Ok(()), |file| file.write_all(lines.as_bytes()));
        written.map_err(|cause| Error::Io { path: self.path.clone(), action: "write to the log", cause })
    }

    fn is_json(&self) -> bool {
        self.path.extension().is_some_and(|extension| extension == "jsonl")
    }

    fn line(&self, batch: u64, epoch: usize, loss: f32, rate: f32, wait: Option<BatchWait>) -> String {
        let of_wait = |empty: &str, cell: fn(BatchWait) -> String| wait.map_or(empty.to_owned(), cell);
        // Microseconds are as precise as replicas measure.
        let seconds = |wait: BatchWait| (wait.time.as_micros() as f64 / 1e6).to_string();
        let rank = |wait: BatchWait| wait.rank.to_string();
        if self.is_json() {
            let number = |value: f32| if value.is_finite() { value.to_string() } else { "null".to_owned() };
            let (loss, rate, waited_s, waited_for) =
                (number(loss), number(rate), of_wait("null", seconds), of_wait("null", rank));
            format!(
                "{{\"batch\":{batch},\"epoch\":{epoch},\"loss\":{loss},\"learning_rate\":{rate},\"waited_s\":{waited_s},\"waited_for\":{waited_for}}}\n"
            )
        } else {
            format!("{batch},{epoch},{loss},{rate},{},{}\n", of_wait("", seconds), of_wait("", rank))
        }
    }

    /// Checks the interval and creates the folder.
    fn prepare(&self) -> Result<(), Error> {
        if self.every == 0 {
            return Err(Error::NoInterval);
        }
        let created = self.path.parent().map_or(Ok(()), fs::create_dir_all);
        created.map_err(|cause| Error::Io { path: self.path.clone(), action: "create the folder of the log", cause })
    }

    fn header(&self) -> &'static str {
        if self.is_json() { "" } else { HEADER }
    }

    /// The length of the header and of the complete lines of batches before `first`.
    fn kept_bytes(&self, first: u64) -> Result<u64, Error> {
        let failed = |cause| Error::Io { path: self.path.clone(), action: "resume the log", cause };
        let lines = kept_lines(&self.path, self.header(), first).map_err(failed)?;
        // Another interval than now may have been set when the lines were written.
        let batches: Vec<u64> = lines.split(|&byte| byte == b'\n').filter_map(batch_of).collect();
        let interval = batches.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).fold(self.every, u64::max);
        match batches.last() {
            Some(&last) if first - last > interval => Err(Error::BatchGap { log: self.path.display().to_string(), last, first }),
            Some(_) => Ok((self.header().len() + lines.len()) as u64),
            None => Ok(0),
        }
    }

    /// Opens the file, drops the lines of batch `first` and later ones, and positions it at the end.
    fn open(&self, first: u64) -> Result<File, Error> {
        let failed = |action| move |cause| Error::Io { path: self.path.clone(), action, cause };
        self.prepare()?;
        let n_kept = if first == 0 { 0 } else { self.kept_bytes(first)? };
        let opened = OpenOptions::new().write(true).create(true).truncate(false).open(&self.path);
        let mut file = opened.map_err(failed("open the log"))?;
        let cut = file.set_len(n_kept).and_then(|()| file.seek(SeekFrom::End(0)));
        cut.map_err(failed("drop later lines of the log"))?;
        if n_kept == 0 {
            file.write_all(self.header().as_bytes()).map_err(failed("write to the log"))?;
        }
        Ok(file)
    }
}

/// The complete lines of batches before `first`; none without a file. A file of another kind is an error.
fn kept_lines(path: &Path, header: &str, first: u64) -> std::io::Result<Vec<u8>> {
    let text = match read_regular_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        read => read?,
    };
    let lines = text.strip_prefix(header.as_bytes());
    // A header that was being written when the process was killed.
    if lines.is_none() && header.as_bytes().starts_with(&text) {
        return Ok(Vec::new());
    }
    let starts_batch = |line: &[u8]| batch_of(line).is_some() || b"{\"batch\":".starts_with(line);
    let Some(lines) = lines.filter(|lines| lines.is_empty() || starts_batch(lines)) else {
        return Err(std::io::Error::new(ErrorKind::InvalidData, "it has other columns; move it away, or write to another file"));
    };
    let is_before = |line: &&[u8]| line.ends_with(b"\n") && batch_of(line).is_some_and(|batch| batch < first);
    let n_bytes = lines.split_inclusive(|&byte| byte == b'\n').take_while(is_before).map(<[u8]>::len).sum();
    Ok(lines[..n_bytes].to_vec())
}

/// Checks that there is a learning rate for each loss, and no wait too many.
pub(crate) fn check_counts(losses: &[f32], learning_rates: &[f32], waits: &[Option<BatchWait>]) -> Result<(), Error> {
    let (n_losses, n_rates, n_waits) = (losses.len(), learning_rates.len(), waits.len());
    if n_rates == n_losses && n_waits <= n_losses { Ok(()) } else { Err(Error::BatchCounts { n_losses, n_rates, n_waits }) }
}

/// The number that a line starts with, in either format.
fn batch_of(line: &[u8]) -> Option<u64> {
    let line = line.strip_prefix(b"{\"batch\":").unwrap_or(line);
    let n_digits = line.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&line[..n_digits]).ok()?.parse().ok()
}
