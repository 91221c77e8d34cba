use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::case::Case;
use crate::command_line::{Options, PROGRAMS, PartName};
use crate::parts::{Cases, PARTS, Part, Prepared};
use crate::report::{AttackReport, Row};
use crate::run::{Run, quoted};

/// The programs, a scratch folder and the options, which all parts share.
pub(crate) struct Attack<'a> {
    options: &'a Options,
    /// Absolute paths, since each program is started in the folder of its case.
    programs: PathBuf,
    xtask: PathBuf,
    scratch: TempDir,
}

impl<'a> Attack<'a> {
    pub(crate) fn new(options: &'a Options, programs: &Path, xtask: Option<&Path>) -> Result<Self> {
        if cfg!(not(unix)) {
            bail!("the attack sends signals, which only Unix has");
        }
        let programs =
            fs::canonicalize(programs).with_context(|| format!("--programs {}: there is no such folder", programs.display()))?;
        for name in PROGRAMS {
            if !programs.join(name).is_file() {
                bail!(
                    "--programs {}: it has no program `{name}`; build it with `cargo build --example {name}`",
                    programs.display()
                );
            }
        }
        let xtask = match xtask {
            Some(xtask) => {
                fs::canonicalize(xtask).with_context(|| format!("--xtask {}: there is no such file", xtask.display()))?
            }
            None => {
                let above = programs.parent().map(|parent| parent.join("xtask"));
                above.filter(|above| above.is_file() && !programs.join("xtask").is_file()).unwrap_or(programs.join("xtask"))
            }
        };
        if let Some(keep) = &options.keep {
            fs::create_dir_all(keep).with_context(|| format!("--keep {}: cannot create the folder", keep.display()))?;
        }
        let scratch = tempfile::Builder::new().prefix("attack-").tempdir().context("cannot create a temporary folder")?;
        Ok(Self { options, programs, xtask, scratch })
    }

    /// Runs the selected parts.
    #[expect(clippy::print_stderr, reason = "progress goes to standard error")]
    pub(crate) fn run(&self) -> Result<AttackReport> {
        let is_wanted = |part: &&Part| self.options.only.is_empty() || self.options.only.contains(&part.name);
        // Parts with listed cases only run first; the others share the remaining time.
        let (listed, drawn): (Vec<_>, Vec<_>) = PARTS.iter().filter(is_wanted).partition(|part| part.weight == 0.0);
        let end = Instant::now() + Duration::from_secs_f64(60.0 * self.options.minutes);
        let mut rows = Vec::new();
        let mut weight: f64 = drawn.iter().map(|part| part.weight).sum();
        for part in listed.into_iter().chain(drawn) {
            let begin = Instant::now();
            let share = if weight > 0.0 { part.weight / weight } else { 0.0 };
            let until = begin + end.saturating_duration_since(begin).mul_f64(share);
            weight -= part.weight;
            eprintln!("{}", part.name);
            let mut row = self.attack(part, until).with_context(|| format!("the part {} could not be run", part.name))?;
            row.time = begin.elapsed();
            rows.push(row);
        }
        Ok(AttackReport { seed: self.options.seed, rows })
    }

    fn attack(&self, part: &Part, until: Instant) -> Result<Row> {
        let mut row = Row::new(part.name);
        let cases = match (part.prepare)(self)? {
            Prepared::Ready(cases) => cases,
            Prepared::NotPossible(why) => {
                row.not_possible = Some(why);
                return Ok(row);
            }
        };
        let has_drawn = part.weight > 0.0;
        match (self.options.case, self.options.cases) {
            (Some(index), _) => self.case(part, &*cases, index, &mut row)?,
            (None, Some(n)) => {
                for index in chosen(cases.n_listed(), n, has_drawn, self.options.seed) {
                    self.case(part, &*cases, index, &mut row)?;
                }
            }
            (None, None) => {
                let mut index = 0;
                while index < cases.n_listed() || (has_drawn && Instant::now() < until) {
                    self.case(part, &*cases, index, &mut row)?;
                    index += 1;
                }
            }
        }
        Ok(row)
    }

    fn case(&self, part: &Part, cases: &dyn Cases, index: u64, row: &mut Row) -> Result<()> {
        let dir = self.folder(&format!("{}-{index}", part.name))?;
        let n_before: u64 = row.findings.iter().map(|finding| finding.times).sum();
        let mut case = Case::new(self, index, dir.clone(), row);
        cases.run(&mut case).with_context(|| format!("case {index}"))?;
        let has_findings = row.findings.iter().map(|finding| finding.times).sum::<u64>() > n_before;
        if let (true, Some(keep)) = (has_findings, &self.options.keep) {
            copy_folder(&dir, &keep.join(format!("{}-{index}", part.name)))?;
        }
        fs::remove_dir_all(&dir).with_context(|| format!("{}: cannot remove the folder", dir.display()))
    }

    /// A new folder below the scratch folder.
    pub(crate) fn folder(&self, name: &str) -> Result<PathBuf> {
        let path = self.scratch.path().join(name);
        fs::create_dir_all(&path).with_context(|| format!("{}: cannot make the folder", path.display()))?;
        Ok(path)
    }

    pub(crate) fn seed(&self) -> u64 {
        self.options.seed
    }

    /// A program by its name, which will be started in `dir`.
    pub(crate) fn program(&self, name: &str, dir: &Path) -> Run {
        Run::new(self.path_of(name), dir, self.scratch.path())
    }

    /// The path of a program.
    pub(crate) fn path_of(&self, name: &str) -> PathBuf {
        self.programs.join(name)
    }

    /// The path of `xtask`, which may not exist.
    pub(crate) fn xtask(&self) -> &Path {
        &self.xtask
    }

    /// Any other program: a path, or a name that is looked up in PATH.
    pub(crate) fn tool(&self, name: &str, dir: &Path) -> Run {
        Run::new(PathBuf::from(name), dir, self.scratch.path())
    }

    /// The command that repeats a case.
    pub(crate) fn repeat(&self, part: PartName, index: u64) -> String {
        let programs = quoted(self.programs.as_os_str());
        format!("cargo xtask attack --programs {programs} --seed {} --only {part} --case {index}", self.options.seed)
    }
}

/// The numbers of `n` cases: the listed ones and then random ones or, if there are more than `n` listed ones, `n` spread over the
/// list.
fn chosen(n_listed: u64, n: u64, has_drawn: bool, seed: u64) -> Vec<u64> {
    if n_listed <= n {
        return (0..if has_drawn { n } else { n_listed }).collect();
    }
    // The seed shifts the selection.
    (0..n).map(|i| (i * n_listed + seed % n_listed) / n % n_listed).collect()
}

/// Copies plain files and folders; links, devices and pipes are left out.
fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy_folder(&entry.path(), &to.join(entry.file_name()))?;
        } else if kind.is_file() {
            fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}
