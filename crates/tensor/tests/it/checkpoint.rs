//! Activations that are recomputed in the backward pass.

use brisk_tensor::program::Device;
use brisk_tensor::{
    Activation, BatchNormOptions, DType, Error, Graph, Mode, Persistent, Pool2d, Precision, Reduction, Statistics, Tensor,
};

use crate::random::Random;

const IMAGES: usize = 8;
const CHANNELS: usize = 16;
const BLOCKS: usize = 5;

/// Five blocks of a convolution, batch normalisation, dropout and a skip connection; then pooling and a loss.
struct Net {
    graph: Graph,
    values: Persistent,
    grads: Persistent,
    running: Vec<Persistent>,
    state: Persistent,
}

impl Net {
    fn record(mode: Mode, is_checkpointed: bool, precision: Precision) -> Result<Self, Error> {
        let (n_weights, n_block) = (CHANNELS * 9 * CHANNELS, CHANNELS * 9 * CHANNELS + 256);
        let buffer = |name, len| Persistent::new(name, DType::F32, len);
        let (values, grads) = (buffer("values", BLOCKS * n_block), buffer("grads", BLOCKS * n_block));
        let running: Vec<Persistent> = (0..2 * BLOCKS).map(|_| buffer("running", CHANNELS)).collect();
        let graph = Graph::new("blocks", mode);
        let state = graph.state();
        let x = graph.constant("x", &Random::new(3).floats(IMAGES * 8 * 8 * CHANNELS), &[IMAGES, 8, 8, CHANNELS]);
        let loss = graph.autocast(precision, || {
            let mut x = x.clone();
            for block in 0..BLOCKS {
                let first = block * n_block;
                let weight = graph.parameter(&values, &grads, first..first + n_weights, &[CHANNELS, 3, 3, CHANNELS]);
                let scale = first + n_weights;
                let scale = graph.parameter(&values, &grads, scale..scale + CHANNELS, &[CHANNELS]);
                let [running_mean, running_var] = [0, 1].map(|i| graph.tensor(&running[2 * block + i], &[CHANNELS]));
                let record = || -> Tensor {
                    let y = x.conv2d(&weight, None, [1, 1], [1, 1], Activation::identity());
                    let y = y.batch_norm(&BatchNormOptions {
                        weight: Some(&scale),
                        bias: None,
                        running_mean: &running_mean,
                        running_var: &running_var,
                        statistics: Statistics::Batch { n_groups: 1, momentum: 0.1 },
                        eps: 1e-5,
                        activation: Activation::gelu(),
                    });
                    y.dropout(0.1).add(&x)
                };
                x = if is_checkpointed { graph.checkpoint(record) } else { record() };
            }
            let pooled = x.max_pool2d(&Pool2d::square(2)).global_avg_pool2d();
            let (target, weight) = (
                graph.constant("t", &[0.5; IMAGES * CHANNELS], &[IMAGES, CHANNELS]),
                graph.constant("w", &[1.0; IMAGES], &[IMAGES]),
            );
            pooled.mse_loss(&target, &weight, Reduction::Mean)
        });
        if mode == Mode::Training {
            graph.backward(&loss)?;
        }
        graph.advance(&state);
        Ok(Self { graph, values, grads, running, state })
    }

    /// The bits of the gradients and running statistics after two steps.
    fn run(&self) -> Result<Vec<u32>, Error> {
        let device = Device::cpu()?;
        device.write(&self.values, &Random::new(4).floats(self.values.len()))?;
        device.write(&self.state, &[0_u32; 4])?;
        self.graph.compile(&device)?.run(2)?;
        let buffers = [&self.grads].into_iter().chain(&self.running);
        let read = buffers.map(|buffer| device.read::<f32>(buffer)).collect::<Result<Vec<_>, _>>()?;
        Ok(read.concat().into_iter().map(f32::to_bits).collect())
    }

    fn transient_bytes(&self) -> Result<usize, Error> {
        Ok(self.graph.with_program(|program| program.plan())?.transient_bytes())
    }
}

#[test]
fn gradients_and_running_statistics_are_the_same_bits() -> Result<(), Error> {
    for precision in Precision::ALL {
        let [kept, again] = [false, true].map(|is_checkpointed| Net::record(Mode::Training, is_checkpointed, precision));
        let (kept, again) = (kept?, again?);
        let expected = kept.run()?;
        assert!(expected.iter().filter(|bits| f32::from_bits(**bits) != 0.0).count() > expected.len() / 2, "numbers to compare");
        assert_eq!(expected, again.run()?, "{precision}");
    }
    Ok(())
}

#[test]
fn checkpoints_take_memory_between_training_and_inference() -> Result<(), Error> {
    let bytes = |mode, is_checkpointed| Net::record(mode, is_checkpointed, Precision::F32)?.transient_bytes();
    let (training, again, inference) =
        (bytes(Mode::Training, false)?, bytes(Mode::Training, true)?, bytes(Mode::Inference, true)?);
    assert!(10 * again <= 7 * training, "{again} bytes, {training} without checkpoints");
    assert!(10 * inference <= 4 * training, "{inference} bytes, {training} in training");
    Ok(())
}

#[test]
fn a_segment_in_a_segment_is_part_of_it() -> Result<(), Error> {
    let record = |is_nested: bool| {
        let graph = Graph::training("nested");
        let (values, grads) = (Persistent::new("values", DType::F32, 64), Persistent::new("grads", DType::F32, 64));
        let w = graph.parameter(&values, &grads, 0..64, &[8, 8]);
        let layer = |x: &Tensor| x.linear(&w, None, Activation::tanh());
        let x = graph.constant("x", &[0.5; 32], &[4, 8]);
        let y = graph.checkpoint(|| {
            let hidden = if is_nested { graph.checkpoint(|| layer(&x)) } else { layer(&x) };
            layer(&layer(&hidden))
        });
        graph.backward(&y.mean(..))?;
        Ok::<_, Error>(graph.with_program(|program| program.kernel_names().collect::<Vec<_>>()))
    };
    let (plain, nested) = (record(false)?, record(true)?);
    assert_eq!(plain, nested);
    let forward = plain.iter().filter(|name| **name == "matmul").count();
    assert_eq!(forward, 3 + 2 + 3 + 2, "three layers, two of them again; three gradients of the weight, two of what is below");
    Ok(())
}
