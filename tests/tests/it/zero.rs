//! Training state that is sharded across replicas, compared with state that each of them keeps whole.

use brisk_nn::{Adam, GradScalerConfig, ParameterGroup, Sgd, WeightDecay};
use brisk_replicate::StateBytes;
use brisk_tensor::Precision;
use brisk_train::{
    Binary, BucketSizes, Checkpoint, CheckpointFiles, DataParallelConfig, Error, FeedConfig, FitReport, GradientClip, Outputs,
    RunFolder, Trainable, Trainer, TrainerConfig, Wire, ZeroStage, run_threads,
};

use crate::gpu::{cpu, first_adapter, gpu};
use crate::replicas::{CONFIG, Run, check_alike, check_same_bits, replicated, weights};
use crate::run::{Ready, Setting, into_folder, quiet};

const STAGES: [ZeroStage; 3] = [ZeroStage::Optimizer, ZeroStage::Gradients, ZeroStage::Parameters];

/// Enough layers that buckets are gathered again in the backward pass.
fn deep(config: TrainerConfig) -> Setting {
    Setting { hidden: vec![24, 16, 16, 8, 8], ..Setting { config, ..Setting::default() } }
}

fn two_epochs() -> TrainerConfig {
    TrainerConfig { max_epochs: 2, ..Setting::default().config }
}

fn sharded(zero: ZeroStage) -> DataParallelConfig {
    DataParallelConfig { zero, ..CONFIG }
}

/// Checks for the same weights, losses, scores and scale.
#[track_caller]
fn check_equal(runs: &[Run], expected: &[Run], what: &str) {
    check_same_bits(runs);
    let ((report, weights), (expected_report, expected)) = (&runs[0], &expected[0]);
    assert!(weights == expected, "{what}: other weights");
    assert_eq!(report.history, expected_report.history, "{what}");
    assert_eq!(report.scaler, expected_report.scaler, "{what}");
}

#[test]
fn each_stage_comes_to_the_bits_of_data_parallel() -> Result<(), Error> {
    let setting = deep(two_epochs());
    for n in 1..=4 {
        let whole = replicated(n, CONFIG, || cpu(1), || setting.ready())?;
        for zero in STAGES {
            let runs = replicated(n, sharded(zero), || cpu(1), || setting.ready())?;
            check_equal(&runs, &whole, &format!("{zero:?}, {n} replicas"));
        }
    }
    Ok(())
}

/// The rounding errors that are fed back are those of `Replicated`, too.
#[test]
fn each_stage_sends_16_bits_as_data_parallel_does() -> Result<(), Error> {
    let setting = deep(two_epochs());
    for (n, wire) in [(2, Wire::Bf16), (3, Wire::F16), (4, Wire::Bf16)] {
        let whole = replicated(n, DataParallelConfig { wire, ..CONFIG }, || cpu(1), || setting.ready())?;
        for zero in STAGES {
            let runs = replicated(n, DataParallelConfig { wire, ..sharded(zero) }, || cpu(1), || setting.ready())?;
            check_equal(&runs, &whole, &format!("{zero:?}, {wire:?}, {n} replicas"));
        }
    }
    Ok(())
}

/// One bucket of everything, and buckets larger than a layer.
#[test]
fn buckets_of_any_size_come_to_the_same() -> Result<(), Error> {
    let setting = deep(two_epochs());
    let whole = replicated(3, CONFIG, || cpu(1), || setting.ready())?;
    for bytes in [1, 2048, 1 << 20] {
        for zero in STAGES {
            let buckets = BucketSizes { first_bytes: bytes, bytes };
            let runs = replicated(3, DataParallelConfig { buckets, ..sharded(zero) }, || cpu(1), || setting.ready())?;
            check_equal(&runs, &whole, &format!("{zero:?}, buckets of {bytes} bytes"));
        }
    }
    Ok(())
}

#[test]
fn an_overflow_on_one_replica_skips_the_step_of_all() -> Result<(), Error> {
    let scaler = GradScalerConfig { init_scale: 2.0_f32.powi(24), ..GradScalerConfig::default() };
    let setting = deep(TrainerConfig { precision: Precision::F16, scaler, ..two_epochs() });
    let whole = replicated(3, CONFIG, || cpu(1), || setting.ready())?;
    let n_skipped = whole[0].0.scaler.expect("f16 is scaled").n_skipped;
    assert!(n_skipped > 0, "the first scale is too high for these gradients");
    for zero in STAGES {
        let runs = replicated(3, sharded(zero), || cpu(1), || setting.ready())?;
        check_equal(&runs, &whole, &format!("{zero:?}"));
    }
    Ok(())
}

#[test]
fn gradients_are_clipped_by_the_norm_of_all_of_them() -> Result<(), Error> {
    for (clip, tolerance) in [(GradientClip::Norm(0.05), 1e-5), (GradientClip::Value(0.01), 0.0)] {
        let setting = deep(TrainerConfig { clip: Some(clip), ..two_epochs() });
        let whole = replicated(3, CONFIG, || cpu(1), || setting.ready())?;
        for zero in STAGES {
            let runs = replicated(3, sharded(zero), || cpu(1), || setting.ready())?;
            check_same_bits(&runs);
            check_alike(&whole[0], &runs[0], tolerance);
        }
        let free = replicated(3, CONFIG, || cpu(1), || deep(two_epochs()).ready())?;
        assert!(whole[0].1 != free[0].1, "{clip:?} does something");
    }
    Ok(())
}

#[test]
fn batches_are_accumulated_where_gradients_are_kept() -> Result<(), Error> {
    let setting = deep(TrainerConfig { accumulate: 3, ..two_epochs() });
    let whole = replicated(3, CONFIG, || cpu(1), || setting.ready())?;
    let runs = replicated(3, sharded(ZeroStage::Optimizer), || cpu(1), || setting.ready())?;
    check_equal(&runs, &whole, "whole gradients");
    for zero in [ZeroStage::Gradients, ZeroStage::Parameters] {
        let runs = replicated(3, sharded(zero), || cpu(1), || setting.ready())?;
        check_same_bits(&runs);
        // Every batch is reduced, and the sums are added: a different order.
        check_alike(&whole[0], &runs[0], 1e-5);
    }
    Ok(())
}

/// Decoupled decay, and biases with a separate rate.
#[test]
fn groups_are_cut_as_parameters_are() -> Result<(), Error> {
    let setting = deep(two_epochs());
    let grouped = |zero| {
        run_threads(3, &sharded(zero), |replica| {
            let ready = setting.ready().sharded(replica)?;
            let Ready { model, params, train, valid, .. } = &ready;
            let biases = ParameterGroup::new(params.ids_where(|entry| entry.shape.len() == 1)).lr_factor(3.0).weight_decay(0.0);
            let rest = ParameterGroup::new(params.ids_where(|entry| entry.shape.len() > 1));
            let adam = Adam::new(params).weight_decay(WeightDecay::Decoupled(0.1)).groups(params, &[biases, rest])?;
            let (device, feed) = (cpu(1), FeedConfig::default());
            let trainer = Trainer::new(&device).config(ready.config()).feed(&feed).replicas(replica).prepare(
                Trainable::new(model, params, &adam),
                &Binary::new(),
                train,
                valid,
            )?;
            Ok::<_, Error>((trainer.fit(&mut quiet())?, weights(&device, params, replica)?))
        })
    };
    let whole = grouped(ZeroStage::Replicated)?;
    for zero in STAGES {
        check_equal(&grouped(zero)?, &whole, &format!("{zero:?}"));
    }
    Ok(())
}

#[test]
fn a_gpu_comes_to_the_same() -> Result<(), Error> {
    if gpu().is_none() {
        return Ok(());
    }
    let config = TrainerConfig { max_epochs: 1, ..two_epochs() };
    let setting = Setting { n_rows: 128, n_valid: 64, ..deep(config) };
    let whole = replicated(2, CONFIG, first_adapter, || setting.ready())?;
    for zero in STAGES {
        let runs = replicated(2, sharded(zero), first_adapter, || setting.ready())?;
        check_same_bits(&runs);
        check_alike(&whole[0], &runs[0], 1e-6);
    }
    Ok(())
}

/// The bytes that the formulas give, for 1.1 million parameters.
#[test]
fn each_replica_keeps_its_part_of_the_memory() -> Result<(), Error> {
    let setting = Setting { hidden: vec![256; 18], n_rows: 64, n_valid: 64, ..Setting::default() };
    let bucket_bytes = 1 << 18;
    let buckets = BucketSizes { first_bytes: bucket_bytes, bytes: bucket_bytes };
    let mut whole = None;
    for zero in [ZeroStage::Replicated, ZeroStage::Optimizer, ZeroStage::Gradients, ZeroStage::Parameters] {
        for n in [1, 2, 4] {
            let config = DataParallelConfig { buckets, ..sharded(zero) };
            let memories = run_threads(n, &config, |replica| {
                let ready = setting.ready().sharded(replica)?;
                let Ready { params, .. } = &ready;
                let device = cpu(1);
                let trainer = ready.on_replica(&device, replica)?;
                let memory = trainer.memory()?;
                assert!(device.allocated_bytes() >= memory.state() + memory.transients, "the device has given it");
                Ok::<_, Error>((memory, params.n_trained()))
            })?;
            for (memory, n_trained) in memories {
                let expected = zero.bytes_per_rank(n_trained, n, StateBytes::F32_ADAM);
                let apart = memory.state().abs_diff(expected) as f64 / expected as f64;
                assert!(n_trained >= 1_000_000 && apart <= 0.05, "{zero:?}, {n}: {} bytes, expected {expected}", memory.state());
                if n == 4 {
                    // For the step: a bucket of gradients, and of values this one, the previous one and a transposed copy; for
                    // the evaluation, the last two.
                    let most = whole.get_or_insert(memory.transients).saturating_add(6 * bucket_bytes * 5 / 4);
                    assert!(memory.transients <= most, "{zero:?}: {} bytes of transients, {most} at most", memory.transients);
                }
            }
        }
    }
    Ok(())
}

/// Continues training from the checkpoint in the folder, if there is one, up to an epoch.
fn leg(n: usize, config: DataParallelConfig, max_epochs: usize, folder: &RunFolder) -> Result<Vec<Run>, Error> {
    let setting = deep(TrainerConfig { max_epochs, checkpoint_every: 3, ..Setting::default().config });
    run_threads(n, &config, |replica| {
        let ready = setting.ready().sharded(replica)?;
        let Ready { params, .. } = &ready;
        let device = cpu(1);
        let trainer = ready.on_replica(&device, replica)?;
        // The other replicas need not name a folder.
        let mut outputs = Outputs { folder: (replica.rank() == 0).then(|| folder.clone()), ..quiet() };
        let report = match max_epochs {
            1 => trainer.fit(&mut outputs)?,
            _ => trainer.resume(&trainer.load_checkpoint(folder.last())?, &mut outputs)?,
        };
        Ok::<_, Error>((report, weights(&device, params, replica)?))
    })
}

const FILES: [CheckpointFiles; 2] = [CheckpointFiles::One, CheckpointFiles::OneAReplica];

#[test]
fn a_run_goes_on_in_another_stage_with_the_same_bits() -> Result<(), Error> {
    check_another_stage(Wire::F32)
}

#[test]
fn a_run_in_16_bits_goes_on_in_another_stage_with_the_same_bits() -> Result<(), Error> {
    check_another_stage(Wire::Bf16)
}

fn check_another_stage(wire: Wire) -> Result<(), Error> {
    let stages = [ZeroStage::Parameters, ZeroStage::Optimizer, ZeroStage::Gradients, ZeroStage::Replicated];
    let root = tempfile::tempdir().expect("a folder for a while");
    let (_, folder) = into_folder(root.path());
    let config = DataParallelConfig { wire, ..CONFIG };
    let legs = (1..=4).map(|epochs| leg(2, config, epochs, &folder)).collect::<Result<Vec<_>, _>>()?;
    let whole = &legs[3];
    let expected = Checkpoint::load(folder.last())?;
    for files in FILES {
        let (_, folder) = into_folder(root.path());
        let leg = |(zero, epochs)| leg(2, DataParallelConfig { files, wire, ..sharded(zero) }, epochs, &folder);
        let legs = stages.into_iter().zip(1..).map(leg).collect::<Result<Vec<_>, _>>()?;
        let runs = &legs[3];
        check_same_bits(runs);
        assert!(runs[0].1 == whole[0].1, "{files:?}: other weights");
        if files == CheckpointFiles::One {
            let last = Checkpoint::load(folder.last())?;
            assert!(last.tensors().eq(expected.tensors()), "the same tensors, of the same values");
        }
    }
    Ok(())
}

#[test]
fn a_run_goes_on_with_another_number_of_replicas_and_stage() -> Result<(), Error> {
    let setting = deep(TrainerConfig { max_epochs: 3, ..Setting::default().config });
    let alone = setting.ready().fit(&cpu(2))?;
    for files in FILES {
        let root = tempfile::tempdir().expect("a folder for a while");
        let (_, folder) = into_folder(root.path());
        let config = |zero| DataParallelConfig { files, ..sharded(zero) };
        leg(4, config(ZeroStage::Gradients), 1, &folder)?;
        leg(2, config(ZeroStage::Parameters), 2, &folder)?;
        let runs = leg(3, config(ZeroStage::Replicated), 3, &folder)?;
        check_same_bits(&runs);
        let expected = (FitReport { history: alone.0.history[2..].to_vec(), ..alone.0.clone() }, alone.1.clone());
        check_alike(&expected, &runs[0], 1e-5);
    }
    Ok(())
}

/// A checkpoint of several files, whose index only lists complete files.
#[test]
fn a_checkpoint_of_several_files_is_there_when_its_index_is() -> Result<(), Error> {
    let root = tempfile::tempdir().expect("a folder for a while");
    let config = DataParallelConfig { files: CheckpointFiles::OneAReplica, ..sharded(ZeroStage::Parameters) };
    let setting = deep(two_epochs());
    let folders = run_threads(4, &config, |replica| {
        let ready = setting.ready().sharded(replica)?;
        let device = cpu(1);
        let trainer = ready.on_replica(&device, replica)?;
        // The other replicas have no folder.
        let (mut outputs, folder) = into_folder(&root.path().join(replica.rank().to_string()));
        if replica.rank() > 0 {
            outputs.folder = None;
        }
        trainer.fit(&mut outputs)?;
        Ok::<_, Error>(folder)
    })?;
    let mut names: Vec<String> = std::fs::read_dir(folders[0].path())
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .filter(|name| name.starts_with("last"))
        .collect();
    names.sort();
    let mut expected: Vec<String> = (1..=4).map(|rank| format!("last-2-{rank:05}-of-00004.safetensors")).collect();
    expected.push("last.safetensors.index.json".to_owned());
    assert_eq!(names, expected, "the second epoch's, and no other");

    let last = Checkpoint::load(folders[0].last())?;
    let index = folders[0].path().join("last.safetensors.index.json");
    assert!(last.tensors().eq(Checkpoint::load(&index)?.tensors()), "by either name");
    assert!(last.tensors().any(|(name, ..)| name == "adam.m.layers.0.weight"), "a tensor a parameter");

    // What a run leaves if it ends between writing its files and its index.
    std::fs::write(folders[0].path().join("last-3-00001-of-00004.safetensors"), "half").expect("a file");
    assert!(last.tensors().eq(Checkpoint::load(&index)?.tensors()), "the one before is whole");
    std::fs::remove_file(folders[0].path().join("last-2-00003-of-00004.safetensors")).expect("it is there");
    assert!(matches!(Checkpoint::load(&index), Err(Error::Damaged { .. })), "a missing file is an error");
    Ok(())
}

#[test]
fn what_cannot_be_divided_is_refused() {
    fn refusal(config: DataParallelConfig, check: impl Fn(&brisk_train::DataParallel) -> Result<(), Error> + Sync) -> String {
        run_threads(2, &config, check).expect_err("refused").to_string()
    }
    let setting = Setting::default();
    let whole = refusal(sharded(ZeroStage::Gradients), |replica| {
        let ready = setting.ready();
        let device = cpu(1);
        ready.on_replica(&device, replica).map(|_| ())
    });
    assert_eq!(
        whole,
        "shard: parameters that are not sharded, in ZeRO stage 2, expected the parameters that `DataParallel::shard_parameters` of this replica returned"
    );
    let alone = refusal(sharded(ZeroStage::Gradients), |replica| setting.ready().sharded(replica)?.trainer(&cpu(1)).map(|_| ()));
    assert_eq!(
        alone,
        "bind: parameters that are sharded across replicas, expected parameters that are whole, or replicas (`with_replicas`) that have the rest"
    );
    let before = refusal(sharded(ZeroStage::Parameters), |replica| {
        let ready = setting.ready();
        let sgd = Sgd::new(&ready.params);
        let ready = ready.sharded(replica)?;
        let device = cpu(1);
        let Ready { model, params, train, valid, .. } = &ready;
        Trainer::new(&device)
            .config(ready.config())
            .replicas(replica)
            .prepare(Trainable::new(model, params, &sgd), &Binary::new(), train, valid)
            .map(|_| ())
    });
    assert!(before.contains("make the optimizer for these parameters, after they are sharded"), "{before}");
}
