//! Collectives between threads and between processes, beside copies of the same bytes and the library's own, and behind a backward pass.

mod mpi;
pub(crate) mod network;
mod overlap;
mod threads;
mod together;

use anyhow::{Result, bail};

use crate::options::{Options, Part};
use crate::row::{Row, Table};

pub(crate) use mpi::{RANK, rank, started};
pub(crate) use together::{size, together};

const SUITE: &str = "replicate";

type Measure = fn(&Options) -> Result<Vec<Row>>;

pub(crate) const PARTS: [Part<Measure>; 3] = [("threads", threads::run), ("overlap", overlap::run), ("mpi", mpi::run)];

pub(crate) fn run(options: &Options) -> Result<Vec<Table>> {
    if options.names("mpi") && !options.with_mpi {
        bail!("processes are measured with --peers, which builds with MPI");
    }
    let mut rows = Vec::new();
    // Processes are for whoever has an MPI.
    let is_wanted = |name: &str| options.wants(name) && (options.with_mpi || name != "mpi");
    for (_, measure) in PARTS.iter().filter(|(name, _)| is_wanted(name)) {
        rows.extend(measure(options)?);
    }
    Ok(vec![Table { device: options.device.info().clone(), rows }])
}
