//! The command line of `cargo xtask mpi`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::stages::Install;

pub(crate) const HELP: &str = "\
usage: cargo xtask mpi -n RANKS [OPTIONS] -- example NAME [ARGS]...
       cargo xtask mpi -n RANKS [OPTIONS] -- program PATH [ARGS]...

Starts a program as RANKS processes by mpirun, and sees to it that they end together. An example is built first, for release, with its feature
`mpi`; on Linux without an MPI, Open MPI is installed. Its exit status is the job's.

Ranks are bound to no core, may be more than there are cores, and give theirs up while they wait. Where one is lost, the others are ended, and
the last lines say which it was, on which host, and what the others were waiting for.

  -n RANKS              how many processes
  --hosts A:2,B:2       on which hosts, and how many on each; all need the program at the same path.          [this one]
                        Variables whose names begin with BRISK_, RUST_ or RAYON_ go along
  --restarts N          how often a job that has lost a rank is started again                                    [0]
  --restart-ranks M,…   with how many ranks: after the first failure, the second…; the last number stays    [RANKS]
                        Without --restarts, as many restarts as there are numbers
  --timeout SECONDS     when the whole is ended, restarts included, with status 124                           [never]
  --grace SECONDS       how long the rest has to end once one rank has failed                                   [10]
  --no-install          never install anything: stop with the command that would

A job has lost a rank if its status is 75 (one failed, or waited too long for the others) or at least 128 (a signal). It is then started with the
same arguments and `--resume auto`, by which a program goes on from the newest complete checkpoint of its run folder, and begins at the start
where there is none. Any other status, such as 1 for a wrong option, is the program's answer, and starting again would not change it.

SIGINT, SIGTERM and SIGHUP end the job; nothing is left running on this host.";

/// What the command line asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) n_ranks: usize,
    /// As mpirun takes them.
    pub(super) hosts: Option<String>,
    pub(super) restarts: Option<usize>,
    pub(super) restart_ranks: Vec<usize>,
    pub(super) timeout: Option<Duration>,
    pub(super) grace: Duration,
    pub(super) install: Install,
    pub(super) program: Program,
    /// The program's own.
    pub(super) args: Vec<String>,
}

/// What runs as ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Program {
    /// Of the workspace, by name.
    Example(String),
    /// Built before.
    Path(PathBuf),
}

impl Options {
    pub(super) fn parse(args: &[String]) -> Result<Self> {
        const USAGE: &str = "`cargo xtask mpi -n 2 -- example NAME`; `--help` says more";
        let mut parts = args.splitn(2, |arg| arg == "--");
        let mut own = parts.next().unwrap_or_default().iter();
        let program = parts.next().with_context(|| format!("what to run stands behind `--`: {USAGE}"))?;
        let (program, rest) = match program {
            [kind, name, rest @ ..] if kind == "example" => (Program::Example(name.clone()), rest),
            [kind, path, rest @ ..] if kind == "program" => (Program::Path(path.into()), rest),
            _ => bail!("behind `--` stands `example NAME` or `program PATH`: {USAGE}"),
        };
        let mut options = Self {
            n_ranks: 0,
            hosts: None,
            restarts: None,
            restart_ranks: Vec::new(),
            timeout: None,
            grace: Duration::from_secs(10),
            install: Install::Allowed,
            program,
            args: rest.to_vec(),
        };
        while let Some(name) = own.next() {
            let mut value = || own.next().map(String::as_str).with_context(|| format!("{name} wants a value; see --help"));
            match name.as_str() {
                "-n" => options.n_ranks = whole(name, value()?, 1)?,
                "--hosts" => options.hosts = Some(value()?.to_owned()),
                "--restarts" => options.restarts = Some(whole(name, value()?, 0)?),
                "--restart-ranks" => {
                    options.restart_ranks = value()?.split(',').map(|word| whole(name, word, 1)).collect::<Result<_>>()?;
                }
                "--timeout" => options.timeout = Some(seconds(name, value()?)?),
                "--grace" => options.grace = seconds(name, value()?)?,
                "--no-install" => options.install = Install::Never,
                other => bail!("there is no option `{other}`; see --help"),
            }
        }
        if options.n_ranks == 0 {
            bail!("-n says how many ranks: {USAGE}");
        }
        let resumed = options.args.iter().position(|arg| arg == "--resume");
        if options.n_restarts() > 0 && resumed.is_some_and(|at| options.args.get(at + 1).is_none_or(|from| from != "auto")) {
            bail!("a restart goes on with `--resume auto`, and the program has another --resume; give it that, or no --restarts");
        }
        Ok(options)
    }

    pub(super) fn n_restarts(&self) -> usize {
        self.restarts.unwrap_or(self.restart_ranks.len())
    }

    pub(super) fn n_ranks_after(&self, n_restarts: usize) -> usize {
        match (n_restarts, self.restart_ranks.as_slice()) {
            (0, _) | (_, []) => self.n_ranks,
            (_, [.., last]) => self.restart_ranks.get(n_restarts - 1).copied().unwrap_or(*last),
        }
    }

    /// The program's arguments in the run after so many restarts.
    pub(super) fn args_after(&self, n_restarts: usize) -> Vec<String> {
        let mut args = self.args.clone();
        if n_restarts > 0 && !args.iter().any(|arg| arg == "--resume") {
            args.extend(["--resume", "auto"].map(String::from));
        }
        args
    }
}

fn whole(name: &str, word: &str, least: usize) -> Result<usize> {
    let number = word.parse().ok().filter(|number| (least..=1 << 20).contains(number));
    number.with_context(|| format!("{name} wants a whole number from {least}, got `{word}`"))
}

fn seconds(name: &str, word: &str) -> Result<Duration> {
    let seconds = word.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.with_context(|| format!("{name} wants seconds, got `{word}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options> {
        Options::parse(&line.split_whitespace().map(String::from).collect::<Vec<_>>())
    }

    #[track_caller]
    fn check_error(line: &str, part: &str) {
        let error = parse(line).expect_err(line).to_string();
        assert!(error.contains(part), "{error}");
    }

    #[test]
    fn the_programs_arguments_stand_behind_its_name() {
        let options = parse("-n 4 --hosts a:2,b:2 --grace 2.5 --timeout 60 --no-install -- program ./x -n 9 -- --hosts c")
            .expect("all known");
        assert_eq!((options.n_ranks, options.hosts.as_deref()), (4, Some("a:2,b:2")));
        assert_eq!((options.grace, options.timeout), (Duration::from_millis(2500), Some(Duration::from_secs(60))));
        assert_eq!((options.install, options.program), (Install::Never, Program::Path("./x".into())));
        assert_eq!(options.args, ["-n", "9", "--", "--hosts", "c"]);
        assert_eq!(parse("-n 1 -- example x").expect("the least").program, Program::Example("x".to_owned()));
    }

    #[test]
    fn what_is_missing_or_wrong_is_said() {
        check_error("-n 2 example x", "what to run stands behind `--`: `cargo xtask mpi -n 2 -- example NAME`");
        check_error("-n 2 -- x", "behind `--` stands `example NAME` or `program PATH`");
        check_error("-n 2 -- example", "behind `--` stands");
        check_error("-- example x", "-n says how many ranks");
        check_error("-n 0 -- example x", "-n wants a whole number from 1, got `0`");
        check_error("-n two -- example x", "got `two`");
        check_error("-n 2 --restart-ranks 2, -- example x", "--restart-ranks wants a whole number from 1, got ``");
        check_error("-n 2 --timeout -1 -- example x", "--timeout wants seconds, got `-1`");
        check_error("-n 2 --ranks -- example x", "there is no option `--ranks`");
        check_error("-n 2 --restarts 1 -- example x --resume run/step-9", "a restart goes on with `--resume auto`");
    }

    #[test]
    fn restarts_have_their_own_ranks_and_resume() {
        let check = |line: &str, n_restarts: usize, n_ranks: [usize; 4]| {
            let options = parse(line).expect(line);
            assert_eq!(options.n_restarts(), n_restarts, "{line}");
            assert_eq!([0, 1, 2, 3].map(|n| options.n_ranks_after(n)), n_ranks, "{line}");
        };
        check("-n 4 -- example x", 0, [4; 4]);
        check("-n 4 --restarts 3 -- example x", 3, [4; 4]);
        check("-n 4 --restart-ranks 2,1 -- example x", 2, [4, 2, 1, 1]);
        check("-n 4 --restart-ranks 2 --restarts 3 -- example x", 3, [4, 2, 2, 2]);

        let options = parse("-n 2 --restarts 1 -- example x --seed 1").expect("all known");
        assert_eq!(options.args_after(0), ["--seed", "1"]);
        assert_eq!(options.args_after(1), ["--seed", "1", "--resume", "auto"]);
        let resumed = parse("-n 2 --restarts 1 -- example x --resume auto").expect("all known");
        assert_eq!(resumed.args_after(1), ["--resume", "auto"]);
    }
}
