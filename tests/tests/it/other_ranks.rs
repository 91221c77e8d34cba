//! Replicas with an optimizer of whole matrices, and gradients sent in 16 bits: they train as one device does, and resume on
//! another number of replicas. An optimizer that cannot be sharded is refused before the first step.

use brisk_nn::{Adam, CautiousAdamW, CombinedOptimizer, Momentum, Muon, MuonNorm, Optimizer, ParameterGroup, Parameters};
use brisk_program::Device;
use brisk_train::{
    Binary, BucketSizes, Checkpoint, CheckpointFiles, DataParallel, DataParallelConfig, Error, FitReport, Outputs, RunFolder,
    Trainable, Trainer, TrainerConfig, Wire, ZeroStage, run_threads,
};

use crate::gpu::{cpu, first_adapter, gpu};
use crate::replicas::{CONFIG, Run, check_alike, check_same_bits, weights};
use crate::run::{Ready, Setting, into_folder, quiet};

/// Muon for the matrices, Adam for the biases.
pub(crate) fn muon(params: &Parameters) -> Result<Box<dyn Optimizer>, Error> {
    let matrices = params.ids_where(|entry| entry.shape.len() == 2);
    let biases = ParameterGroup::new(params.ids_where(|entry| entry.shape.len() == 1));
    let (muon, adam) = (Muon::new(params, &matrices)?.lr_factor(3.0), Adam::new(params).groups(params, &[biases])?);
    Ok(Box::new(CombinedOptimizer::new().and(muon).and(adam)))
}

/// Muon that sets the norms of the matrices.
fn muon_of_norms(params: &Parameters) -> Result<Box<dyn Optimizer>, Error> {
    let matrices = params.ids_where(|entry| entry.shape.len() == 2);
    Ok(Box::new(Muon::new(params, &matrices)?.momentum(0.9, Momentum::Heavy).norm(MuonNorm::SqrtRows)))
}

pub(crate) fn adam(params: &Parameters) -> Result<Box<dyn Optimizer>, Error> {
    Ok(Box::new(Adam::new(params)))
}

pub(crate) type Make = fn(&Parameters) -> Result<Box<dyn Optimizer>, Error>;

fn setting(max_epochs: usize) -> Setting {
    Setting {
        hidden: vec![24, 24, 8],
        ..Setting { config: TrainerConfig { max_epochs, ..Setting::default().config }, ..Setting::default() }
    }
}

/// Trains a replica up to an epoch, from the checkpoint if there is one.
fn train(
    replica: &DataParallel,
    make: Make,
    max_epochs: usize,
    from: Option<&Checkpoint>,
    folder: Option<&RunFolder>,
) -> Result<Run, Error> {
    train_on(&cpu(1), replica, &setting(max_epochs), make, from, folder)
}

pub(crate) fn train_on(
    device: &Device,
    replica: &DataParallel,
    setting: &Setting,
    make: Make,
    from: Option<&Checkpoint>,
    folder: Option<&RunFolder>,
) -> Result<Run, Error> {
    let ready = setting.ready();
    let Ready { model, train, valid, .. } = &ready;
    let params = replica.shard_parameters(ready.params.clone())?;
    let optimizer = make(&params)?;
    let trainer = Trainer::new(device).config(ready.config()).replicas(replica);
    let training = trainer.prepare(Trainable::new(model, &params, &*optimizer), &Binary::new(), train, valid)?;
    let mut outputs = Outputs { folder: folder.filter(|_| replica.rank() == 0).cloned(), ..quiet() };
    let report = match from {
        None => training.fit(&mut outputs)?,
        Some(checkpoint) => training.resume(checkpoint, &mut outputs)?,
    };
    Ok((report, weights(device, &params, replica)?))
}

/// An epoch each on two, three and one replicas, in different stages, compared with three epochs on one device, with batches of
/// 64 rows and a last one of 52, so that three replicas have different numbers of rows.
#[track_caller]
fn check(config: DataParallelConfig, make: Make, tolerance: f64) -> Result<(), Error> {
    let (report, expected) = train(DataParallel::single(), make, 3, None, None)?;
    for n in 2..=4 {
        let runs = run_threads(n, &config, |replica| train(replica, make, 3, None, None))?;
        check_same_bits(&runs);
        check_alike(&(report.clone(), expected.clone()), &runs[0], tolerance);
    }
    for files in [CheckpointFiles::One, CheckpointFiles::OneAReplica] {
        let root = tempfile::tempdir().expect("a folder for a while");
        let (_, folder) = into_folder(root.path());
        let legs = [(2, ZeroStage::Parameters), (3, ZeroStage::Replicated), (1, ZeroStage::Gradients)];
        for (epoch, (n, zero)) in legs.into_iter().enumerate() {
            let config = DataParallelConfig { zero, files, ..config };
            let from = (epoch > 0).then(|| Checkpoint::load(folder.last())).transpose()?;
            let runs = run_threads(n, &config, |replica| train(replica, make, epoch + 1, from.as_ref(), Some(&folder)))?;
            check_same_bits(&runs);
            let history = report.history[epoch..=epoch].to_vec();
            // The weights of an epoch are compared by its losses, those of the last also by themselves.
            let weights = if epoch == 2 { expected.clone() } else { runs[0].1.clone() };
            check_alike(&(FitReport { history, ..report.clone() }, weights), &runs[0], tolerance);
        }
    }
    Ok(())
}

#[test]
fn muon_trains_on_any_number_of_replicas_as_on_one_device() -> Result<(), Error> {
    check(CONFIG, muon, 1e-4)
}

#[test]
fn gradients_in_16_bits_come_close_on_any_number_of_replicas() -> Result<(), Error> {
    check(DataParallelConfig { wire: Wire::Bf16, ..CONFIG }, adam, 1e-2)?;
    check(DataParallelConfig { wire: Wire::F16, zero: ZeroStage::Gradients, ..CONFIG }, adam, 1e-2)
}

#[test]
fn muon_comes_close_with_gradients_in_16_bits() -> Result<(), Error> {
    check(DataParallelConfig { wire: Wire::Bf16, zero: ZeroStage::Optimizer, ..CONFIG }, muon, 1e-2)
}

/// Matrices of one shape, whose lengths are no multiples of 64, in buckets of a matrix and in larger ones.
#[track_caller]
fn check_stages(device: fn() -> Device, n: usize, bytes: usize, make: Make, stages: &[ZeroStage]) -> Result<(), Error> {
    let config = TrainerConfig { max_epochs: 1, ..Setting::default().config };
    let setting = Setting { hidden: vec![20, 20, 20, 8], n_rows: 100, n_valid: 64, config, ..Setting::default() };
    let buckets = BucketSizes { first_bytes: bytes, bytes };
    let run = |zero| {
        let config = DataParallelConfig { zero, buckets, ..CONFIG };
        run_threads(n, &config, |replica| train_on(&device(), replica, &setting, make, None, None))
    };
    let whole = run(ZeroStage::Replicated)?;
    for &zero in stages {
        let runs = run(zero)?;
        check_same_bits(&runs);
        assert!(runs[0].1 == whole[0].1, "{zero:?}, {n} replicas: the weights of data parallel");
        assert_eq!(runs[0].0.history, whole[0].0.history, "{zero:?}, {n} replicas");
    }
    Ok(())
}

#[test]
fn sharded_matrices_are_those_of_data_parallel_bit_for_bit() -> Result<(), Error> {
    for (n, bytes) in [(2, 256), (3, 4096), (4, 1 << 20)] {
        check_stages(|| cpu(1), n, bytes, muon, &STAGES)?;
        check_stages(|| cpu(1), n, bytes, muon_of_norms, &STAGES)?;
    }
    Ok(())
}

/// A quarter of the state with its padding, and transients for a bucket at a time instead of for all matrices of a shape.
#[test]
fn sharded_matrices_take_less_memory() -> Result<(), Error> {
    let setting = Setting { hidden: vec![64; 12], n_rows: 64, n_valid: 64, ..Setting::default() };
    let memory = |zero| {
        let buckets = BucketSizes { first_bytes: 1 << 14, bytes: 1 << 14 };
        let of_replica = |replica: &DataParallel| {
            let ready = setting.ready();
            let Ready { model, train, valid, .. } = &ready;
            let params = replica.shard_parameters(ready.params.clone())?;
            let (optimizer, device) = (muon_of_norms(&params)?, cpu(1));
            let trainer = Trainer::new(&device).config(ready.config()).replicas(replica);
            trainer.prepare(Trainable::new(model, &params, &*optimizer), &Binary::new(), train, valid)?.memory()
        };
        run_threads(4, &DataParallelConfig { zero, buckets, ..CONFIG }, of_replica)
    };
    let [whole, sharded] = [memory(ZeroStage::Replicated)?[0], memory(ZeroStage::Parameters)?[0]];
    assert!(sharded.state() * 100 <= whole.state() * 27, "{sharded:?}, {whole:?}");
    assert!(sharded.transients * 4 <= whole.transients, "{sharded:?}, {whole:?}");
    Ok(())
}

#[test]
fn a_gpu_updates_sharded_matrices() -> Result<(), Error> {
    if gpu().is_none() {
        return Ok(());
    }
    check_stages(first_adapter, 2, 4096, muon_of_norms, &[ZeroStage::Parameters])
}

/// The checkpoint without some of its tensors.
fn without(checkpoint: &Checkpoint, is_left_out: impl Fn(&str) -> bool) -> Result<Checkpoint, Error> {
    let mut rest = Checkpoint::new();
    for (name, shape, values) in checkpoint.tensors().filter(|(name, ..)| !is_left_out(name)) {
        rest.insert(name, shape, values.clone())?;
    }
    checkpoint.all_metadata().for_each(|(key, value)| rest.insert_metadata(key, value));
    Ok(rest)
}

fn is_error(name: &str) -> bool {
    name.starts_with("wire.errors.")
}

/// The rounding errors in a checkpoint, added up over `n` replicas.
#[track_caller]
fn summed_errors(checkpoint: &Checkpoint, n: usize) -> Vec<f64> {
    let of_ranks: Vec<&[f32]> = checkpoint
        .tensors()
        .filter(|(name, ..)| is_error(name))
        .map(|(name, shape, _)| checkpoint.f32(name, shape).expect("it is f32"))
        .collect();
    assert_eq!(of_ranks.len(), n, "a tensor for each replica");
    (0..of_ranks[0].len()).map(|i| of_ranks.iter().map(|errors| f64::from(errors[i])).sum()).collect()
}

#[test]
fn rounding_errors_are_in_checkpoints() -> Result<(), Error> {
    for (wire, files) in [(Wire::Bf16, CheckpointFiles::One), (Wire::F16, CheckpointFiles::OneAReplica)] {
        let root = tempfile::tempdir().expect("a folder for a while");
        let (_, folder) = into_folder(root.path());
        let config = DataParallelConfig { wire, files, ..CONFIG };
        let run = |n, max_epochs, from: Option<&Checkpoint>, folder: Option<&RunFolder>| {
            run_threads(n, &config, |replica| train(replica, adam, max_epochs, from, folder))
        };
        let unbroken = run(3, 2, None, None)?;
        run(3, 1, None, Some(&folder))?;
        let from = Checkpoint::load(folder.last())?;
        let resumed = run(3, 2, Some(&from), None)?;
        check_same_bits(&resumed);
        assert!(resumed[0].1 == unbroken[0].1, "{wire:?}: the weights of the unbroken run");
        // As a checkpoint of an earlier version.
        let forgotten = run(3, 2, Some(&without(&from, is_error)?), None)?;
        check_same_bits(&forgotten);
        assert!(forgotten[0].1 != unbroken[0].1, "{wire:?}: rounding errors count");

        let sums = summed_errors(&from, 3);
        assert!(sums.iter().any(|&sum| sum != 0.0), "{wire:?}: some errors");
        for n in [1, 2, 4] {
            // The run is complete, and writes its checkpoint once more.
            run(n, 1, Some(&from), Some(&folder))?;
            let found = summed_errors(&Checkpoint::load(folder.last())?, n);
            let apart = found.iter().zip(&sums).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            let most = sums.iter().fold(0.0, |most, sum| f64::max(most, sum.abs()));
            assert!(apart <= 1e-6 * most, "{wire:?}, {n} replicas: sums differ by {apart}, they are up to {most}");
        }
    }
    Ok(())
}

/// A second call of `fit` repeats the run.
#[test]
fn a_run_starts_without_rounding_errors() -> Result<(), Error> {
    let config = DataParallelConfig { wire: Wire::Bf16, ..CONFIG };
    let histories = run_threads(2, &config, |replica| {
        let ready = setting(1).ready();
        let device = cpu(1);
        let training = ready.on_replica(&device, replica)?;
        let histories = [(); 2].map(|()| training.fit(&mut quiet()).map(|report| report.history));
        histories.into_iter().collect::<Result<Vec<_>, Error>>()
    })?;
    assert!(histories.iter().all(|histories| histories[0] == histories[1]), "{histories:?}");
    Ok(())
}

const STAGES: [ZeroStage; 3] = [ZeroStage::Optimizer, ZeroStage::Gradients, ZeroStage::Parameters];

/// A whole run, of which nothing is left, not even a folder's checkpoint.
#[test]
fn what_cannot_be_sharded_is_refused_before_the_first_step() {
    fn cautious(params: &Parameters) -> Result<Box<dyn Optimizer>, Error> {
        Ok(Box::new(CautiousAdamW::new(params)))
    }
    let check = |config: DataParallelConfig, make: Make, words: &[&str]| {
        let root = tempfile::tempdir().expect("a folder for a while");
        let (_, folder) = into_folder(root.path());
        for n in [1, 2, 3] {
            let error = run_threads(n, &config, |replica| train(replica, make, 1, None, Some(&folder))).expect_err("refused");
            let said = error.to_string();
            assert!(matches!(error, Error::Tensor(_)), "{config:?}, {n} replicas: {said}");
            assert!(words.iter().all(|word| said.contains(word)), "{config:?}, {n} replicas: {said}");
            assert!(!folder.last().exists(), "{config:?}, {n} replicas: a checkpoint");
        }
    };
    for zero in STAGES {
        let config = DataParallelConfig { zero, ..CONFIG };
        check(config, cautious, &["cannot be sharded", "SGD, Adam, AdamW or Muon", "ZeRO stage 0"]);
    }
}
