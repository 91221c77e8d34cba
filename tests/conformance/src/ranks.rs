//! The training runs split across the ranks of an MPI job, of which this process is one.

use anyhow::{Context, Result, ensure};
use brisk_replicate::{Mpi, MpiConfig};
use brisk_tensor::Precision;
use brisk_train::DataParallel;

use crate::case::{Case, Outcome};
use crate::form::Form;
use crate::{Options, read_cases, replicas};

/// The number of cases that failed; `None` outside a job.
#[expect(clippy::print_stdout, reason = "the report of rank 0 is its result")]
pub(crate) fn run(options: &Options) -> Result<Option<usize>> {
    if std::env::var_os("OMPI_COMM_WORLD_SIZE").or(std::env::var_os("PMI_SIZE")).is_none() {
        return Ok(None);
    }
    let mut options = Options { ops: vec!["train_mlp".to_owned(), "train_convnet".to_owned()], ..options.clone() };
    options.replicas.clear();
    let cases = read_cases(&options)?;
    let replica = DataParallel::new(Box::new(Mpi::start(MpiConfig::default())?), replicas::CONFIG);
    let (mut n_passed, mut n_failed) = (0, 0);
    for device in &options.devices {
        for case in &cases {
            match judged(case, device, &replica) {
                Outcome::Passed => n_passed += 1,
                Outcome::Failed(why) => {
                    n_failed += 1;
                    println!("FAILED {} on rank {} of {}: {why}", case.file, replica.rank(), replica.world_size());
                }
                Outcome::Unknown => {}
            }
        }
    }
    replica.finish()?;
    if replica.rank() == 0 {
        println!("on {} ranks by {}: {n_passed} passed, {n_failed} failed", replica.world_size(), replica.engine());
    }
    Ok(Some(n_failed))
}

fn judged(case: &Case, device: &brisk_program::Device, replica: &DataParallel) -> Outcome {
    let form = Form::Stored(Precision::F32);
    let twice = || -> Result<_> {
        let outputs = replicas::outputs(case, device, form, replica)?.context("not a training run")?;
        let second = replicas::outputs(case, device, form, replica)?;
        ensure!(second.as_ref() == Some(&outputs), "a second run gave different values");
        let flat: Vec<f32> = outputs.iter().flat_map(|(_, values)| values).copied().collect();
        let all = replica.all_gather(flat.clone())?;
        ensure!(all.chunks_exact(flat.len()).all(|theirs| theirs == flat), "ranks hold other values");
        Ok(outputs)
    };
    twice().map_or_else(|error| Outcome::Failed(format!("{error:#}")), |outputs| case.judge(&outputs, Precision::F32, None))
}
