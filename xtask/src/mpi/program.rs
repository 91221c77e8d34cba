//! The program that runs as ranks; an example is built first.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::install::ensure;
use super::options::Program;
use crate::packages::Install;
use crate::programs::executable;
use crate::shell::{command, output};

/// Its absolute path, since ranks can run in another folder. An example is built, for which MPI may be installed.
pub(super) fn found(program: &Program, install: Install) -> Result<PathBuf> {
    match program {
        Program::Path(path) => absolute(path),
        Program::Example(name) => built(name, install),
    }
}

fn absolute(path: &Path) -> Result<PathBuf> {
    if !path.is_file() {
        bail!("there is no program {}", path.display());
    }
    std::path::absolute(path).with_context(|| format!("cannot make the path {} absolute", path.display()))
}

/// Builds an example for release with the feature `mpi` of its package.
fn built(name: &str, install: Install) -> Result<PathBuf> {
    let package = package_of(&output(&mut command("cargo metadata --format-version 1 --no-deps"))?, name)?;
    ensure(install)?;
    let mut build = command("cargo build --release --features mpi --message-format json-render-diagnostics");
    build.args(["--package", &package, "--example", name]);
    executable(&output(&mut build)?, "example", name)
        .with_context(|| format!("cargo built `{name}` but printed no path of its executable"))
}

/// The package of an example that can be built with MPI, according to `cargo metadata`.
fn package_of(metadata: &str, example: &str) -> Result<String> {
    let metadata: Value = serde_json::from_str(metadata)?;
    let examples = metadata["packages"].as_array().into_iter().flatten().flat_map(|package| {
        let targets = package["targets"].as_array().into_iter().flatten().filter(|target| target["kind"][0] == "example");
        targets.filter_map(move |target| Some((target["name"].as_str()?, package)))
    });
    let (with_mpi, without): (Vec<_>, Vec<_>) = examples.partition(|(_, package)| package["features"]["mpi"].is_array());
    if let Some((_, package)) = with_mpi.iter().find(|(name, _)| *name == example) {
        return package["name"].as_str().map(String::from).context("`cargo metadata` lists a package without a name");
    }
    let names = with_mpi.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    if without.iter().any(|(name, _)| *name == example) {
        bail!("the package of `{example}` has no feature `mpi`; examples with it: {names}");
    }
    bail!("there is no example `{example}`; examples with the feature `mpi`: {names}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const METADATA: &str = r#"{"packages": [
        {"name": "one", "features": {"mpi": ["dep:mpi-sys"]}, "targets": [
            {"kind": ["lib"], "name": "one"}, {"kind": ["example"], "name": "ranks"}, {"kind": ["example"], "name": "rows"}]},
        {"name": "two", "features": {}, "targets": [{"kind": ["example"], "name": "plain"}, {"kind": ["bin"], "name": "tool"}]}
    ]}"#;

    #[test]
    fn an_example_is_found_by_name() {
        assert_eq!(package_of(METADATA, "rows").expect("an example with the feature"), "one");
        let error = |name| package_of(METADATA, name).expect_err("it cannot run as ranks").to_string();
        assert_eq!(error("plain"), "the package of `plain` has no feature `mpi`; examples with it: ranks, rows");
        assert_eq!(error("tool"), "there is no example `tool`; examples with the feature `mpi`: ranks, rows");
    }
}
