use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use brisk_examples::command_line::usage_error;
use brisk_examples::command_line::value::{positive, whole};
use clap::Parser;
use clap::error::ErrorKind;

/// Starts a program as the ranks of an MPI job, on one host or several, and restarts it when a rank is lost
#[derive(Debug, Clone, Parser)]
#[command(name = "launch", after_help = AFTER)]
pub(crate) struct Options {
    /// Number of processes
    #[arg(short, value_name = "RANKS", allow_negative_numbers = true, value_parser = whole::<usize>(1..=1 << 20))]
    n: usize,
    /// Hosts and the number of ranks on each; the program must be at the same path on all of them, and gets the variables
    /// BRISK_*, RUST_* and RAYON_* [default: this host]
    #[arg(long, value_name = "A:2,B:2")]
    pub(crate) hosts: Option<OsString>,
    /// How many times a job that lost a rank is restarted [default: 0, or the number of values of --restart-ranks]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole::<usize>(0..=1 << 20))]
    restarts: Option<usize>,
    /// Number of ranks after the first restart, after the second, and so on; the last number is used from then on
    /// [default: RANKS]
    #[arg(long, value_name = "M,…", value_delimiter = ',', action = clap::ArgAction::Set, num_args = 1, allow_negative_numbers = true,
        value_parser = whole::<usize>(1..=1 << 20))]
    restart_ranks: Vec<usize>,
    /// Seconds after which the job, including its restarts, is ended, with status 124 [default: no limit]
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = positive(1_048_576.0))]
    timeout: Option<f64>,
    /// Seconds that the other ranks have to end once one has failed
    #[arg(long, value_name = "SECONDS", default_value = "10", allow_negative_numbers = true, value_parser = positive(1_048_576.0))]
    grace: f64,
    /// The program, at a path or in a folder of PATH, and its arguments
    #[arg(value_name = "PROGRAM", trailing_var_arg = true, required = true)]
    program: Vec<OsString>,
}

const AFTER: &str = "\
mpirun of Open MPI or MPICH starts the program as RANKS processes, which end together. They are not bound to cores, can outnumber them, and yield while they
wait. When a rank is lost, the others are ended, and the last lines of output name the lost rank, its host, and the operation that the others were waiting in.

A job has lost a rank if its status is 75 (a rank failed, or waited too long for the others) or at least 128 (a signal). With --restarts it is then started
again with the same arguments and `--resume auto`, with which a program resumes from the newest complete checkpoint of its run folder, or starts from the
beginning if there is none. Any other status, such as 1 for a wrong option, is an error of the program that a restart would not change; it is that of launch.

SIGINT, SIGTERM and SIGHUP end the job; no process of it is left running on this host.

Example:
  cargo build --release --features mpi --example data_parallel --example launch
  target/release/examples/launch -n 4 --restarts 3 target/release/examples/data_parallel --out runs/mine";

impl Options {
    /// The absolute path of the program, since ranks can run in another folder, once the options that depend on each other have
    /// been checked.
    pub(crate) fn program(&self) -> Result<PathBuf> {
        if self.n_restarts() > 0 && self.resumed_from().is_some_and(|from| from != "auto") {
            let message = "a restart resumes with `--resume auto`, but the program is given another --resume; use `--resume auto`, or no --restarts";
            return Err(usage_error::<Self>(ErrorKind::ArgumentConflict, message));
        }
        let path = Path::new(&self.program[0]);
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let in_path = || std::env::split_paths(&folders).map(|folder| folder.join(path)).find(|path| path.is_file());
        let is_name = path.components().count() == 1 && !path.is_absolute();
        let found = if path.is_file() { Some(path.to_owned()) } else { in_path().filter(|_| is_name) };
        let Some(path) = found else {
            bail!("there is no program {}{}", path.display(), if is_name { ", here or in a folder of PATH" } else { "" });
        };
        std::path::absolute(&path).with_context(|| format!("cannot make the path {} absolute", path.display()))
    }

    /// The value of the program's `--resume`, empty if it has none, in the forms `--resume FROM` and `--resume=FROM`.
    fn resumed_from(&self) -> Option<&OsStr> {
        self.args().iter().map(OsString::as_os_str).enumerate().find_map(|(at, arg)| {
            match arg.as_encoded_bytes().strip_prefix(b"--resume")? {
                b"" => Some(self.args().get(at + 1).map_or(OsStr::new(""), OsString::as_os_str)),
                [b'=', ..] => Some(arg.to_str().and_then(|arg| arg.split_once('=')).map_or(arg, |(_, from)| OsStr::new(from))),
                _ => None,
            }
        })
    }

    /// The arguments of the program.
    fn args(&self) -> &[OsString] {
        &self.program[1..]
    }

    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.timeout.map(Duration::from_secs_f64)
    }

    pub(crate) fn grace(&self) -> Duration {
        Duration::from_secs_f64(self.grace)
    }

    pub(crate) fn n_restarts(&self) -> usize {
        self.restarts.unwrap_or(self.restart_ranks.len())
    }

    pub(crate) fn n_ranks_after(&self, n_restarts: usize) -> usize {
        match (n_restarts, self.restart_ranks.as_slice()) {
            (0, _) | (_, []) => self.n,
            (_, [.., last]) => self.restart_ranks.get(n_restarts - 1).copied().unwrap_or(*last),
        }
    }

    /// The arguments of the program after this many restarts.
    pub(crate) fn args_after(&self, n_restarts: usize) -> Vec<OsString> {
        let mut args = self.args().to_vec();
        if n_restarts > 0 && self.resumed_from().is_none() {
            args.extend(["--resume", "auto"].map(OsString::from));
        }
        args
    }
}
