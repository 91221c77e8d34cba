//! Runs with the same seed are bit-identical, for any number of threads.

use brisk_train::{Error, TrainerConfig};

use crate::gpu::cpu;
use crate::run::{Setting, quiet};

/// A last batch of 29 of 117 rows, and layers whose sizes are not multiples of anything, one of them wide.
fn setting(seed: u64) -> Setting {
    let default = Setting::default();
    let config = TrainerConfig { batch_rows: 117, max_epochs: 2, ..default.config };
    Setting { n_rows: 731, hidden: vec![33, 300, 7], seed, config, ..default }
}

fn bits(seed: u64, n_threads: usize) -> Result<Vec<u32>, Error> {
    let (_, values) = setting(seed).ready().fit(&cpu(n_threads))?;
    Ok(values.into_iter().map(f32::to_bits).collect())
}

#[test]
fn parameters_do_not_depend_on_the_number_of_threads() -> Result<(), Error> {
    let expected = bits(1, 1)?;
    for n_threads in [2, 3, 7] {
        let found = bits(1, n_threads)?;
        let n_off = found.iter().zip(&expected).filter(|(a, b)| a != b).count();
        assert_eq!(n_off, 0, "{n_off} of {} parameters differ between 1 thread and {n_threads}", expected.len());
    }
    Ok(())
}

#[test]
fn two_runs_of_one_seed_are_one_run_and_another_seed_is_another() -> Result<(), Error> {
    let first = bits(1, 2)?;
    assert!(bits(1, 2)? == first, "the same seed gave other parameters");
    assert!(bits(2, 2)? != first, "another seed gave the same parameters");
    Ok(())
}

#[test]
fn a_trainer_that_is_made_again_starts_from_the_beginning() -> Result<(), Error> {
    let (device, ready) = (cpu(2), setting(3).ready());
    let first = ready.fit(&device)?.1;
    assert!(ready.fit(&device)?.1 == first, "what the run before left in the parameters or in Adam is of no account");
    assert!(setting(3).ready().fit(&device)?.1 == first, "what another model left on the device is of no account");
    Ok(())
}

#[test]
fn a_second_fit_repeats_the_first() -> Result<(), Error> {
    let (device, ready) = (cpu(2), setting(3).ready());
    let trainer = ready.trainer(&device)?;
    let first = trainer.fit(&mut quiet())?;
    assert_eq!(trainer.fit(&mut quiet())?.history, first.history, "neither weights nor Adam's means are kept");
    Ok(())
}
