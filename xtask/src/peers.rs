//! `cargo xtask bench`, and the Python in which others are measured beside us.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};

use crate::bins::{Profile, built, started};
use crate::shell::{command, run, succeeds, target_dir};

/// A package: pip's name and Python's.
type Package = (&'static str, &'static str);

/// What the peers of a suite import.
fn packages(suite: &str) -> &'static [Package] {
    match suite {
        "loader" => &[("torch", "torch"), ("numpy", "numpy"), ("pandas", "pandas"), ("pyarrow", "pyarrow"), ("polars", "polars")],
        "table" => &[("numpy", "numpy"), ("pandas", "pandas"), ("pyarrow", "pyarrow"), ("polars", "polars")],
        _ => &[("torch", "torch"), ("numpy", "numpy"), ("safetensors", "safetensors"), ("scikit-learn", "sklearn")],
    }
}

/// Whether several GB may be downloaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Consent {
    Given,
    NotAsked,
}

pub(crate) fn bench(args: &[String]) -> Result<ExitCode> {
    let (args, consent) = without_consent(args);
    let suite = args.first().map_or("", String::as_str);
    let python = if args.iter().any(|arg| arg == "--peers") { Some(python(packages(suite), consent)?) } else { None };
    let mut bench = match args.split_first() {
        Some((suite, rest)) if crate::BENCHED_CRATES.contains(&suite.as_str()) => {
            let mut bench = command("cargo bench --package");
            bench.arg(format!("brisk-{suite}")).arg("--").args(rest.iter().filter(|arg| *arg != "--peers"));
            bench
        }
        _ => {
            let mut bench = Command::new(built("bench", Profile::Release)?);
            bench.args(args);
            bench
        }
    };
    if let Some(python) = python {
        bench.env("BRISK_PYTHON", python);
    }
    started(&mut bench)
}

/// `--yes` is for us; the rest is for the program that measures.
fn without_consent(args: &[String]) -> (Vec<String>, Consent) {
    let (ours, rest): (Vec<String>, Vec<String>) = args.iter().cloned().partition(|arg| arg == "--yes");
    let consent = !ours.is_empty() || env::var_os("CI").is_some_and(|ci| !ci.is_empty());
    (rest, if consent { Consent::Given } else { Consent::NotAsked })
}

/// A Python that has all of these packages: the one that BRISK_PYTHON names, or one of our own.
fn python(packages: &[Package], consent: Consent) -> Result<PathBuf> {
    if let Some(named) = env::var_os("BRISK_PYTHON").map(PathBuf::from) {
        let missing = missing(&named, packages);
        if !missing.is_empty() {
            bail!("BRISK_PYTHON={} cannot import {}; `{0} -m pip install {1}` adds them", named.display(), missing.join(" "));
        }
        return Ok(named);
    }
    let venv = target_dir().join("peers-venv");
    let python = if cfg!(windows) { venv.join("Scripts").join("python.exe") } else { venv.join("bin").join("python") };
    if missing(&python, packages).is_empty() {
        return Ok(python);
    }
    let packages = packages.iter().map(|(package, _)| *package).collect::<Vec<_>>().join(" ");
    if consent == Consent::NotAsked {
        bail!(
            "--peers needs a Python with {packages}: name one in BRISK_PYTHON, or add --yes to make {} (several GB to download)",
            venv.display()
        );
    }
    eprintln!("making {} with {packages}; this downloads several GB", venv.display());
    made(&venv, &python, &packages).context("could not make a Python for the peers; BRISK_PYTHON can name one that you made")?;
    Ok(python)
}

fn made(venv: &Path, python: &Path, packages: &str) -> Result<()> {
    let system = if cfg!(windows) { "python" } else { "python3" };
    run(command(&format!("{system} -m venv")).arg(venv))?;
    run(Command::new(python).args(["-m", "pip", "install", "--disable-pip-version-check"]).args(packages.split(' ')))
}

/// The packages that `python` cannot import; all, where it is no Python.
fn missing(python: &Path, packages: &[Package]) -> Vec<&'static str> {
    let cannot = |module: &str| !succeeds(Command::new(python).args(["-c", &format!("import {module}")]));
    packages.iter().filter(|(_, module)| cannot(module)).map(|(package, _)| *package).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consent_is_not_passed_on() {
        let args: Vec<String> = ["higgs", "--peers", "--yes", "--json", "out.json"].map(String::from).into();
        let (rest, consent) = without_consent(&args);
        assert_eq!(rest, ["higgs", "--peers", "--json", "out.json"]);
        assert_eq!(consent, Consent::Given);
    }

    #[test]
    fn a_python_that_is_not_there_lacks_everything() {
        assert_eq!(missing(Path::new("no/such/python"), packages("table")), ["numpy", "pandas", "pyarrow", "polars"]);
    }
}
