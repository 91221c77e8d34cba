//! Who started this process: a person, or a launcher that started others beside it.

use anyhow::{Result, bail};

/// Variables by which a launcher says how many processes it has started, those of MPI before that of Slurm, below which MPI's may run.
const SIZES: [&str; 3] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"];

/// How many processes this is one of; `None` where it was started alone.
///
/// `variable` is one of the environment.
pub(crate) fn n_ranks(variable: impl Fn(&str) -> Option<String>) -> Result<Option<usize>> {
    for name in SIZES {
        match variable(name).map(|word| (word.trim().parse(), word)) {
            None => {}
            // A shell within a job of Slurm is a step of one process.
            Some((Ok(1), _)) if name.starts_with("SLURM") && variable("PMIX_RANK").is_none() => {}
            Some((Ok(n @ 1..), _)) => return Ok(Some(n)),
            Some((_, word)) => bail!("{name} is `{word}`, expected how many processes were started"),
        }
    }
    // Whoever they are, this process is not alone.
    if variable("PMIX_RANK").is_some() {
        bail!("PMIX_RANK is set, and nothing says how many processes were started; start them by mpirun, or srun --mpi=pmix");
    }
    Ok(None)
}

/// Whether as many replicas were asked for as there are processes.
pub(crate) fn check_replicas(asked: Option<usize>, n_ranks: usize) -> Result<()> {
    match asked {
        Some(n) if n != n_ranks => {
            bail!("--replicas is {n}, and {n_ranks} processes were started, each of which is one; leave it away")
        }
        _ => Ok(()),
    }
}
