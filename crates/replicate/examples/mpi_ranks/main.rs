//! Replicas as processes: sums over all ranks, ranks that fail, and ranks that differ from the others.
//!
//! The example `launch` starts it as ranks; `cargo run --features mpi --example mpi_ranks -- --help` lists the cases.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it is a program")]

mod differences;
#[path = "../../tests/it/late.rs"]
mod late;
mod options;
mod steps;
#[path = "../../tests/it/sums.rs"]
mod sums;

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use brisk_replicate::{Collective, Error, Mpi, MpiConfig, SumOrder};
use clap::Parser as _;

use options::{Case, Options};

fn main() -> ExitCode {
    // A wrong command line ends the process here, before MPI starts and waits for the other ranks.
    match run(Options::parse().case()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(case: Case) -> Result<(), Error> {
    let order = if matches!(case, Case::SumByEngine) { SumOrder::Engine } else { SumOrder::Fixed };
    let timeout = Duration::from_secs(match case {
        Case::Hang => 1,
        Case::Steps(_) => 4,
        _ => 60,
    });
    let mut replica = Mpi::start(MpiConfig { order, timeout })?;
    let last = replica.rank() + 1 == replica.world_size();
    if matches!(case, Case::Leave) && last {
        return Ok(());
    }
    match run_case(&case, &mut replica) {
        Ok(()) => Box::new(replica).finish(),
        // A run that may succeed the next time ends with the exit status that says so. Any other ends with that of an error and
        // is not started again.
        Err(error) if error.restart_helps() => {
            replica.fail(&error.to_string());
            Err(error)
        }
        Err(error) => {
            // In one write, since the other ranks report it at the same time.
            drop(std::io::stderr().write_all(format!("error on rank {}: {error}\n", replica.rank()).as_bytes()));
            std::process::exit(1)
        }
    }
}

fn run_case(case: &Case, replica: &mut Mpi) -> Result<(), Error> {
    let last = replica.rank() + 1 == replica.world_size();
    match case {
        Case::Sum | Case::SumByEngine => {
            let bits = sums::bits(replica)?;
            if replica.rank() == 0 {
                println!("{} ranks by {}: bits {bits:016x}", replica.world_size(), replica.engine());
            }
        }
        Case::Steps(options) => steps::run(replica, options)?,
        // A rank that fails ends the job, however it fails.
        Case::Panic => assert!(!last, "on purpose"),
        Case::Hang if last => std::thread::sleep(Duration::from_secs(3600)),
        Case::Leave | Case::Hang => {}
        Case::Late => late::check(replica)?,
        Case::FewAndMany => {
            for difference in differences::few_and_many(replica)? {
                if replica.rank() == 0 {
                    println!("{difference}");
                }
            }
        }
        Case::Length | Case::Type | Case::Order | Case::Shape | Case::Version => differences::show(replica, case)?,
    }
    replica.barrier()
}
