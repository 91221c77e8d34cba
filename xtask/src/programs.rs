//! Programs of the workspace that depend on its crates. xtask builds them with cargo and runs them, so it builds in seconds
//! itself.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::metadata::{Package, packages};
use crate::shell::{command, output};

/// Which profile to build with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    /// The profile of tests.
    Dev,
    /// The profile of benchmarks.
    Release,
    /// The profile of benchmarks, with the feature `mpi`.
    ReleaseWithMpi,
}

/// Runs `command` to its end in the current folder, which relative paths in its arguments refer to; returns its exit status as
/// ours.
pub(crate) fn finish(command: &mut Command) -> Result<ExitCode> {
    let status = command.status().with_context(|| format!("could not start {}", command.get_program().display()))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// The feature that needs an MPI to build.
pub(crate) const MPI: &str = "mpi";

/// The arguments by which cargo enables all features, or all but [`MPI`] on systems other than Linux.
pub(crate) fn all_features() -> Result<Vec<String>> {
    Ok(features_of(&packages()?, cfg!(target_os = "linux")))
}

fn features_of(packages: &[Package], has_mpi: bool) -> Vec<String> {
    if has_mpi {
        return vec!["--all-features".to_owned()];
    }
    let of_package = |package: &Package| {
        let others = package.features.iter().filter(|feature| *feature != MPI);
        others.map(|feature| format!("{}/{feature}", package.name)).collect::<Vec<_>>()
    };
    vec!["--features".to_owned(), packages.iter().flat_map(of_package).collect::<Vec<_>>().join(",")]
}

/// Builds a program of the workspace, which is a `bin` or an `example`, and returns its path.
///
/// The command has `--workspace`, and `--tests` and [`all_features`] in the profile of tests, so that features are resolved as
/// for the tests and nothing is built twice.
pub(crate) fn built(kind: &str, name: &str, profile: Profile) -> Result<PathBuf> {
    let mut build = command("cargo build --workspace --message-format json-render-diagnostics");
    build.arg(format!("--{kind}={name}"));
    build.args(match profile {
        Profile::Dev => &["--tests"][..],
        Profile::Release => &["--release"],
        Profile::ReleaseWithMpi => &["--release", "--features", "brisk-benches/mpi"],
    });
    if profile == Profile::Dev {
        build.args(all_features()?);
    }
    match executable(&output(&mut build)?, kind, name) {
        Some(path) => Ok(path),
        None => bail!("cargo built `{name}` but printed no path of its executable"),
    }
}

/// The path of a program in cargo's messages, one JSON object per line; `kind` is `bin` or `example`.
pub(crate) fn executable(messages: &str, kind: &str, name: &str) -> Option<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    // The program's unit tests are an executable of the same name.
    let is_wanted = |message: &Value| {
        message["target"]["name"] == name && message["target"]["kind"][0] == kind && message["profile"]["test"] != true
    };
    let mut built = messages.filter(is_wanted);
    built.find_map(|message| message["executable"].as_str().map(PathBuf::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mpi_is_left_out_where_there_is_none() {
        let package = |name: &str, features: &[&str]| Package {
            name: name.into(),
            features: features.iter().map(ToString::to_string).collect(),
            ..Package::default()
        };
        let packages = [package("brisk-table", &["csv", "default"]), package("brisk", &["mpi", "train"]), package("xtask", &[])];
        assert_eq!(features_of(&packages, true), ["--all-features"]);
        assert_eq!(features_of(&packages, false), ["--features", "brisk-table/csv,brisk-table/default,brisk/train"]);
    }

    #[test]
    fn the_executable_is_found_among_cargos_messages() {
        let messages = r#"{"reason":"compiler-artifact","target":{"kind":["lib"],"name":"bench"},"executable":null}
not json
{"reason":"compiler-artifact","target":{"kind":["bin"],"name":"bench"},"profile":{"test":true},"executable":"/somewhere/debug/deps/bench-1f"}
{"reason":"compiler-artifact","target":{"kind":["bin"],"name":"bench"},"profile":{"test":false},"executable":"/somewhere/debug/bench"}
{"reason":"build-finished","success":true}"#;
        assert_eq!(executable(messages, "bin", "bench"), Some(PathBuf::from("/somewhere/debug/bench")));
        assert_eq!(executable(messages, "bin", "conformance"), None);
        assert_eq!(executable(messages, "example", "bench"), None);
    }
}
