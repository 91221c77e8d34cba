use crate::higgs_table::{N_COLS, higgs_table};
use anyhow::Result;
use brisk_kernels::STATE_LEN;
use brisk_loader::{Order, Rows};
use brisk_nn::tensor::Pool2d;
use brisk_nn::{
    Activation, Adam, Adapters, BatchNorm, BatchNormConfig, Bias, Bound, Conv2d, Conv2dConfig, GlobalMaxPool2d, GradScaler,
    GradScalerConfig, Linear, MaxPool2d, MeanOf, Mlp, MlpConfig, Module, NumberEmbedding, Parameters, ParametersBuilder,
    Sequential, StepInputs, TabM, TabMConfig,
};
use brisk_program::{Device, Executable, Plan, Profile};
use brisk_tensor::{DType, Graph, Mode, Persistent, Precision, Reduction, Tensor};
use brisk_train::{ResidentRows, Standardisation};

use crate::options::{Options, Scale};

/// Rows of two classes, and the network that learns to distinguish them.
pub(super) struct Task {
    pub(super) name: &'static str,
    /// The task of `benches/peers/amp.py`, if there is one.
    pub(super) peer: Option<&'static str>,
    /// Of a row.
    shape: &'static [usize],
    pub(super) batch: usize,
    n_epochs: usize,
    lr: f32,
    build: Build,
    /// Features and labels.
    rows: fn(n_rows: usize, seed: u64) -> (Vec<f32>, Vec<f32>),
    n_train: usize,
    n_test: usize,
}

type Build = fn(&mut ParametersBuilder) -> Box<dyn Module>;

/// Pixels per side.
const SIDE: usize = 16;
const N_CHANNELS: usize = 3;

/// The network of HIGGS on a table of its shape; and four convolutions on images of stripes with noise, classified by the
/// direction of the stripes.
pub(super) fn tasks(options: &Options) -> [Task; 2] {
    let some = |full: usize, smoke: usize| if options.scale == Scale::Smoke { smoke } else { full };
    let mlp = Task {
        name: "28-256-256-256-1",
        peer: Some("mlp"),
        shape: &[N_COLS],
        batch: some(1024, 64),
        n_epochs: some(4, 1),
        lr: 1e-3,
        build: mlp,
        rows: higgs_table,
        n_train: some(100_000, 128),
        n_test: some(50_000, 128),
    };
    let convnet = Task {
        name: "convnet",
        peer: Some("convnet"),
        shape: &[SIDE, SIDE, N_CHANNELS],
        batch: some(128, 16),
        n_epochs: some(4, 1),
        lr: 2e-3,
        build: convnet,
        rows: |n_rows, seed| (stripes(n_rows, seed), labels(n_rows)),
        n_train: some(4096, 32),
        n_test: some(4096, 32),
    };
    [mlp, convnet]
}

/// The network of HIGGS in batches of 8192.
pub(super) fn large_batches(options: &Options) -> Task {
    let [mlp, _] = tasks(options);
    Task { batch: if options.scale == Scale::Smoke { 128 } else { 8192 }, ..mlp }
}

/// An ensemble for tables, at the sizes of the paper: 32 members with three shared layers of 512 units, of which each multiplies
/// the rows by scales of its own.
pub(super) fn tab_m(options: &Options) -> Task {
    let [mlp, _] = tasks(options);
    let is_smoke = options.scale == Scale::Smoke;
    let (name, build): (_, Build) = match is_smoke {
        true => ("TabM-mini, 4 x 28-16-16-1", |params| tab_m_of(params, 4, vec![16; 2])),
        false => ("TabM-mini, 32 x 28-512-512-512-1", |params| tab_m_of(params, 32, vec![512; 3])),
    };
    let (batch, n_train) = if is_smoke { (32, 128) } else { (256, 2560) };
    Task { name, peer: Some("tab_m"), build, batch, n_train, ..mlp }
}

fn tab_m_of(params: &mut ParametersBuilder, n_members: usize, hidden: Vec<usize>) -> Box<dyn Module> {
    let config = TabMConfig {
        n_inputs: N_COLS,
        numbers: NumberEmbedding::Plain,
        n_members,
        adapters: Adapters::First,
        hidden,
        dropout: 0.1,
        n_outputs: 1,
        mean_of: MeanOf::Sigmoids,
    };
    Box::new(TabM::new(params, &config, &[]))
}

/// Layers so wide that products dominate the time: for hardware, whose tensor cores compute in 16 bits.
pub(super) fn wide(options: &Options) -> Task {
    let [mlp, _] = tasks(options);
    let is_smoke = options.scale == Scale::Smoke;
    let (name, build): (_, Build) = match is_smoke {
        true => ("28-64-64-64-1", |params| mlp_of(params, 64)),
        false => ("28-4096-4096-4096-1", |params| mlp_of(params, 4096)),
    };
    Task { name, peer: None, build, batch: if is_smoke { 64 } else { 4096 }, n_train: if is_smoke { 128 } else { 40_960 }, ..mlp }
}

fn mlp(params: &mut ParametersBuilder) -> Box<dyn Module> {
    mlp_of(params, 256)
}

fn mlp_of(params: &mut ParametersBuilder, n_units: usize) -> Box<dyn Module> {
    let config = MlpConfig { n_inputs: N_COLS, hidden: vec![n_units; 3], n_outputs: 1, activation: Activation::relu() };
    Box::new(Mlp::new(params, &config))
}

/// Two blocks of two convolutions, each with batch normalisation and CELU; each block is followed by pooling by two.
fn convnet(params: &mut ParametersBuilder) -> Box<dyn Module> {
    let mut layers: Vec<Box<dyn Module>> = Vec::new();
    for (i, (n_in, n_out)) in [(N_CHANNELS, 16), (16, 16), (16, 32), (32, 32)].into_iter().enumerate() {
        let conv = Conv2dConfig { padding: [1, 1], bias: Bias::None, ..Conv2dConfig::square(n_in, n_out, 3) };
        let norm = BatchNormConfig { activation: Activation::celu(0.3), ..BatchNormConfig::new(n_out) };
        layers.push(Box::new(Conv2d::new(params, &format!("conv{i}"), &conv)));
        layers.push(Box::new(BatchNorm::new(params, &format!("norm{i}"), &norm)));
        if i % 2 == 1 {
            layers.push(Box::new(MaxPool2d(Pool2d::square(2))));
        }
    }
    layers.push(Box::new(GlobalMaxPool2d));
    layers.push(Box::new(Linear::without_bias(params, "head", 32, 1, Activation::identity())));
    Box::new(Sequential(layers))
}

fn labels(n_rows: usize) -> Vec<f32> {
    (0..n_rows).map(|row| (row % 2) as f32).collect()
}

/// Waves in one of two directions, by the row's label, with any phase, and noise twice as strong.
fn stripes(n_rows: usize, seed: u64) -> Vec<f32> {
    let random = brisk_nn::Philox::new(seed);
    let n_pixels = SIDE * SIDE * N_CHANNELS;
    let pixel = |at: usize| {
        let (row, pixel) = (at / n_pixels, at % n_pixels / N_CHANNELS);
        let (x, y) = ((pixel % SIDE) as f32, (pixel / SIDE) as f32);
        let phase = std::f32::consts::TAU * random.uniform(1, row as u64);
        let along = if row % 2 == 0 { x + y } else { x - y };
        // The sum of three is close enough to normal.
        let noise: f32 = (0..3).map(|draw| random.uniform(2, (3 * at + draw) as u64) - 0.5).sum();
        (0.7 * along + phase).sin() + 6.0 * noise
    };
    (0..n_rows * n_pixels).map(pixel).collect()
}

/// A training step and the scores of the model it trains, recorded in a precision.
pub(super) struct Run<'a> {
    task: &'a Task,
    device: Device,
    params: Parameters,
    scaler: GradScaler,
    inputs: StepInputs,
    train: ResidentRows,
    test: ResidentRows,
    step: Executable,
    scores: Executable,
    stored: Persistent,
    test_labels: Vec<f32>,
    seed: u64,
}

impl<'a> Run<'a> {
    pub(super) fn new(task: &'a Task, device: &Device, precision: Precision, seed: u64) -> Result<Self> {
        let mut builder = ParametersBuilder::new();
        let model = (task.build)(&mut builder);
        let params = builder.build(seed);
        let n_cols = task.shape.iter().product();
        let upload = |name, (features, labels)| -> Result<ResidentRows> {
            Ok(ResidentRows::upload(device, name, &Rows::new(features, labels, n_cols)?)?)
        };
        let test_rows = (task.rows)(task.n_test, 2 * seed + 1);
        let test_labels = test_rows.1.clone();
        let (train, test) = (upload("train", (task.rows)(task.n_train, 2 * seed))?, upload("test", test_rows)?);
        let inputs = StepInputs { lr: Persistent::new("lr", DType::F32, 1), state: Graph::state_buffer() };
        device.write(&inputs.lr, &[task.lr])?;

        let graph = Graph::training("step");
        graph.share_state(&inputs.state);
        let recorded = task.record(&graph, &train, model.as_ref(), &params, &inputs, precision, device)?;
        let step = graph.compile(device)?;
        let graph = Graph::inference("scores");
        let logits = task.record(&graph, &test, model.as_ref(), &params, &inputs, precision, device)?.logits;
        let stored = Persistent::new("scores", DType::F32, test.n_batches(task.batch) * task.batch);
        graph.store(&logits, &inputs.state, &stored);
        graph.advance(&inputs.state);
        let scores = graph.compile(device)?;
        let (device, scaler) = (device.clone(), recorded.scaler);
        Ok(Self { task, device, params, scaler, inputs, train, test, step, scores, stored, test_labels, seed })
    }

    /// Trains from the start; returns the scores of the test rows, and their labels.
    pub(super) fn trained(&self) -> Result<(Vec<f32>, &[f32])> {
        self.params.write_initial(&self.device)?;
        self.scaler.write_initial(&self.device)?;
        let mut n_steps = 0;
        for epoch in 0..self.task.n_epochs {
            self.epoch(epoch as u32, n_steps)?;
            n_steps += self.train.n_batches(self.task.batch) as u32;
        }
        let Self { device, test, .. } = self;
        test.set_order(device, Order::Sequential, 0, self.task.batch)?;
        device.write(&self.inputs.state, &[0_u32; STATE_LEN])?;
        self.scores.run(test.n_batches(self.task.batch))?;
        let mut scores: Vec<f32> = device.read(&self.stored)?;
        scores.truncate(self.test_labels.len());
        Ok((scores, &self.test_labels))
    }

    /// One epoch over shuffled rows, after this many steps.
    pub(super) fn epoch(&self, epoch: u32, n_steps: u32) -> Result<()> {
        self.at_start_of(epoch, n_steps)?;
        self.step.run(self.train.n_batches(self.task.batch))?;
        Ok(self.device.wait()?)
    }

    fn at_start_of(&self, epoch: u32, n_steps: u32) -> Result<()> {
        let order = Order::Shuffled { seed: self.seed };
        self.train.set_order(&self.device, order, epoch, self.task.batch)?;
        let mut state = [0; STATE_LEN];
        state[1] = n_steps;
        Ok(self.device.write(&self.inputs.state, &state)?)
    }

    /// Of at most `n_steps` steps of the second epoch: after its last batch there are no rows, and so no numbers.
    pub(super) fn profile(&self, n_steps: usize) -> Result<Profile> {
        self.start()?;
        self.epoch(0, 0)?;
        let n_batches = self.train.n_batches(self.task.batch);
        self.at_start_of(1, n_batches as u32)?;
        Ok(self.step.profile(n_steps.min(n_batches))?)
    }

    pub(super) fn start(&self) -> Result<()> {
        self.params.write_initial(&self.device)?;
        Ok(self.scaler.write_initial(&self.device)?)
    }

    pub(super) fn n_rows(&self) -> usize {
        self.train.n_rows()
    }
}

struct Recorded {
    logits: Tensor,
    scaler: GradScaler,
}

impl Task {
    /// The batch, the forward pass, and in training all that follows.
    #[expect(clippy::too_many_arguments, reason = "a step consists of all of these")]
    fn record(
        &self,
        graph: &Graph,
        rows: &ResidentRows,
        model: &dyn Module,
        params: &Parameters,
        inputs: &StepInputs,
        precision: Precision,
        device: &Device,
    ) -> Result<Recorded> {
        let scale = Standardisation::new(vec![0.0; rows.n_cols()], vec![1.0; rows.n_cols()]);
        scale.write(device)?;
        let batch = rows.record(graph, &scale, &inputs.state, self.batch);
        self.record_over(graph, (&batch.x, &batch.labels, &batch.weights), model, &params.bind(graph), params, inputs, precision)
    }

    #[expect(clippy::too_many_arguments, reason = "a step consists of all of these")]
    fn record_over(
        &self,
        graph: &Graph,
        (x, labels, weights): (&Tensor, &Tensor, &Tensor),
        model: &dyn Module,
        bound: &Bound,
        params: &Parameters,
        inputs: &StepInputs,
        precision: Precision,
    ) -> Result<Recorded> {
        let x = x.reshape(&[&[x.shape()[0]], self.shape].concat());
        let enabled = precision == Precision::F16;
        let scaler = GradScaler::new(GradScalerConfig { enabled, ..GradScalerConfig::default() })?;
        let (logits, loss) = graph.autocast(precision, || {
            let logits = model.forward(bound, &x);
            let logits = logits.reshape(&[logits.n_elements()]);
            // Those of all members of an ensemble, one member after the other.
            let n_rows = labels.n_elements();
            let n_members = logits.n_elements() / n_rows;
            let of_members = |of_rows: &Tensor| match n_members {
                1 => of_rows.clone(),
                _ => of_rows.reshape(&[1, n_rows]).expand(&[n_members, n_rows]).reshape(&[n_members * n_rows]),
            };
            let loss = logits.bce_with_logits(&of_members(labels), &of_members(weights), Reduction::Mean, 1.0);
            (logits, loss)
        });
        if graph.mode() == Mode::Training {
            scaler.backward(&loss)?;
            scaler.step(graph, &Adam::new(params), params, inputs);
            scaler.update(graph);
            graph.advance(&inputs.state);
        }
        Ok(Recorded { logits: logits.cast(DType::F32), scaler })
    }

    /// The memory of a step over `batch` rows, without the rows themselves, planned without a device.
    pub(super) fn plan(&self, batch: usize, mode: Mode, precision: Precision) -> Result<Plan> {
        let mut builder = ParametersBuilder::new();
        let model = (self.build)(&mut builder);
        let params = builder.build(0);
        let inputs = StepInputs { lr: Persistent::new("lr", DType::F32, 1), state: Graph::state_buffer() };
        let graph = Graph::new("step", mode);
        let shape = [&[batch], self.shape].concat();
        let buffer = |name, shape: &[usize]| graph.tensor(&Persistent::new(name, DType::F32, shape.iter().product()), shape);
        let (x, labels, weights) = (buffer("x", &shape), buffer("labels", &[batch]), buffer("weights", &[batch]));
        let recorded =
            self.record_over(&graph, (&x, &labels, &weights), model.as_ref(), &params.bind(&graph), &params, &inputs, precision)?;
        let stored = Persistent::new("scores", DType::F32, batch);
        graph.store(&recorded.logits, &inputs.state, &stored);
        Ok(graph.with_program(|program| program.plan())?)
    }
}
