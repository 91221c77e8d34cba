//! A small training run to disturb, and its results without a disturbance.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use fastrand::Rng;
use serde_json::Value;

use crate::attack::Attack;
use crate::case::Case;
use crate::files;
use crate::report::Kind;
use crate::run::{Ended, Run};

/// Text of `n_rows` rows: a label that can be learnt, then `n_cols` features.
pub(crate) fn csv(rng: &mut Rng, n_rows: usize, n_cols: usize) -> String {
    let names: Vec<String> = (0..n_cols).map(|col| format!("x{col}")).collect();
    let mut text = format!("label,{}\n", names.join(","));
    for _ in 0..n_rows {
        let features: Vec<f64> = (0..n_cols).map(|_| 2.0 * rng.f64() - 1.0).collect();
        let sum: f64 = features.iter().sum();
        let label = u8::from(sum + rng.f64() - 0.5 > 0.0);
        let cells: Vec<String> = features.iter().map(|x| format!("{x:.6}")).collect();
        writeln!(text, "{label},{}", cells.join(",")).expect("a String takes any text");
    }
    text
}

/// A run of `data_parallel`, and the same run of `higgs`: its files and options, and the results of undisturbed runs.
pub(crate) struct Training {
    pub(crate) train: PathBuf,
    pub(crate) test: PathBuf,
    pub(crate) n_epochs: usize,
    /// Options of `data_parallel` beside those of all runs.
    more: &'static [&'static str],
    pub(crate) reference: Reference,
}

/// The results of an undisturbed run.
pub(crate) struct Reference {
    /// The files of its folder that depend only on the rows and the options, by name.
    files: Vec<(&'static str, Vec<u8>)>,
    results: Vec<(&'static str, Value)>,
    pub(crate) time: Duration,
}

/// Files of a run's folder that are compared.
const FILES: [&str; 3] = ["best.safetensors", "last.safetensors", "metrics.csv"];

/// Results that are compared.
const RESULTS: [&str; 5] = ["rows", "epochs", "best_epoch", "valid_auc", "test_auc"];

impl Training {
    /// Writes the rows to `dir` and runs `data_parallel` there once, undisturbed.
    pub(crate) fn prepare(attack: &Attack<'_>, dir: &Path, n_rows: usize, n_epochs: usize) -> Result<Self> {
        let mut rng = Rng::with_seed(attack.seed());
        let (train, test) = (dir.join("train.csv"), dir.join("test.csv"));
        fs::write(&train, csv(&mut rng, n_rows, 6)).context("cannot write the rows to train on")?;
        fs::write(&test, csv(&mut rng, 200, 6)).context("cannot write the rows to test on")?;
        Self::of_rows(attack, dir, [train, test], n_epochs, &[])
    }

    /// The same with rows that are there, by paths or URLs, and more options.
    pub(crate) fn of_rows(
        attack: &Attack<'_>,
        dir: &Path,
        [train, test]: [PathBuf; 2],
        n_epochs: usize,
        more: &'static [&'static str],
    ) -> Result<Self> {
        let reference = Reference { files: Vec::new(), results: Vec::new(), time: Duration::ZERO };
        let mut training = Self { train, test, n_epochs, more, reference };
        let run = training.replicas(attack.program("data_parallel", dir)).args(["--json", "out.json"]);
        let ended = run.start()?.wait()?;
        if !ended.success() {
            bail!("an undisturbed run fails: {ended}");
        }
        training.reference = Reference::read(dir, "run", ended.elapsed)?;
        Ok(training)
    }

    /// The options that all runs have.
    pub(crate) fn options(&self, run: Run) -> Run {
        let run = run.arg("--train").arg(&self.train).arg("--test").arg(&self.test);
        let n_epochs = self.n_epochs.to_string();
        run.args(["--hidden", "16,16", "--batch", "20", "--patience", "0", "--data-dir", "data", "--epochs", &n_epochs])
    }

    /// The same for `data_parallel`, in the folder `run`.
    pub(crate) fn ranks(&self, run: Run) -> Run {
        self.options(run).args(["--checkpoint-every", "7", "--out", "run"]).args(self.more)
    }

    /// The same with two threads.
    pub(crate) fn replicas(&self, run: Run) -> Run {
        self.ranks(run).args(["--replicas", "2"])
    }

    /// Resumes the run of a case and checks that it ends with the results of an undisturbed one.
    pub(crate) fn finish(&self, case: &mut Case<'_>, disturbance: &str) -> Result<()> {
        let run = self.replicas(case.program("data_parallel")).args(["--resume", "auto", "--json", "out.json"]);
        let what = format!("data_parallel cannot be resumed after {disturbance}");
        if let Some(ended) = case.succeed(run, &what)? {
            self.check(case, disturbance, &ended);
        }
        Ok(())
    }

    /// Draws how often a run is saved: every few steps, or only at the end of each epoch. Its results do not depend on it.
    pub(crate) fn drawn_saves(rng: &mut Rng) -> &'static str {
        if rng.bool() { "7" } else { "0" }
    }

    /// Checks that the run in a case's folder has the results of the undisturbed one.
    pub(crate) fn check(&self, case: &mut Case<'_>, disturbance: &str, ended: &Ended) {
        let differs = match Reference::read(&case.dir, "run", ended.elapsed) {
            Ok(found) => self.reference.differences(&found),
            Err(error) => vec![format!("{error:#}")],
        };
        if !differs.is_empty() {
            let what = format!("data_parallel ends with other results after {disturbance}");
            case.find(Kind::Wrong, what, format!("{}\n{ended}", differs.join(", ")));
        }
        let (run, data) = (case.path("run"), case.path("data"));
        for dir in [run, data] {
            case.check_no_leftovers(&dir, &format!("data_parallel leaves files behind after {disturbance}"), ended);
        }
    }

    /// Checks that every file that a disturbed run has left under its final name is complete.
    pub(crate) fn check_whole(&self, case: &mut Case<'_>, disturbance: &str, ended: &Ended) {
        let damaged = files::damaged(&case.dir);
        if !damaged.is_empty() {
            let what = format!("{} leaves a damaged file after {disturbance}", ended.name);
            case.find(Kind::Loss, what, format!("{}\n{ended}", damaged.join(", ")));
        }
    }
}

impl Reference {
    /// Reads the folder `run` in `dir`, and `out.json`.
    fn read(dir: &Path, run: &str, time: Duration) -> Result<Self> {
        let mut files = Vec::new();
        for name in FILES {
            let path = dir.join(run).join(name);
            files.push((name, fs::read(&path).with_context(|| path.display().to_string())?));
        }
        Ok(Self { files, results: results(&dir.join("out.json"))?, time })
    }

    fn differences(&self, found: &Self) -> Vec<String> {
        let files = self.files.iter().zip(&found.files).filter(|(a, b)| a != b).map(|((name, _), _)| format!("{name} differs"));
        let results = self.results.iter().zip(&found.results).filter(|(a, b)| a != b);
        files.chain(results.map(|((name, a), (_, b))| format!("{name} is {b}, undisturbed {a}"))).collect()
    }
}

/// The results in the JSON file at `path` that do not depend on where and how fast a run was.
pub(crate) fn results(path: &Path) -> Result<Vec<(&'static str, Value)>> {
    let text = fs::read(path).with_context(|| path.display().to_string())?;
    let json: Value = serde_json::from_slice(&text).with_context(|| path.display().to_string())?;
    Ok(RESULTS.map(|name| (name, json[name].clone())).into())
}
