//! Programs of the workspace that need the crates: built by cargo, run by us. So xtask itself stays small and builds in seconds.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::shell::{command, output, root, run, target_dir};

/// Which profile to build with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    /// What tests use.
    Dev,
    /// What is measured.
    Release,
    /// The same, with ranks that are processes.
    ReleaseWithMpi,
}

/// `cargo xtask conformance`: the program checks its own arguments.
pub(crate) fn conformance(args: &[String]) -> Result<ExitCode> {
    started(Command::new(built("conformance", Profile::Dev)?).args(args))
}

/// `cargo xtask with-candle`: tests the package outside the workspace, and runs it.
pub(crate) fn with_candle(args: &[String]) -> Result<ExitCode> {
    let cargo = |verb: &str| {
        let mut cargo = command(&format!("cargo {verb} --release"));
        cargo.arg("--manifest-path").arg(root().join("examples/with_candle/Cargo.toml"));
        cargo.arg("--target-dir").arg(target_dir().join("with_candle"));
        cargo
    };
    run(&mut cargo("test"))?;
    let smoke = ["--smoke".to_owned()];
    let args = if args.is_empty() { &smoke } else { args };
    started(cargo("run").arg("--").args(args))
}

/// Runs `command` to the end, where the user stands, so that the paths given mean what they say; its exit code is ours.
pub(crate) fn started(command: &mut Command) -> Result<ExitCode> {
    let status = command.status().with_context(|| format!("could not start {}", command.get_program().display()))?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Builds a program of the workspace and says where it is.
///
/// `--workspace`, and `--tests --all-features` in the tests' profile, although one program is wanted: features are then resolved as the
/// tests resolve them, so nothing is built twice.
pub(crate) fn built(name: &str, profile: Profile) -> Result<PathBuf> {
    let mut build = command("cargo build --workspace --message-format json-render-diagnostics --bin");
    build.arg(name);
    build.args(match profile {
        Profile::Dev => &["--tests", "--all-features"][..],
        Profile::Release => &["--release"],
        Profile::ReleaseWithMpi => &["--release", "--features", "brisk-tests/mpi"],
    });
    match executable(&output(&mut build)?, "bin", name) {
        Some(path) => Ok(path),
        None => bail!("cargo built `{name}` and did not say where it is"),
    }
}

/// Where cargo's messages, a JSON object a line, say that a program is; `kind` is `bin` or `example`.
pub(crate) fn executable(messages: &str, kind: &str, name: &str) -> Option<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    // The program's own unit tests are an executable of the same name.
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
