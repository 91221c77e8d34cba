//! The messages of a stopped run, and its exit status.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use brisk_train::{Ended, Error, FitReport, StopFlag, StopSignal, Warning};

use crate::interruptible::StoppedImport;
use crate::print;

/// The section of `--help` on the exit status of examples that can be stopped.
pub const EXIT_STATUS: &str = "\
Ctrl-C, SIGTERM and SIGHUP end a run after its current step, with a checkpoint and the command to resume; a second one ends it at once.

Exit status:
  0    the run has ended
  1    it failed, or has ended without the copies of its checkpoints
  2    the options are wrong
  128+N  it was stopped by signal N: 130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP";

/// How this process was started, and is started again to resume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartedBy {
    /// With this process's own command line.
    CommandLine,
    /// By a launcher such as mpirun, whose command line is not known here.
    Launcher,
}

/// The exit status of a run with results. If it was stopped, by `signal` or by the program, prints where its checkpoint is and
/// how to resume from it.
pub fn finish(report: &FitReport, signal: Option<StopSignal>, checkpoint: &Path, started_by: StartedBy) -> ExitCode {
    if report.ended != Ended::Stopped {
        return written(&report.warnings);
    }
    let by = signal.map_or(String::new(), |signal| format!(" by {signal}"));
    print::note(format_args!(
        "stopped{by} after {} epochs; a checkpoint was written to {}",
        report.n_epochs,
        checkpoint.display()
    ));
    say_how_to_resume(checkpoint, started_by);
    signal.map_or(ExitCode::SUCCESS, |signal| ExitCode::from(signal.exit_status()))
}

/// The exit status of a run that has ended with these warnings: a failure if its report is not written, or if its checkpoints
/// are on this machine only, where they may be lost.
pub fn written(warnings: &[Warning]) -> ExitCode {
    let is_missing = |warning: &Warning| matches!(warning, Warning::CopiesMissing { .. } | Warning::NoReport { .. });
    if warnings.iter().any(is_missing) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// The exit status of a run that was stopped before it had results; other errors are passed on.
///
/// # Errors
/// `error`, if it is a different one.
pub fn without_results(error: anyhow::Error, stop: &StopFlag, started_by: StartedBy) -> Result<ExitCode> {
    if error.is::<StoppedImport>() {
        print::error(&error);
        return Ok(status(stop, ExitCode::FAILURE));
    }
    let Some(Error::NoEpoch { checkpoint, .. }) = error.downcast_ref() else { return Err(error) };
    print::error(&error);
    if let Some(checkpoint) = checkpoint {
        say_how_to_resume(checkpoint, started_by);
    }
    Ok(status(stop, ExitCode::FAILURE))
}

/// The exit status of a program that was stopped: that of the signal, or `otherwise` if there was none.
pub fn status(stop: &StopFlag, otherwise: ExitCode) -> ExitCode {
    stop.signal().map_or(otherwise, |signal| ExitCode::from(signal.exit_status()))
}

fn say_how_to_resume(checkpoint: &Path, started_by: StartedBy) {
    let how = match started_by {
        StartedBy::CommandLine => resume_command(std::env::args_os(), checkpoint),
        StartedBy::Launcher => resume_job(std::env::args_os(), checkpoint),
    };
    print::note(format_args!("to resume: {how}"));
}

/// What to change in the command line of a job, of which this process has the last part.
fn resume_job(args: impl IntoIterator<Item = OsString>, checkpoint: &Path) -> String {
    let names_folder = |arg: OsString| arg.to_str().is_some_and(|arg| arg == "--out" || arg.starts_with("--out="));
    let without = if args.into_iter().any(names_folder) { " and without --out" } else { "" };
    format!("start the job again with {}{without}", resume_option(checkpoint))
}

fn resume_option(checkpoint: &Path) -> String {
    format!("--resume {}", print::shell_word(checkpoint.display()))
}

/// The command line of this process, for a shell, with `--resume CHECKPOINT` instead of the options that say where it started.
fn resume_command(args: impl IntoIterator<Item = OsString>, checkpoint: &Path) -> String {
    let mut words = Vec::new();
    let mut args = args.into_iter();
    while let Some(arg) = args.next() {
        let arg = arg.to_string_lossy().into_owned();
        match arg.as_str() {
            "--resume" | "--out" => drop(args.next()),
            _ if arg.starts_with("--resume=") || arg.starts_with("--out=") => {}
            _ => words.push(print::shell_word(arg)),
        }
    }
    words.push(resume_option(checkpoint));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(args: &[&str], expected: &str) {
        let found = resume_command(args.iter().map(OsString::from), Path::new("my runs/last.safetensors"));
        assert_eq!(found, format!("{expected} --resume 'my runs/last.safetensors'"));
    }

    #[test]
    fn a_job_resumes_without_the_option_that_names_a_new_folder() {
        let how = |args: &[&str]| resume_job(args.iter().map(OsString::from), Path::new("st/last.safetensors"));
        assert_eq!(how(&["data_parallel", "--rows", "9"]), "start the job again with --resume st/last.safetensors");
        for args in [&["data_parallel", "--out", "st"][..], &["data_parallel", "--out=st"]] {
            assert_eq!(how(args), "start the job again with --resume st/last.safetensors and without --out");
        }
    }

    #[test]
    fn the_command_to_resume_is_that_of_the_run() {
        check(&["higgs"], "higgs");
        check(&["target/higgs", "--rows", "400", "--hidden", "8,8"], "target/higgs --rows 400 --hidden 8,8");
        check(&["higgs", "--out", "a b", "--resume", "auto", "--lr=1"], "higgs --lr=1");
        check(&["higgs", "--resume=auto", "--out=x", "--train", "it's mine"], r"higgs --train 'it'\''s mine'");
    }
}
