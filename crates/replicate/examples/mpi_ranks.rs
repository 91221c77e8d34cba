//! Replicas as processes: sums over all ranks, and what becomes of a rank that fails.
//!
//! `cargo build -p brisk-replicate --features mpi --example mpi_ranks`, then
//! `mpirun -n 4 --bind-to none target/debug/examples/mpi_ranks [sum|mismatch|panic|leave|hang]`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it is a program")]

use std::process::ExitCode;
use std::time::Duration;

use brisk_replicate::{Collective, CollectiveExt, Error, Mpi, MpiConfig, ReduceOp, SumOrder};

#[path = "../tests/it/sums.rs"]
mod sums;

fn main() -> ExitCode {
    let case = std::env::args().nth(1).unwrap_or_else(|| "sum".to_owned());
    match run(&case) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(case: &str) -> Result<(), Error> {
    let order = if case == "sum-by-engine" { SumOrder::Engine } else { SumOrder::Fixed };
    let mut replica = Mpi::start(MpiConfig { order, timeout: Duration::from_secs(if case == "hang" { 1 } else { 60 }) })?;
    let last = replica.rank() + 1 == replica.world_size();
    match case {
        "sum" | "sum-by-engine" => {
            let bits = sums::bits(&mut replica)?;
            if replica.rank() == 0 {
                println!("{} ranks by {}: bits {bits:016x}", replica.world_size(), replica.engine());
            }
        }
        // Ranks that do different things: every one is told.
        "mismatch" => {
            let told = replica.all_reduce(&mut vec![1.0_f32; 10 + usize::from(last)], ReduceOp::Sum);
            println!("rank {}: {}", replica.rank(), told.expect_err("lengths differ"));
        }
        // One that fails ends the job, however it fails.
        "panic" => assert!(!last, "on purpose"),
        "leave" if last => return Ok(()),
        "hang" if last => std::thread::sleep(Duration::from_secs(3600)),
        "leave" | "hang" => {}
        other => replica.fail(&format!("there is no case `{other}`; there are sum, mismatch, panic, leave, hang")),
    }
    replica.barrier()?;
    Box::new(replica).finish()
}
