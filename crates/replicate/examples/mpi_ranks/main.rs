//! Replicas as processes: sums over all ranks, what becomes of a rank that fails, and of ranks that differ.
//!
//! `cargo xtask mpi -n 4 -- example mpi_ranks CASE`, where CASE is
//!
//! - `sum`, `sum-by-engine`: every operation once, and a hash of what came of it;
//! - `steps`: steps of a run that can be lost and started again, see [`steps`];
//! - `panic`, `leave`, `hang`: what the last rank does while the others wait for it;
//! - `length`, `type`, `order`, `shape`, `version`: in what the last rank differs.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it is a program")]

mod differences;
mod steps;
#[path = "../../tests/it/sums.rs"]
mod sums;

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use brisk_replicate::{Collective, Error, Mpi, MpiConfig, SumOrder};

const CASES: &str = "sum, sum-by-engine, steps, panic, leave, hang, length, type, order, shape, version";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (case, args) = args.split_first().map_or(("sum", &[][..]), |(case, args)| (case.as_str(), args));
    // What is wrong with the command line is known before anybody is waited for.
    if !CASES.split(", ").any(|known| known == case) {
        eprintln!("error: there is no case `{case}`; there are {CASES}");
        return ExitCode::FAILURE;
    }
    match run(case, args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(case: &str, args: &[String]) -> Result<(), Error> {
    let order = if case == "sum-by-engine" { SumOrder::Engine } else { SumOrder::Fixed };
    let timeout = Duration::from_secs(match case {
        "hang" => 1,
        "steps" => 4,
        _ => 60,
    });
    let mut replica = Mpi::start(MpiConfig { order, timeout })?;
    let last = replica.rank() + 1 == replica.world_size();
    if case == "leave" && last {
        return Ok(());
    }
    match do_case(case, args, &mut replica) {
        Ok(()) => Box::new(replica).finish(),
        // A run that may get through the next time ends with the status that says so, and any other with that of an error: it is not started again.
        Err(error) if error.restart_helps() => {
            replica.fail(&error.to_string());
            Err(error)
        }
        Err(error) => {
            // In one piece, since the other ranks say so at the same time.
            drop(std::io::stderr().write_all(format!("error on rank {}: {error}\n", replica.rank()).as_bytes()));
            std::process::exit(1)
        }
    }
}

fn do_case(case: &str, args: &[String], replica: &mut Mpi) -> Result<(), Error> {
    let last = replica.rank() + 1 == replica.world_size();
    match case {
        "sum" | "sum-by-engine" => {
            let bits = sums::bits(replica)?;
            if replica.rank() == 0 {
                println!("{} ranks by {}: bits {bits:016x}", replica.world_size(), replica.engine());
            }
        }
        "steps" => steps::run(replica, args)?,
        // One that fails ends the job, however it fails.
        "panic" => assert!(!last, "on purpose"),
        "hang" if last => std::thread::sleep(Duration::from_secs(3600)),
        "leave" | "hang" => {}
        difference => differences::show(replica, difference)?,
    }
    replica.barrier()
}
