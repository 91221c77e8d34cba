//! `cargo xtask mpi`: runs a program of the workspace as a job of several processes, which is ended and restarted as a whole.

mod install;
#[cfg(unix)]
mod job;
mod options;
mod program;
mod words;

pub(crate) use install::{ensure, ensure_network};
pub(crate) use options::Options;

use std::process::ExitCode;

use anyhow::Result;
#[cfg(unix)]
use std::time::Instant;

/// The status of a job that lost a rank and ended by itself: `brisk_replicate::Mpi::PEER_FAILED`.
const PEER_FAILED: u8 = 75;

#[cfg(unix)]
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let program = program::found(&options.program()?, options.install.get())?;
    let stop = job::Stop::on_signals()?;
    let until = options.timeout.map(|timeout| Instant::now() + timeout);
    let mut n_restarts = 0;
    loop {
        let n_ranks = options.n_ranks_after(n_restarts);
        let mut mpirun = job::mpirun(n_ranks, options, &program);
        mpirun.args(options.args_after(n_restarts));
        let begin = Instant::now();
        let (end, words) = job::run(&mut mpirun, options.grace, until, &stop)?;
        let status = end.status();
        if status == 0 {
            return Ok(ExitCode::SUCCESS);
        }
        let why = words.verdict(n_ranks).unwrap_or_else(|| end.to_string());
        eprintln!("the job ended with status {status} after {:.1} s: {why}", begin.elapsed().as_secs_f64());
        if !end.restart_helps() || n_restarts == options.n_restarts() {
            return Ok(ExitCode::from(status));
        }
        n_restarts += 1;
        let (n_ranks, of) = (options.n_ranks_after(n_restarts), options.n_restarts());
        eprintln!("restart {n_restarts} of {of}: -n {n_ranks}, `--resume auto`");
    }
}

#[cfg(not(unix))]
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    options.program()?;
    anyhow::bail!(
        "this command supervises jobs on Unix only; build the program with the feature `mpi` and start it with `mpiexec`"
    )
}
