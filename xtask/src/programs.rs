//! Programs of the workspace that depend on its crates. xtask builds them with cargo and runs them, so it builds in seconds
//! itself.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

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

/// Builds a program of the workspace, which is a `bin` or an `example`, and returns its path.
///
/// The command has `--workspace`, and `--tests --all-features` in the profile of tests, so that features are resolved as for the
/// tests and nothing is built twice.
pub(crate) fn built(kind: &str, name: &str, profile: Profile) -> Result<PathBuf> {
    let mut build = command("cargo build --workspace --message-format json-render-diagnostics");
    build.arg(format!("--{kind}={name}"));
    build.args(match profile {
        Profile::Dev => &["--tests", "--all-features"][..],
        Profile::Release => &["--release"],
        Profile::ReleaseWithMpi => &["--release", "--features", "brisk-benches/mpi"],
    });
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
