//! Starts a program as the ranks of an MPI job, which is ended and restarted as a whole.
//!
//! `cargo run --release --example launch -- --help`

#[cfg(unix)]
mod job;
#[cfg_attr(not(unix), expect(dead_code, reason = "jobs are supervised on Unix only"))]
mod options;
#[cfg_attr(not(unix), expect(dead_code, reason = "jobs are supervised on Unix only"))]
mod words;

use std::process::ExitCode;

use brisk_examples::command_line;

fn main() -> ExitCode {
    command_line::run(run)
}

/// The status of a job that lost a rank and ended by itself: `brisk_replicate::Mpi::PEER_FAILED`.
#[cfg(unix)]
const PEER_FAILED: u8 = 75;

#[cfg(unix)]
fn run(options: options::Options) -> anyhow::Result<ExitCode> {
    use brisk_examples::print::note;

    let program = options.program()?;
    let stop = job::Stop::on_signals()?;
    let until = options.timeout().map(|timeout| std::time::Instant::now() + timeout);
    for n_restarts in 0.. {
        let n_ranks = options.n_ranks_after(n_restarts);
        let mut mpirun = job::mpirun(n_ranks, options.hosts.as_deref(), &program);
        mpirun.args(options.args_after(n_restarts));
        let begin = std::time::Instant::now();
        let (end, words) = job::run(&mut mpirun, options.grace(), until, &stop)?;
        let status = end.status();
        if status == 0 {
            break;
        }
        let why = words.verdict(n_ranks).unwrap_or_else(|| end.to_string());
        note(format_args!("the job ended with status {status} after {:.1} s: {why}", begin.elapsed().as_secs_f64()));
        if !end.restart_helps() || n_restarts == options.n_restarts() {
            return Ok(ExitCode::from(status));
        }
        let (next, of) = (n_restarts + 1, options.n_restarts());
        note(format_args!("restart {next} of {of}: -n {}, `--resume auto`", options.n_ranks_after(next)));
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(not(unix))]
fn run(_: options::Options) -> anyhow::Result<ExitCode> {
    anyhow::bail!("jobs are supervised on Unix only; start the program with `mpiexec`")
}
