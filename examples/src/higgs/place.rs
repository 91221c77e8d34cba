//! The folder of a run, and the checkpoint in it that the run resumes from.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::{Context, Result, anyhow, bail};
use brisk_train::{Checkpoint, CheckpointStore, Error, Fetched, FitReport, Outputs, ResumeMismatch, RunFolder, Training};
use clap::builder::{OsStringValueParser, TypedValueParser as _};
use clap::error::ErrorKind;
use clap::{Args, Parser};
use serde_json::Value;

use super::Options;
use crate::command_line::usage_error;
use crate::command_line::value::{MAX_COUNT, one_of, whole};
use crate::elsewhere::{checkpoint_store, is_url, shown};
use crate::folder::check_folder;

/// The options of a run that can be resumed.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub struct PlaceOptions {
    /// Folder of this run itself, so that its name is known beforehand [default: a new folder in --runs]
    #[arg(long, value_name = "DIR", help_heading = "Results")]
    pub out: Option<PathBuf>,
    /// Copy each checkpoint to this folder at a URL as well, with the log and the settings: s3:, gs:, az:, file:, or http: of a
    /// server that takes PUT. On a machine that has no checkpoint of the run, or an older one, --resume auto resumes from there
    #[arg(long, value_name = "URL", help_heading = "Results")]
    pub checkpoints_to: Option<PathBuf>,
    /// Steps between checkpoints within an epoch; with 0 there is one only at the end of each epoch
    #[arg(long, value_name = "N", help_heading = "Results", default_value = "0", allow_negative_numbers = true,
        value_parser = whole::<usize>(0..=MAX_COUNT))]
    pub checkpoint_every: usize,
    /// Resume from FILE, a checkpoint in the folder of a run; from URL, to which --checkpoints-to has copied a run; or from
    /// `auto`: the newest checkpoint in --out, or else in the newest folder in --runs with the same settings. With `auto` a run
    /// starts from the start if there is no checkpoint that can be read; what an earlier run left in the folder is then kept in a
    /// folder in it, earlier-1
    #[arg(long, value_name = "FILE", help_heading = "Results", default_value = "", hide_default_value = true,
        value_parser = OsStringValueParser::new().map(Resume::from))]
    pub resume: Resume,
    /// Resume although these differ from the run that wrote the checkpoint: rows, precision, settings, computation (the model,
    /// the loss or the optimizer); or format, for a checkpoint of an earlier version, which cannot be checked
    #[arg(long, value_name = "A,B", help_heading = "Results", value_delimiter = ',', action = clap::ArgAction::Set, num_args = 1,
        requires = "resume", value_parser = one_of(ResumeMismatch::ALL.map(|mismatch| (mismatch.name(), mismatch))))]
    pub resume_anyway: Vec<ResumeMismatch>,
}

/// Where a run begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resume {
    /// At the start.
    No,
    /// At the newest checkpoint, if there is one.
    Auto,
    /// At this checkpoint, or that of the run which was copied to this URL.
    From(PathBuf),
}

impl From<OsString> for Resume {
    fn from(word: OsString) -> Self {
        match word.to_str() {
            Some("") => Self::No,
            Some("auto") => Self::Auto,
            _ => Self::From(PathBuf::from(word)),
        }
    }
}

impl PlaceOptions {
    /// Checks the options as far as possible before any rows are loaded; `O` are the options of the program.
    ///
    /// # Errors
    /// If the file to resume from is not a checkpoint in the folder of a run, the folder cannot be written to, or checkpoints
    /// cannot be copied to or from a URL, as far as that is known without a request.
    pub fn check<O: Parser>(&self) -> Result<()> {
        self.out.as_deref().map_or(Ok(()), |out| check_folder("--out", out))?;
        self.store()?;
        let Resume::From(path) = &self.resume else { return Ok(()) };
        if is_url(path) {
            return checkpoint_store(path).map(drop).context("--resume");
        }
        if self.out.is_some() {
            let message = "--resume FILE continues in the folder of FILE; leave out --out";
            return Err(usage_error::<O>(ErrorKind::ArgumentConflict, message));
        }
        let checked = Checkpoint::check_heads(path).and_then(|()| RunFolder::open(folder_of(path)));
        checked.map(drop).with_context(|| format!("--resume {}", path.display()))
    }
}

impl PlaceOptions {
    /// Where checkpoints are copied to.
    ///
    /// # Errors
    /// If it is no URL, or one that cannot be used.
    pub fn store(&self) -> Result<Option<Arc<dyn CheckpointStore>>> {
        self.checkpoints_to.as_deref().map(checkpoint_store).transpose().context("--checkpoints-to")
    }

    /// The URL of the run to resume, if it may be at one.
    pub fn fetched_from(&self) -> Option<&Path> {
        match &self.resume {
            Resume::No => None,
            Resume::Auto => self.checkpoints_to.as_deref(),
            Resume::From(path) => Some(path.as_path()).filter(|path| is_url(path)),
        }
    }

    /// The files that the run writes to its folder, if it is known.
    pub(super) fn run_files(&self) -> Vec<PathBuf> {
        let folder = match (&self.out, &self.resume) {
            (Some(out), _) => out,
            (None, Resume::From(checkpoint)) if !is_url(checkpoint) => folder_of(checkpoint),
            (None, _) => return Vec::new(),
        };
        ["best.safetensors", "last.safetensors", "config.json", "metrics.csv", "metrics.json"]
            .map(|name| folder.join(name))
            .into()
    }

    /// The URLs of other machines, if they are URLs.
    pub(super) fn servers(&self) -> impl Iterator<Item = &Path> {
        let resume = match &self.resume {
            Resume::From(path) => Some(path),
            Resume::No | Resume::Auto => None,
        };
        self.checkpoints_to.iter().chain(resume).map(PathBuf::as_path)
    }
}

/// The folder of a run's files, and the checkpoints that it may resume from.
#[derive(Debug)]
pub struct Place {
    /// The run's folder, which no other run can use as long as this value or a clone of the folder exists.
    pub folder: RunFolder,
    /// The checkpoints to try, the newest first.
    pub checkpoints: Vec<PathBuf>,
    /// Whether they are the names of objects in the [store](PlaceOptions::fetched_from), which consist of several files.
    pub in_store: bool,
}

impl Place {
    /// Finds or creates the folder of a run of `n_replicas` with the settings `config`. `note` is called with messages about what
    /// was found and done.
    ///
    /// # Errors
    /// If the folder has a run and resuming was not requested, if another run uses it, or a checkpoint cannot be read.
    pub fn find(options: &PlaceOptions, run: &Options, n_replicas: usize, config: &Value, note: &dyn Fn(&str)) -> Result<Self> {
        let folder = match (&options.resume, &options.out) {
            (Resume::From(url), Some(out)) if is_url(url) => RunFolder::create_at(out)?,
            (Resume::From(url), None) if is_url(url) => create_new(run)?,
            (Resume::From(path), _) => RunFolder::open(folder_of(path))?,
            (Resume::Auto, Some(out)) => RunFolder::create_at(out)?,
            (Resume::Auto, None) => match newest_of(&run.runs, config) {
                Some(folder) => folder,
                None => create_new(run)?,
            },
            (Resume::No, Some(out)) if RunFolder::open(out).is_ok() => {
                bail!("{} holds a run already; resume it with `--resume auto`, or name another folder", out.display());
            }
            (Resume::No, Some(out)) => RunFolder::create_at(out)?,
            (Resume::No, None) => create_new(run)?,
        };
        // The lock is taken before anything is read: another run may be writing.
        folder.lock()?;
        let fetched = options.fetched_from().map(|url| fetch(&folder, url, n_replicas, note)).transpose()?;
        if let Some(Fetched::ButParts(objects)) = fetched {
            return Ok(Self { folder, checkpoints: objects.into_iter().map(PathBuf::from).collect(), in_store: true });
        }
        let checkpoints = match &options.resume {
            Resume::No => Vec::new(),
            Resume::From(url) if is_url(url) && fetched == Some(Fetched::Nothing) => {
                bail!("--resume {}: no run was copied there; give the URL that --checkpoints-to had", shown(url));
            }
            Resume::From(path) if !is_url(path) => vec![path.clone()],
            Resume::Auto | Resume::From(_) => folder.newest_first(),
        };
        Ok(Self { folder, checkpoints, in_store: false })
    }

    /// Loads the first of the checkpoints that is intact, by `load`, and its path. If `--resume auto` finds none in the folder,
    /// the files of an earlier run are moved aside to make room for a new one. With several replicas, all of them call this.
    ///
    /// # Errors
    /// If the checkpoint that was named is damaged, none in the store is intact, or one cannot be read.
    pub fn load(
        &self,
        options: &PlaceOptions,
        load: impl Fn(&Path) -> Result<Checkpoint, Error>,
        is_first: bool,
        note: &dyn Fn(&str),
    ) -> Result<Option<(PathBuf, Checkpoint)>> {
        let named = match &options.resume {
            Resume::No => return Ok(None),
            Resume::Auto => None,
            Resume::From(path) => Some(path),
        };
        let mut last = None;
        for path in &self.checkpoints {
            match load(path) {
                Ok(checkpoint) => return Ok(Some((path.clone(), checkpoint))),
                Err(error @ (Error::Damaged { .. } | Error::WrongFile { .. })) => {
                    if named != Some(path) {
                        note(&format!("not resuming from a damaged checkpoint: {error}"));
                    }
                    last = Some(error);
                }
                Err(error) => return Err(error.into()),
            }
        }
        match (last, named) {
            (Some(error), Some(named)) => Err(error).with_context(|| format!("--resume {}", shown(named))),
            (Some(error), None) if self.in_store => Err(error.into()),
            _ => {
                let path = self.folder.path().display();
                let kept = if is_first { self.folder.set_aside()? } else { None };
                let kept =
                    kept.map_or(String::new(), |kept| format!("; what an earlier run left there is now in {}", kept.display()));
                note(&format!("no checkpoint to resume from in {path}: starting from the start{kept}"));
                Ok(None)
            }
        }
    }
}

/// Copies the run at a URL to a folder, if it is newer than that in the folder.
fn fetch(folder: &RunFolder, url: &Path, n_replicas: usize, note: &dyn Fn(&str)) -> Result<Fetched> {
    let store = checkpoint_store(url)?;
    let fetched = if n_replicas > 1 { folder.fetch_but_parts(&*store) } else { folder.fetch(&*store) }?;
    let into = format!("the run at {} into {}", shown(url), folder.path().display());
    match &fetched {
        Fetched::Newer => note(&format!("fetched {into}")),
        Fetched::ButParts(objects) => {
            note(&format!("fetched {into}; each replica reads its part of `{}` from there", objects[0]));
        }
        Fetched::NotNewer | Fetched::Nothing => {}
    }
    Ok(fetched)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn create_new(run: &Options) -> Result<RunFolder> {
    Ok(RunFolder::create(&run.runs, Some(run.run_name()), SystemTime::now())?)
}

/// The newest run in `runs` with these settings.
fn newest_of(runs: &Path, config: &Value) -> Option<RunFolder> {
    let folders = fs::read_dir(runs).ok()?.flatten().filter_map(|entry| RunFolder::open(&entry.path()).ok());
    let ours = settings(config.to_string().as_bytes());
    let alike = folders.filter(|folder| fs::read(folder.config()).is_ok_and(|theirs| settings(&theirs) == ours));
    alike.max_by_key(|folder| fs::metadata(folder.config()).and_then(|file| file.modified()).ok())
}

/// The settings of a run without its device, number of replicas and ZeRO stage, which may differ when it resumes.
fn settings(config: &[u8]) -> Option<Value> {
    let mut config: Value = serde_json::from_slice(config).ok()?;
    let fields = config.as_object_mut()?;
    ["device", "replicas", "zero"].iter().for_each(|name| drop(fields.remove(*name)));
    Some(config)
}

/// Trains from the start, or from a checkpoint. `note` is called with which of the two, and how the run differs from the one that
/// wrote the checkpoint.
///
/// # Errors
/// Those of the trainer; a checkpoint of another run is refused with the option that allows it.
pub fn train(
    trainer: &Training<'_>,
    checkpoint: Option<(PathBuf, Checkpoint)>,
    options: &PlaceOptions,
    outputs: &mut Outputs,
    note: &dyn Fn(&str),
) -> Result<FitReport> {
    let Some((path, checkpoint)) = checkpoint else { return trainer.fit(outputs).map_err(in_words_of_options) };
    let allowed = &options.resume_anyway;
    let differences = trainer.resume_differences(&checkpoint);
    if differences.iter().all(|difference| allowed.contains(&difference.mismatch)) {
        note(&format!("resuming from {}", path.display()));
        differences.iter().for_each(|difference| note(&format!("resuming although this differs: {difference}")));
    }
    trainer.resume_with(&checkpoint, allowed, outputs).map_err(in_words_of_options)
}

/// A refused checkpoint, with the option that allows it; a store that has another run.
fn in_words_of_options(error: Error) -> anyhow::Error {
    if let Error::Setting { name: "store of checkpoints", found, .. } = &error {
        return anyhow!("--checkpoints-to {found}; resume that run with --resume auto, or name another folder");
    }
    let Error::ResumeMismatch { checkpoint, differences } = &error else { return error.into() };
    let list: Vec<String> = differences.iter().map(ToString::to_string).collect();
    let mut kinds: Vec<&str> = differences.iter().map(|difference| difference.mismatch.name()).collect();
    kinds.dedup();
    anyhow!(
        "{checkpoint}: the run that wrote it differs from this one: {}; make them the same, or add --resume-anyway {}",
        list.join("; "),
        kinds.join(",")
    )
}
