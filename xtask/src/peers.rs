//! `cargo xtask bench`, and the Python and the program of Burn's in which others are measured beside us.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};

use crate::bins::{Profile, built, executable, started};
use crate::mpi;
use crate::shell::{command, output, root, run, succeeds, target_dir};
use crate::stages::Install;

/// Suites whose peer is MPI, which their program is built with.
const MPI_SUITES: [&str; 2] = ["replicate", "scaling"];

/// A package: pip's name and Python's.
type Package = (&'static str, &'static str);

/// What the peers of a suite import.
fn packages(suite: &str) -> &'static [Package] {
    match suite {
        "loader" => &[("torch", "torch"), ("numpy", "numpy"), ("pandas", "pandas"), ("pyarrow", "pyarrow"), ("polars", "polars")],
        "kernels" => &[("torch", "torch"), ("numpy", "numpy")],
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
    let has_peers = args.iter().any(|arg| arg == "--peers");
    let python = if has_peers && needs_python(&args) { Some(python(packages(suite), consent)?) } else { None };
    let burn = if has_peers && needs_burn(&args) { Some(burn()?) } else { None };
    let mut bench = match args.split_first() {
        Some((suite, rest)) if crate::BENCHED_CRATES.contains(&suite.as_str()) => {
            let mut bench = command("cargo bench --package");
            bench.arg(format!("brisk-{suite}")).arg("--").args(rest.iter().filter(|arg| *arg != "--peers"));
            bench
        }
        _ => {
            let profile = if has_peers && MPI_SUITES.contains(&suite) {
                mpi::ensure(if consent == Consent::Given { Install::Allowed } else { Install::Never })?;
                Profile::ReleaseWithMpi
            } else {
                Profile::Release
            };
            let mut bench = Command::new(built("bench", profile)?);
            bench.args(args);
            bench
        }
    };
    if let Some(python) = python {
        bench.env("BRISK_PYTHON", python);
    }
    if let Some(burn) = burn {
        bench.env("BRISK_BURN", burn);
    }
    started(&mut bench)
}

/// Whether any part that was asked for has a peer in Python: of the kernels, convolutions alone.
fn needs_python(args: &[String]) -> bool {
    match args.first().map_or("", String::as_str) {
        "kernels" => wants_part(args, "conv"),
        suite => !MPI_SUITES.contains(&suite),
    }
}

/// Whether Burn is measured too.
fn needs_burn(args: &[String]) -> bool {
    args.first().is_some_and(|suite| suite == "kernels") && wants_part(args, "burn")
}

/// Whether this part of a suite was asked for; all are, where none is named.
fn wants_part(args: &[String], part: &str) -> bool {
    let mut named = args.windows(2).filter(|pair| pair[0] == "--only").peekable();
    named.peek().is_none() || named.any(|pair| pair[1] == part)
}

/// Burn's side: the program that `BRISK_BURN` names, or else the package outside the workspace, built.
fn burn() -> Result<PathBuf> {
    if let Some(named) = env::var_os("BRISK_BURN").map(PathBuf::from) {
        return Ok(named);
    }
    let target = target_dir().join("burn-peer");
    eprintln!("building Burn's side in {}; the first time that takes some forty minutes of one core", target.display());
    let mut build = command("cargo build --release --locked --message-format json-render-diagnostics");
    build.arg("--manifest-path").arg(root().join("xtask/peers/burn/Cargo.toml")).arg("--target-dir").arg(target);
    executable(&output(&mut build)?, "bin", "burn-peer").context("cargo built Burn's side and did not say where it is")
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
    fn peers_are_started_for_the_parts_that_have_them() {
        let check = |line: &str, expected| {
            let args: Vec<String> = line.split(' ').map(String::from).collect();
            assert_eq!((needs_python(&args), needs_burn(&args)), expected, "{line}");
        };
        check("higgs --peers", (true, false));
        check("loader --only import --peers", (true, false));
        check("kernels --peers", (true, true));
        check("replicate --peers", (false, false));
        check("scaling --simulate --peers", (false, false));
        check("kernels --only burn --peers", (false, true));
        check("kernels --only replay --only conv --peers", (true, false));
    }

    #[test]
    fn a_python_that_is_not_there_lacks_everything() {
        assert_eq!(missing(Path::new("no/such/python"), packages("table")), ["numpy", "pandas", "pyarrow", "polars"]);
    }
}
