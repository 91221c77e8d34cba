//! Starts other programs; a failure names the command to repeat.

use std::env;
use std::ffi::OsStr;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

/// The root folder of the workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the root folder of the workspace")
}

/// The folder of build output.
pub(crate) fn target_dir() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// `program args…` in the root folder of the workspace; `line` is split at spaces.
pub(crate) fn command(line: &str) -> Command {
    let mut words = line.split_whitespace();
    let program = words.next().expect("a command line has a program");
    // The cargo that started xtask, so that `cargo +nightly xtask` stays on nightly.
    let cargo = env::var_os("CARGO").filter(|_| program == "cargo");
    let mut command = Command::new(cargo.as_deref().unwrap_or(OsStr::new(program)));
    command.args(words).current_dir(root());
    if program == "cargo" {
        of_no_package(&mut command);
    }
    command
}

/// Removes the variables that describe xtask's own package, which cargo sets for what it runs.
///
/// Build scripts of dependencies read them, so they, and all that depends on them, would be built again whenever cargo is started
/// by another program.
fn of_no_package(cargo: &mut Command) {
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("CARGO_MANIFEST_") || name.starts_with("CARGO_PKG_")) {
            cargo.env_remove(name);
        }
    }
}

/// Runs a command to its end; its output goes where ours goes.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("could not start `{}`", shown(command)))?;
    if !status.success() {
        bail!("`{}` failed ({status})", shown(command));
    }
    Ok(())
}

/// Runs a compiler to its end; a warning is an error, too. Its output is shown when it ends.
pub(crate) fn run_without_warnings(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("could not start `{}`", shown(command)))?;
    io::stderr().write_all(&output.stderr).context("could not write to standard error")?;
    if !output.status.success() {
        bail!("`{}` failed ({})", shown(command), output.status);
    }
    if output.stderr.split(|byte| *byte == b'\n').any(|line| line.starts_with(b"warning")) {
        bail!("`{}` has warnings", shown(command));
    }
    Ok(())
}

/// Runs a command to its end and returns its standard output; its standard error goes where ours goes.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.stderr(Stdio::inherit()).output().with_context(|| format!("could not start `{}`", shown(command)))?;
    if !output.status.success() {
        bail!("`{}` failed ({})", shown(command), output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{}` printed text that is not UTF-8", shown(command)))
}

/// Whether a command can be started and succeeds; its output is discarded.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Prints to standard output. It is not an error if the reader, such as `head`, has closed the pipe.
pub(crate) fn print(text: &[u8]) -> Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("could not write to standard output"),
        _ => Ok(()),
    }
}

/// What to type to repeat a command: the variables that it sets, its program's name, its arguments.
///
/// Bytes that are not UTF-8 are shown as U+FFFD.
pub(crate) fn shown(command: &Command) -> String {
    let variables = command.get_envs().filter_map(|(name, value)| {
        let value = value?.to_string_lossy();
        Some(if value.contains(' ') { format!("{}=\"{value}\"", name.display()) } else { format!("{}={value}", name.display()) })
    });
    let program = Path::new(command.get_program()).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let args = command.get_args().map(|arg| arg.to_string_lossy().into_owned());
    variables.chain([program]).chain(args).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_command_to_repeat() {
        let mut failing = command("cargo no-such-subcommand --flag");
        failing.env("RUSTDOCFLAGS", "-D warnings").stderr(Stdio::null());
        let error = run(&mut failing).expect_err("there is no such subcommand");
        assert!(error.to_string().contains("RUSTDOCFLAGS=\"-D warnings\" cargo no-such-subcommand --flag"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_warning_is_an_error() {
        let printing = |text: &str| run_without_warnings(Command::new("sh").args(["-c", &format!("echo '{text}' >&2")]));
        printing("no warning").expect("nothing is wrong");
        let error = printing("warning: unused variable").expect_err("a warning");
        assert!(error.to_string().ends_with("has warnings"), "{error}");
    }

    #[test]
    fn a_program_that_is_not_there_is_no_success() {
        assert!(!succeeds(&mut command("no-such-program-anywhere --version")));
        let error = run(&mut command("no-such-program-anywhere")).expect_err("it does not exist");
        assert!(format!("{error:#}").contains("could not start `no-such-program-anywhere`"), "{error:#}");
    }
}
