//! Replicas as processes.

use std::time::Instant;

use anyhow::Result;

use crate::options::Options;
use crate::run::Finished;

/// Trains as one of `n_ranks` processes; rank 0 returns the results.
#[cfg(feature = "mpi")]
pub(crate) fn run(options: &Options, n_ranks: usize, started: Instant) -> Result<Option<Finished>> {
    use anyhow::bail;
    use brisk_examples::elsewhere::say_what_ranks_read;
    use brisk_examples::print;
    use brisk_replicate::{Mpi, MpiConfig};
    use brisk_train::{DataParallel, Error};

    use crate::texts::gather;

    let config = MpiConfig::default();
    let mpi = Mpi::start(MpiConfig { timeout: options.timeout().unwrap_or(config.timeout), ..config })?;
    let replica = DataParallel::new(Box::new(mpi), options.parallel());
    if replica.world_size() != n_ranks {
        let found = replica.world_size();
        replica.finish()?;
        bail!("{n_ranks} processes were started, and MPI knows of {found}; start them by its own mpirun, or srun --mpi=pmix");
    }
    let trained = train(&replica, options, started);
    // Otherwise the ranks may have stopped at different places.
    if trained.as_ref().err().is_none_or(|error| matches!(error.downcast_ref(), Some(Error::NoEpoch { .. }))) {
        say_what_ranks_read(replica.rank() == 0, |mine| Ok(gather(&replica, mine)?))?;
    }
    let error = match trained {
        Ok(finished) => {
            replica.finish()?;
            return Ok(Some(finished).filter(|_| replica.rank() == 0));
        }
        // All ranks have stopped after the same step, without an error.
        Err(error) if matches!(error.downcast_ref(), Some(Error::NoEpoch { .. })) => {
            replica.finish()?;
            return if replica.rank() == 0 { Err(error) } else { Ok(None) };
        }
        Err(error) => in_words_of_options(error),
    };
    // An error from which a restart may recover has a separate exit status.
    let of_replicas = match error.downcast_ref::<Error>() {
        Some(Error::Replica(error)) => Some(error),
        _ => error.downcast_ref(),
    };
    if of_replicas.is_some_and(brisk_replicate::Error::restart_helps) {
        replica.fail(&error.to_string());
    }
    print::error(&error);
    std::process::exit(1)
}

/// Rank 0 opens the rows first, since they may have to be simulated or imported; then the others do.
#[cfg(feature = "mpi")]
fn train(replica: &brisk_train::DataParallel, options: &Options, started: Instant) -> Result<Finished> {
    use brisk_examples::higgs::Data;
    use brisk_examples::print;
    use brisk_train::StopFlag;

    let stop = StopFlag::on_signals()?;
    let is_first = replica.rank() == 0;
    let meet = || replica.agree(Vec::new());
    if !is_first {
        meet()?;
    }
    let data = Data::open_held(&options.run, &options.held(), &stop, &|said| {
        if is_first {
            print::note(said)
        }
    })?;
    if is_first {
        meet()?;
    }
    crate::run::train(replica, &data, options, &stop, started)
}

/// A setting in which the ranks differ, by the name of its option.
#[cfg(feature = "mpi")]
fn in_words_of_options(error: anyhow::Error) -> anyhow::Error {
    use brisk_replicate::Error::Disagreement;
    use brisk_train::Error::Replica;

    match error.downcast_ref() {
        Some(Replica(Disagreement { what, rank, mine, other, theirs })) => {
            let what = option_of(what).map_or_else(|| what.clone(), str::to_owned);
            Replica(Disagreement { what, rank: *rank, mine: mine.clone(), other: *other, theirs: theirs.clone() }).into()
        }
        _ => error,
    }
}

/// The option for the setting in which replicas differ, if there is one.
#[cfg(feature = "mpi")]
fn option_of(setting: &str) -> Option<&'static str> {
    Some(match setting.trim_matches('`').split('.').next()? {
        "batch_rows" => "--batch",
        "accumulate" => "--accumulate",
        "precision" => "--precision",
        "clip" => "--clip",
        "max_epochs" => "--epochs",
        "early_stopping" => "--patience",
        "seed" => "--seed",
        "schedule" => "--lr",
        "checkpoint_every" => "--checkpoint-every",
        "wire" => "--wire",
        "zero" => "--zero",
        "buckets" => "--bucket-mb",
        "files" => "--checkpoint-files",
        "stream" => "--stream",
        "store of checkpoints" => "--checkpoints-to",
        _ => return None,
    })
}

/// Without MPI support, a process that a launcher started together with others is refused: each would train by itself.
#[cfg(not(feature = "mpi"))]
pub(crate) fn run(_: &Options, n_ranks: usize, _: Instant) -> Result<Option<Finished>> {
    anyhow::bail!("{n_ranks} processes were started, and this one was built without MPI; build it with `--features mpi`")
}
