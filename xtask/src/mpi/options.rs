//! The command line of `cargo xtask mpi`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use clap::builder::RangedU64ValueParser;

use crate::packages::{Install, InstallOptions};

/// Runs a program as the ranks of an MPI job, on one host or several, and restarts it when a rank is lost
///
/// mpirun starts the program as RANKS processes, which end together. An example is first built for release with its feature `mpi`; on Linux without MPI,
/// Open MPI is installed. The exit status is that of the job.
///
/// Ranks are not bound to cores, can outnumber them, and yield while they wait. When a rank is lost, the others are ended, and the last lines of output name the
/// lost rank, its host, and the operation that the others were waiting in.
///
/// A job has lost a rank if its status is 75 (a rank failed, or waited too long for the others) or at least 128 (a signal). With --restarts it is then started
/// again with the same arguments and `--resume auto`, with which a program resumes from the newest complete checkpoint of its run folder, or starts from the
/// beginning if there is none. Any other status, such as 1 for a wrong option, is an error of the program that a restart would not change.
///
/// SIGINT, SIGTERM and SIGHUP end the job; no process of it is left running on this host.
#[derive(Clone, Debug, Args)]
#[command(
    override_usage = "cargo xtask mpi -n RANKS [OPTIONS] -- example NAME [ARGS]...\n       cargo xtask mpi -n RANKS [OPTIONS] -- program PATH [ARGS]..."
)]
pub(crate) struct Options {
    /// Number of processes
    #[arg(short, value_name = "RANKS", value_parser = whole(1))]
    pub(super) n: usize,
    /// Hosts and the number of ranks on each; the program must be at the same path on all of them [default: this host]
    ///
    /// Environment variables whose names begin with BRISK_, RUST_ or RAYON_ are passed on to all hosts.
    #[arg(long, value_name = "A:2,B:2")]
    pub(super) hosts: Option<OsString>,
    /// How many times a job that lost a rank is restarted [default: 0, or the number of values of --restart-ranks]
    #[arg(long, value_name = "N", value_parser = whole(0))]
    restarts: Option<usize>,
    /// Number of ranks after the first restart, after the second, and so on; the last number is used from then on [default: RANKS]
    #[arg(long, value_name = "M,…", value_delimiter = ',', value_parser = whole(1))]
    restart_ranks: Vec<usize>,
    /// Ends the job, including its restarts, after this time, with status 124 [default: no limit]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(super) timeout: Option<Duration>,
    /// How long the other ranks have to end once one has failed
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "10")]
    pub(super) grace: Duration,
    #[command(flatten)]
    pub(super) install: InstallOptions,
    /// `example NAME` or `program PATH`, then the arguments of the program
    #[arg(value_name = "PROGRAM", last = true, required = true)]
    program: Vec<OsString>,
}

/// What runs as ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Program {
    /// The name of an example of the workspace.
    Example(String),
    /// The path of a program that is already built.
    Path(PathBuf),
}

impl Options {
    /// `-n N_RANKS --no-install -- program PATH ARGS`.
    pub(crate) fn of_program(n_ranks: usize, path: PathBuf, args: &[&str]) -> Self {
        Self {
            n: n_ranks,
            hosts: None,
            restarts: None,
            restart_ranks: Vec::new(),
            timeout: None,
            grace: Duration::from_secs(10),
            install: InstallOptions::from(Install::Never),
            program: ["program".into(), path.into()].into_iter().chain(args.iter().map(OsString::from)).collect(),
        }
    }

    /// What to run as ranks, once the options that depend on each other have been checked.
    pub(super) fn program(&self) -> Result<Program> {
        let program = match self.program.as_slice() {
            [kind, name, ..] if kind == "example" => Program::Example(name.to_string_lossy().into_owned()),
            [kind, path, ..] if kind == "program" => Program::Path(path.into()),
            _ => bail!("after `--`, expected `example NAME` or `program PATH`, as in `cargo xtask mpi -n 2 -- example NAME`"),
        };
        let resumed = self.args().iter().position(|arg| arg == "--resume");
        if self.n_restarts() > 0 && resumed.is_some_and(|at| self.args().get(at + 1).is_none_or(|from| from != "auto")) {
            bail!(
                "a restart resumes with `--resume auto`, but the program is given another --resume; use `--resume auto`, or no --restarts"
            );
        }
        Ok(program)
    }

    /// The arguments of the program.
    fn args(&self) -> &[OsString] {
        self.program.get(2..).unwrap_or_default()
    }

    pub(super) fn n_restarts(&self) -> usize {
        self.restarts.unwrap_or(self.restart_ranks.len())
    }

    pub(super) fn n_ranks_after(&self, n_restarts: usize) -> usize {
        match (n_restarts, self.restart_ranks.as_slice()) {
            (0, _) | (_, []) => self.n,
            (_, [.., last]) => self.restart_ranks.get(n_restarts - 1).copied().unwrap_or(*last),
        }
    }

    /// The arguments of the program after this many restarts.
    pub(super) fn args_after(&self, n_restarts: usize) -> Vec<OsString> {
        let mut args = self.args().to_vec();
        if n_restarts > 0 && !args.iter().any(|arg| arg == "--resume") {
            args.extend(["--resume", "auto"].map(OsString::from));
        }
        args
    }
}

/// A whole number of at least `least`.
fn whole(least: u64) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(least..=1 << 20)
}

fn seconds(word: &str) -> Result<Duration, String> {
    let seconds = word.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| "expected a number of seconds".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn parse(line: &str) -> Result<Options, clap::Error> {
        Line::try_parse_from(std::iter::once("mpi").chain(line.split_whitespace())).map(|line| line.options)
    }

    fn parsed(line: &str) -> Options {
        parse(line).unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    #[track_caller]
    fn check_usage_error(line: &str, part: &str) {
        let error = parse(line).expect_err(line).to_string();
        assert!(error.contains(part), "{line}: {error}");
    }

    #[track_caller]
    fn check_error(line: &str, part: &str) {
        let error = parsed(line).program().expect_err(line).to_string();
        assert!(error.contains(part), "{line}: {error}");
    }

    #[test]
    fn arguments_of_the_program_are_not_read() {
        let options =
            parsed("-n 4 --hosts a:2,b:2 --grace 2.5 --timeout 60 --no-install -- program ./x -n 9 -- --hosts c --help");
        assert_eq!((options.n, options.hosts.as_deref()), (4, Some("a:2,b:2".as_ref())));
        assert_eq!((options.grace, options.timeout), (Duration::from_millis(2500), Some(Duration::from_secs(60))));
        assert_eq!(options.install.get(), Install::Never);
        assert_eq!(options.program().expect("a program"), Program::Path("./x".into()));
        assert_eq!(options.args_after(0), ["-n", "9", "--", "--hosts", "c", "--help"]);
        assert_eq!(parsed("-n 1 -- example x").program().expect("an example"), Program::Example("x".to_owned()));
    }

    #[test]
    fn missing_and_wrong_words_are_errors() {
        check_usage_error("-n 2 example x", "unexpected argument 'example'");
        check_usage_error("-n 2", "PROGRAM");
        check_usage_error("-- example x", "-n <RANKS>");
        check_usage_error("-n 0 -- example x", "0 is not in 1..=");
        check_usage_error("-n two -- example x", "invalid value 'two' for '-n <RANKS>'");
        check_usage_error("-n 2 --restart-ranks 2, -- example x", "'--restart-ranks <M,…>'");
        check_usage_error("-n 2 --timeout=-1 -- example x", "expected a number of seconds");
        check_usage_error("-n 2 --restart 1 -- example x", "a similar argument exists: '--restarts'");
        check_error("-n 2 -- x", "after `--`, expected `example NAME` or `program PATH`");
        check_error("-n 2 -- example", "after `--`, expected");
        check_error("-n 2 --restarts 1 -- example x --resume run/step-9", "a restart resumes with `--resume auto`");
    }

    #[test]
    fn restarts_have_their_own_ranks_and_resume() {
        let check = |line: &str, n_restarts: usize, n_ranks: [usize; 4]| {
            let options = parsed(line);
            assert_eq!(options.n_restarts(), n_restarts, "{line}");
            assert_eq!([0, 1, 2, 3].map(|n| options.n_ranks_after(n)), n_ranks, "{line}");
        };
        check("-n 4 -- example x", 0, [4; 4]);
        check("-n 4 --restarts 3 -- example x", 3, [4; 4]);
        check("-n 4 --restart-ranks 2,1 -- example x", 2, [4, 2, 1, 1]);
        check("-n 4 --restart-ranks 2 --restarts 3 -- example x", 3, [4, 2, 2, 2]);

        let options = parsed("-n 2 --restarts 1 -- example x --seed 1");
        assert_eq!(options.args_after(0), ["--seed", "1"]);
        assert_eq!(options.args_after(1), ["--seed", "1", "--resume", "auto"]);
        let resumed = parsed("-n 2 --restarts 1 -- example x --resume auto");
        assert_eq!(resumed.args_after(1), ["--resume", "auto"]);
    }
}
