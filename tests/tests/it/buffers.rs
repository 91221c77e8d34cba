//! Tensors that are not trained belong to a run as well: running statistics move with it, are in its checkpoints, and are reset.

use brisk_nn::{Activation, Adam, BatchNorm, BatchNormConfig, Linear, ParametersBuilder, Sequential};
use brisk_train::{Binary, Checkpoint, Error, Learner, Trainer, TrainerConfig};

use crate::gpu::cpu;
use crate::run::{N_COLS, Setting, into_folder, rows};

#[test]
fn running_statistics_are_in_the_checkpoint_and_start_over() -> Result<(), Error> {
    let mut builder = ParametersBuilder::new();
    let norm = BatchNormConfig { activation: Activation::celu(0.3), ..BatchNormConfig::new(16) };
    let model = Sequential(vec![
        Box::new(Linear::without_bias(&mut builder, "first", N_COLS, 16, Activation::identity())),
        Box::new(BatchNorm::new(&mut builder, "norm", &norm)),
        Box::new(Linear::new(&mut builder, "last", 16, 1, Activation::identity())),
    ]);
    let params = builder.build(1);
    let (adam, train, valid, device) = (Adam::new(&params), rows(0, 640), rows(640, 200), cpu(2));
    let config = TrainerConfig { max_epochs: 2, ..Setting::default().config };
    let trainer =
        Trainer::new(&device).config(config).prepare(Learner::new(&model, &params, &adam), &Binary::new(), &train, &valid)?;
    let mut found = Vec::new();
    for _ in 0..2 {
        let root = tempfile::tempdir().expect("a folder for a while");
        let (mut outputs, folder) = into_folder(root.path());
        trainer.fit(&mut outputs)?;
        let last = Checkpoint::load(folder.last())?;
        for buffer in params.buffers() {
            let kept = last.f32(buffer.name(), buffer.shape())?;
            assert_eq!(kept, device.read::<f32>(buffer.values())?, "`{}` is what the device has", buffer.name());
            let start = if buffer.name() == "norm.running_mean" { 0.0 } else { 1.0 };
            assert!(kept.iter().all(|&value| value != start && value.is_finite()), "`{}` has moved: {kept:?}", buffer.name());
            found.push(kept.to_vec());
        }
    }
    assert_eq!(found[..2], found[2..], "a second fit starts from the beginning");
    Ok(())
}
