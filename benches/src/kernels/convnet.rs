//! A small convolutional network on the CPU executor: a training step, and an epoch with the trainer, each compared with PyTorch
//! on the same number of threads.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use anyhow::{Result, bail, ensure};
use brisk_loader::{RowSource as _, Rows, split};
use brisk_nn::tensor::Pool2d;
use brisk_nn::{
    Activation, Adam, BatchNorm, BatchNormConfig, Bias, Conv2d, Conv2dConfig, Flatten, Linear, MaxPool2d, Module, Optimizer,
    ParametersBuilder, Reshape, Sequential, StepInputs,
};
use brisk_program::{Device, Executable};
use brisk_tensor::{CrossEntropyOptions, DType, Graph, Persistent};
use brisk_train::{Callback, Classification, Error, FitReport, Model, RunView, Trainer};

use super::turns::{Turns, seconds};
use crate::options::{Options, Scale};
use crate::peer::Peer;
use crate::row::{Better, Row, Table};

/// Pixels of a side of an image.
const SIDE: usize = 28;
const N_CLASSES: usize = 26;
/// Inputs of the last layer: 32 channels of images of a quarter of the side.
const N_FEATURES: usize = 32 * (SIDE / 4) * (SIDE / 4);
/// Images of an epoch.
const N_IMAGES: usize = 12_480;
/// Steps in which the loss must fall before anything is timed.
const N_CHECKED: usize = 5;

pub(super) fn run(options: &Options) -> Result<Table> {
    let device = Device::cpu()?;
    let (batch, n_steps, n_images) = if options.scale == Scale::Smoke { (4, 1, 12) } else { (128, 20, N_IMAGES) };
    let net = Net::new(&device, batch)?;
    net.check()?;
    let images = images(n_images)?;
    let mut torch = match &options.peers {
        None => None,
        Some(python) => {
            let n_threads = std::thread::available_parallelism()?.get();
            let args = [batch, n_images, n_threads].map(|size| size.to_string());
            Some(Peer::python(python, "benches/peers/convnet.py", &args)?)
        }
    };
    let turns = Turns::of(options);
    let step = format!("training step of a convolutional network, {batch} images of {SIDE} x {SIDE}");
    let mut rows = compared(&turns, &step, &mut || net.seconds(n_steps), torch.as_mut(), &format!("steps {n_steps}"))?;
    let epoch = format!("the same through the trainer, an epoch of {n_images} images");
    rows.extend(compared(&turns, &epoch, &mut || epoch_seconds(&device, batch, &images), torch.as_mut(), "epoch")?);
    Ok(Table { device: device.info().clone(), rows })
}

/// The rows of a case, with PyTorch's figures for both layouts if it takes part.
fn compared(
    turns: &Turns,
    case: &str,
    ours: &mut dyn FnMut() -> Result<f64>,
    torch: Option<&mut Peer>,
    question: &str,
) -> Result<Vec<Row>> {
    let row = |ours, reference: Option<(&str, Vec<f64>)>, target| Row {
        suite: "kernels",
        case: case.to_owned(),
        ours,
        unit: "s",
        reference: reference.map(|(name, figures)| (name.to_owned(), figures)),
        target,
        better: Better::Less,
    };
    let Some(torch) = torch else {
        let [ours] = turns.take([ours])?;
        return Ok(vec![row(ours, None, None)]);
    };
    // One measurement of PyTorch returns both layouts' figures.
    let default_layout = Cell::new(0.0);
    let [ours, channels_last, default_layout] = turns.take([
        ours,
        &mut || {
            let figures = torch.ask(question)?;
            let [channels_last, of_default] = figures[..] else { bail!("PyTorch's side has two figures") };
            default_layout.set(of_default);
            Ok(channels_last)
        },
        &mut || Ok(default_layout.get()),
    ])?;
    Ok(vec![
        row(ours.clone(), Some(("PyTorch, channels last", channels_last)), Some(1.0)),
        row(ours, Some(("PyTorch, default layout", default_layout)), Some(1.0)),
    ])
}

fn images(n_images: usize) -> Result<Rows> {
    let random = brisk_nn::Philox::new(1);
    let pixels = (0..n_images * SIDE * SIDE).map(|i| random.uniform(0, i as u64)).collect();
    let labels = (0..n_images).map(|i| (i % N_CLASSES) as f32).collect();
    Ok(Rows::new(pixels, labels, SIDE * SIDE)?)
}

/// Seconds of each epoch of a training except the first, including validation on one batch.
fn epoch_seconds(device: &Device, batch: usize, images: &Rows) -> Result<f64> {
    const N_EPOCHS: usize = 3;
    let [valid, _] = split(images, 0, [batch as f64 / images.n_rows() as f64, 1.0 - batch as f64 / images.n_rows() as f64])?;
    let mut model = Model::new(0, |params| {
        let mut layers: Vec<Box<dyn Module>> = vec![Box::new(Reshape::new([SIDE, SIDE, 1]))];
        layers.extend(convolutions(params));
        layers.push(Box::new(Flatten));
        layers.push(Box::new(Linear::new(params, "head", N_FEATURES, N_CLASSES, Activation::identity())));
        Sequential(layers)
    });
    let seconds = Rc::new(Cell::new(0.0));
    let stopwatch = Stopwatch { started: Instant::now(), seconds: Rc::clone(&seconds) };
    let report = Trainer::new(device).batch_rows(batch).max_epochs(N_EPOCHS).learning_rate(1e-3).callback(stopwatch).fit(
        &mut model,
        &Classification::of(N_CLASSES),
        images,
        &valid,
    )?;
    ensure!(report.history[2].train_loss() < report.history[0].train_loss(), "the loss does not fall: there is nothing to time");
    Ok(seconds.get() / (N_EPOCHS - 1) as f64)
}

/// Measures the seconds from the start of the second epoch to the end of the fit.
struct Stopwatch {
    started: Instant,
    seconds: Rc<Cell<f64>>,
}

impl Callback for Stopwatch {
    fn on_epoch_start(&mut self, run: &RunView<'_>) -> Result<(), Error> {
        if run.epoch == 2 {
            self.started = Instant::now();
        }
        Ok(())
    }

    fn on_fit_end(&mut self, _: &RunView<'_>, _: &FitReport) -> Result<(), Error> {
        self.seconds.set(self.started.elapsed().as_secs_f64());
        Ok(())
    }
}

/// Two convolutions of 3 by 3, each with batch normalisation, ReLU and max pooling.
fn convolutions(builder: &mut ParametersBuilder) -> Vec<Box<dyn Module>> {
    let mut layers: Vec<Box<dyn Module>> = Vec::new();
    for (i, (n_in, n_out)) in [(1, 16), (16, 32)].into_iter().enumerate() {
        let conv = Conv2dConfig { padding: [1, 1], bias: Bias::None, ..Conv2dConfig::square(n_in, n_out, 3) };
        let norm = BatchNormConfig { activation: Activation::relu(), ..BatchNormConfig::new(n_out) };
        layers.push(Box::new(Conv2d::new(builder, &format!("conv{i}"), &conv)));
        layers.push(Box::new(BatchNorm::new(builder, &format!("norm{i}"), &norm)));
        layers.push(Box::new(MaxPool2d(Pool2d::square(2))));
    }
    layers
}

/// A recorded training step over one batch.
struct Net {
    device: Device,
    /// The losses of the first steps.
    losses: Persistent,
    step: Executable,
}

impl Net {
    fn new(device: &Device, batch: usize) -> Result<Self> {
        let mut builder = ParametersBuilder::new();
        let convolutions = Sequential(convolutions(&mut builder));
        let head = Linear::new(&mut builder, "head", N_FEATURES, N_CLASSES, Activation::identity());
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
        let y = convolutions.forward(&bound, &x).reshape(&[batch, N_FEATURES]);
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

    /// Checks that the network learns the batch; otherwise there is nothing to time.
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
