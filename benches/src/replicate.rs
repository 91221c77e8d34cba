//! Collectives between threads, compared with copies of the same bytes; between processes, compared with MPI's own; and
//! overlapped with a backward pass.

mod mpi;
pub(crate) mod network;
mod overlap;
mod threads;
mod together;

use anyhow::{Result, bail};

use crate::command_line::{ReplicatePart, selected};
use crate::options::Options;
use crate::row::Table;

pub(crate) use mpi::{RANK, rank, started};
pub(crate) use together::{size, together};

const SUITE: &str = "replicate";

pub(crate) fn run(options: &Options, only: &[ReplicatePart]) -> Result<Vec<Table>> {
    if only.contains(&ReplicatePart::Mpi) && !options.with_mpi {
        bail!("`--only mpi` needs --peers, with which `cargo xtask bench` builds this program with MPI");
    }
    let mut rows = Vec::new();
    for part in selected(only) {
        rows.extend(match part {
            ReplicatePart::Threads => threads::run(options)?,
            ReplicatePart::Overlap => overlap::run(options)?,
            ReplicatePart::Mpi if options.with_mpi => mpi::run(options)?,
            ReplicatePart::Mpi => continue,
        });
    }
    Ok(vec![Table { device: options.device.info().clone(), rows }])
}
