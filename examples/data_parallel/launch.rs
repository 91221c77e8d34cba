//! Whether this process was started by a launcher, together with others.

use anyhow::{Result, bail};

/// Environment variables with the number of processes that a launcher has started; MPI's come first, since mpirun may run within
/// a step of Slurm.
const SIZES: [&str; 3] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"];

/// The number of processes that were started together with this one, `None` for a single process.
///
/// `variable` reads a variable of the environment.
pub(crate) fn n_ranks(variable: impl Fn(&str) -> Option<String>) -> Result<Option<usize>> {
    for name in SIZES {
        match variable(name).map(|word| (word.trim().parse(), word)) {
            None => {}
            // A shell in a Slurm job is a step with one process.
            Some((Ok(1), _)) if name.starts_with("SLURM") && variable("PMIX_RANK").is_none() => {}
            Some((Ok(n @ 1..), _)) => return Ok(Some(n)),
            Some((_, word)) => bail!("{name} is `{word}`, expected the number of processes"),
        }
    }
    // There are other processes, whose number is unknown.
    if variable("PMIX_RANK").is_some() {
        bail!(
            "PMIX_RANK is set, but no variable says how many processes were started; start them with mpirun, or srun --mpi=pmix"
        );
    }
    Ok(None)
}

/// Checks that `--replicas`, if given, is the number of processes.
pub(crate) fn check_replicas(asked: Option<usize>, n_ranks: usize) -> Result<()> {
    match asked {
        Some(n) if n != n_ranks => {
            bail!("--replicas is {n}, but {n_ranks} processes were started, and each is one replica; leave out --replicas")
        }
        _ => Ok(()),
    }
}
