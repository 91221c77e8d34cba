//! The Python environment and the Burn program that peers are measured with.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::programs::executable;
use crate::shell::{command, output, root, run, succeeds, target_dir};

/// Whether several GB may be downloaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Consent {
    Given,
    Missing,
}

/// The program that measures Burn: the one that `BRISK_BURN` names, or else the package outside the workspace, which is built.
pub(crate) fn burn() -> Result<PathBuf> {
    if let Some(named) = env::var_os("BRISK_BURN").map(PathBuf::from) {
        return Ok(named);
    }
    let target = target_dir().join("burn-peer");
    eprintln!("building the Burn peer in {}; the first build takes about forty minutes of one core", target.display());
    let mut build = command("cargo build --release --locked --message-format json-render-diagnostics");
    build.arg("--manifest-path").arg(root().join("benches/peers/burn/Cargo.toml")).arg("--target-dir").arg(target);
    executable(&output(&mut build)?, "bin", "burn-peer").context("cargo built `burn-peer` but printed no path of its executable")
}

/// A Python that can import these packages, pip's names separated by spaces: the one that BRISK_PYTHON names, or else one in
/// `target`, which is made with the user's consent.
pub(crate) fn python(packages: &str, consent: Consent) -> Result<PathBuf> {
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
    if consent == Consent::Missing {
        bail!(
            "--peers needs a Python with {packages}: name one in BRISK_PYTHON, or add --yes to make {} (several GB to download)",
            venv.display()
        );
    }
    eprintln!("making {} with {packages}, which downloads several GB", venv.display());
    made(&venv, &python, packages)
        .context("could not make a Python environment for the peers; BRISK_PYTHON can name an existing one")?;
    Ok(python)
}

fn made(venv: &Path, python: &Path, packages: &str) -> Result<()> {
    let system = if cfg!(windows) { "python" } else { "python3" };
    run(command(&format!("{system} -m venv")).arg(venv))?;
    run(Command::new(python).args(["-m", "pip", "install", "--disable-pip-version-check"]).args(packages.split(' ')))
}

/// The packages that `python` cannot import: all of them if it does not run.
fn missing<'a>(python: &Path, packages: &'a str) -> Vec<&'a str> {
    let cannot = |package: &&str| {
        let module = if *package == "scikit-learn" { "sklearn" } else { package };
        !succeeds(Command::new(python).args(["-c", &format!("import {module}")]))
    };
    packages.split(' ').filter(cannot).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_python_that_does_not_exist_has_no_package() {
        assert_eq!(missing(Path::new("no/such/python"), "numpy scikit-learn"), ["numpy", "scikit-learn"]);
    }
}
