//! A training step of a small convolutional network on the CPU executor, compared with PyTorch on as many threads.

use std::cell::Cell;

use anyhow::{Result, bail, ensure};
use brisk_nn::tensor::Pool2d;
use brisk_nn::{
    Activation, Adam, BatchNorm, BatchNormConfig, Bias, Conv2d, Conv2dConfig, Linear, MaxPool2d, Module, Optimizer,
    ParametersBuilder, Sequential, StepInputs,
};
use brisk_program::{Device, Executable};
use brisk_tensor::{CrossEntropyOptions, DType, Graph, Persistent};

use super::turns::{Turns, seconds};
use crate::options::{Options, Scale};
use crate::peer::Peer;
use crate::row::{Better, Row, Table};

/// Pixels of a side of an image.
const SIDE: usize = 28;
const N_CLASSES: usize = 26;
/// Steps in which the loss must fall before anything is timed.
const N_CHECKED: usize = 5;

pub(super) fn run(options: &Options) -> Result<Table> {
    let device = Device::cpu()?;
    let (batch, n_steps) = if options.scale == Scale::Smoke { (4, 1) } else { (128, 20) };
    let net = Net::new(&device, batch)?;
    net.check()?;
    let mut ours = || net.seconds(n_steps);
    let turns = Turns::of(options);
    let row = |ours, reference: Option<(&str, Vec<f64>)>, target| Row {
        suite: "kernels",
        case: format!("training step of a convolutional network, {batch} images of {SIDE} x {SIDE}"),
        ours,
        unit: "s",
        reference: reference.map(|(name, figures)| (name.to_owned(), figures)),
        target,
        better: Better::Less,
    };
    let rows = match &options.peers {
        None => {
            let [ours] = turns.take([&mut ours])?;
            vec![row(ours, None, None)]
        }
        Some(python) => {
            let n_threads = std::thread::available_parallelism()?.get();
            let args = [batch, n_threads].map(|size| size.to_string());
            let mut torch = Peer::python(python, "benches/peers/convnet.py", &args)?;
            // One measurement of PyTorch returns both layouts' figures.
            let default_layout = Cell::new(0.0);
            let [ours, channels_last, default_layout] = turns.take([
                &mut ours,
                &mut || {
                    let figures = torch.ask(&n_steps.to_string())?;
                    let [channels_last, of_default] = figures[..] else { bail!("PyTorch's side has two figures") };
                    default_layout.set(of_default);
                    Ok(channels_last)
                },
                &mut || Ok(default_layout.get()),
            ])?;
            vec![
                row(ours.clone(), Some(("PyTorch, channels last", channels_last)), Some(1.0)),
                row(ours, Some(("PyTorch, default layout", default_layout)), Some(1.0)),
            ]
        }
    };
    Ok(Table { device: device.info().clone(), rows })
}

/// A recorded training step over one batch.
struct Net {
    device: Device,
    /// Those of the first steps.
    losses: Persistent,
    step: Executable,
}

impl Net {
    fn new(device: &Device, batch: usize) -> Result<Self> {
        let mut builder = ParametersBuilder::new();
        let mut layers: Vec<Box<dyn Module>> = Vec::new();
        for (i, (n_in, n_out)) in [(1, 16), (16, 32)].into_iter().enumerate() {
            let conv = Conv2dConfig { padding: [1, 1], bias: Bias::None, ..Conv2dConfig::square(n_in, n_out, 3) };
            let norm = BatchNormConfig { activation: Activation::relu(), ..BatchNormConfig::new(n_out) };
            layers.push(Box::new(Conv2d::new(&mut builder, &format!("conv{i}"), &conv)));
            layers.push(Box::new(BatchNorm::new(&mut builder, &format!("norm{i}"), &norm)));
            layers.push(Box::new(MaxPool2d(Pool2d::square(2))));
        }
        let convolutions = Sequential(layers);
        let n_features = 32 * (SIDE / 4) * (SIDE / 4);
        let head = Linear::new(&mut builder, "head", n_features, N_CLASSES, Activation::identity());
        let params = builder.build(0);

        let graph = Graph::training("convnet");
        let buffer = |name, dtype, shape: &[usize]| {
            let buffer = Persistent::new(name, dtype, shape.iter().product());
            (graph.tensor(&buffer, shape), buffer)
        };
        let (x, x_buffer) = buffer("x", DType::F32, &[batch, SIDE, SIDE, 1]);
        let (labels, label_buffer) = buffer("labels", DType::U32, &[batch]);
        let (weights, weight_buffer) = buffer("weights", DType::F32, &[batch]);
        let inputs = StepInputs { lr: Persistent::new("lr", DType::F32, 1), state: Graph::state_buffer() };
        let bound = params.bind(&graph);
        let y = convolutions.forward(&bound, &x).reshape(&[batch, n_features]);
        let loss = head.forward(&bound, &y).cross_entropy(&labels, &weights, CrossEntropyOptions::default());
        graph.backward(&loss)?;
        Adam::new(&params).record(&graph, &params, &inputs);
        let losses = Persistent::new("losses", DType::F32, N_CHECKED);
        graph.store(&loss, &inputs.state, &losses);
        graph.advance(&inputs.state);
        let step = graph.compile(device)?;

        let random = brisk_nn::Philox::new(1);
        let pixels: Vec<f32> = (0..batch * SIDE * SIDE).map(|i| random.uniform(0, i as u64)).collect();
        let classes: Vec<u32> = (0..batch).map(|i| (i % N_CLASSES) as u32).collect();
        device.write(&x_buffer, &pixels)?;
        device.write(&label_buffer, &classes)?;
        device.write(&weight_buffer, &vec![1.0_f32; batch])?;
        device.write(&inputs.lr, &[1e-3_f32])?;
        params.write_initial(device)?;
        Ok(Self { device: device.clone(), losses, step })
    }

    /// The network learns the batch, or there is nothing to time.
    fn check(&self) -> Result<()> {
        self.step.run(N_CHECKED)?;
        let losses: Vec<f32> = self.device.read(&self.losses)?;
        ensure!(losses.last() < losses.first(), "the losses of the first steps are {losses:?}: there is nothing to time");
        Ok(())
    }

    fn seconds(&self, n_steps: usize) -> Result<f64> {
        seconds(n_steps, || {
            self.step.run(n_steps)?;
            Ok(self.device.wait()?)
        })
    }
}
