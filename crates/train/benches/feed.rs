//! The cost of streaming rows: the upload only, the steps only over resident rows, and a streamed epoch, measured in alternation.
//!
//! `cargo bench -p brisk-train`; `BRISK_DEVICE` picks the device. Without it, the CPU with one thread is used, so that a core is
//! left to the threads that gather. `-- --smoke` is tiny. The losses of both variants are compared before anything is timed. A
//! source that waits stands in for a disk: it delivers rows about as fast as the steps consume them, which is where overlap is
//! hardest.
#![expect(clippy::print_stdout, reason = "a bench reports")]

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use brisk_loader::{Layout, Order, RowBuffers, RowSelection, RowSource, Rows};
use brisk_nn::tensor::program::{Device, Executable, Selection};
use brisk_nn::tensor::{DType, Graph, Persistent, Reduction};
use brisk_nn::{Activation, Adam, Mlp, MlpConfig, Optimizer, Parameters, ParametersBuilder, StepInputs};
use brisk_train::{CountFrom, Error, Feed, FeedChoice, FeedConfig, OpenFeed, Standardisation};

const N_COLS: usize = 28;
const BATCH_ROWS: usize = 1024;
const ORDER: Order = Order::Shuffled { seed: 1 };

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let is_smoke = std::env::args().any(|arg| arg == "--smoke");
    let (n_rows, n_rounds) = if is_smoke { (5_000, 1) } else { (400_000, 5) };
    let device = match Selection::from_env() {
        Selection::Best => Device::builder().selection(Selection::Cpu).threads(1).open()?,
        asked => Device::builder().selection(asked).open()?,
    };
    println!(
        "{n_rows} shuffled rows of {N_COLS} f32 in batches of {BATCH_ROWS}, on {}; medians of {n_rounds} epochs",
        device.info()
    );
    println!("chunks of at most {} KiB", chunk_bytes(n_rows) >> 10);
    println!();
    println!(
        "| model, source | upload only, ms | steps only, ms | streamed, ms | relative to the slower of the two | training rows/s |"
    );
    println!("|---|---|---|---|---|---|");
    let features = (0..n_rows * N_COLS).map(|i| (i as f32 * 0.618).fract() - 0.5).collect::<Vec<_>>();
    let labels = features.chunks(N_COLS).map(|row| f32::from(row[0] + row[1] > 0.0)).collect::<Vec<_>>();
    let rows = Rows::new(features, labels, N_COLS)?;
    for hidden in [16, 64, 256] {
        let steps = measure(&device, &format!("28-{hidden}-1, memory"), hidden, &rows, n_rounds)?;
        let waiting = Waiting { rows: &rows, row_time: steps.div_f64(n_rows as f64) };
        measure(&device, &format!("28-{hidden}-1, waiting"), hidden, &waiting, n_rounds)?;
    }
    Ok(())
}

/// About forty chunks per epoch.
fn chunk_bytes(n_rows: usize) -> usize {
    n_rows * (N_COLS + 1) * size_of::<f32>() / 40
}

/// Rows in memory that come no faster than a row in so much time.
struct Waiting<'a> {
    rows: &'a Rows,
    row_time: Duration,
}

impl RowSource for Waiting<'_> {
    type Feature = f32;
    type Error = brisk_loader::Error;

    fn layout(&self) -> Layout {
        self.rows.layout()
    }

    fn gather(&self, rows: RowSelection<'_>, into: RowBuffers<'_, f32>) -> Result<(), Self::Error> {
        let (started, n) = (Instant::now(), rows.len());
        self.rows.gather(rows, into)?;
        std::thread::sleep(self.row_time.mul_f64(n as f64).saturating_sub(started.elapsed()));
        Ok(())
    }
}

/// A training step over one feed.
struct Run<'a> {
    feed: Feed<'a>,
    params: Parameters,
    inputs: StepInputs,
    losses: Persistent,
    step: Executable,
}

impl<'a> Run<'a> {
    fn new<S: RowSource<Feature = f32>>(
        device: &Device,
        choice: FeedChoice,
        hidden: usize,
        source: &'a S,
    ) -> Result<Self, Error> {
        let config = FeedConfig { choice, chunk_bytes: chunk_bytes(source.n_rows()), ..FeedConfig::default() };
        let feed = Feed::new(device, "train", source, ORDER, BATCH_ROWS, &config)?;
        let mut builder = ParametersBuilder::new();
        let sizes = MlpConfig { n_inputs: N_COLS, hidden: vec![hidden], n_outputs: 1, activation: Activation::relu() };
        let model = Mlp::new(&mut builder, &sizes);
        let params = builder.build(1);
        let scale = Standardisation::new(vec![0.0; N_COLS], vec![1.0; N_COLS]);
        scale.write(device)?;
        let inputs = StepInputs { lr: Persistent::new("lr", DType::F32, 1), state: Graph::state_buffer() };
        device.write(&inputs.lr, &[1e-3_f32])?;
        let losses = Persistent::new("losses", DType::F32, feed.n_batches());
        let graph = Graph::training("step");
        let batch = feed.record(&graph, &scale, &inputs.state);
        let logits = batch.forward(&model, &params.bind(&graph));
        let loss = logits.bce_with_logits(&batch.labels, &batch.weights, Reduction::Mean, 1.0);
        graph.backward(&loss)?;
        Adam::new(&params).record(&graph, &params, &inputs);
        graph.store(&loss, &inputs.state, &losses);
        graph.advance(&inputs.state);
        let step = graph.compile(device)?;
        params.write_initial(device)?;
        Ok(Self { feed, params, inputs, losses, step })
    }

    /// An epoch from the initial weights, optionally without its steps.
    fn epoch(&self, open: &mut OpenFeed<'_>, epoch: u32, steps: Steps) -> Result<Duration, Error> {
        let device = self.step.device();
        self.params.write_initial(device)?;
        device.write(&self.inputs.state, &[0_u32; 4])?;
        device.wait()?;
        let started = Instant::now();
        open.for_each_range(epoch, CountFrom::Epoch, usize::MAX, |range| {
            if steps == Steps::Run {
                self.step.run(range.n_batches)?;
            }
            Ok(ControlFlow::Continue(()))
        })?;
        device.wait()?;
        Ok(started.elapsed())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Steps {
    Run,
    LeaveOut,
}

/// Prints a line, and returns the time of the steps without streaming.
fn measure<S: RowSource<Feature = f32>>(
    device: &Device,
    case: &str,
    hidden: usize,
    source: &S,
    n_rounds: usize,
) -> Result<Duration, Error> {
    let resident = Run::new(device, FeedChoice::Resident, hidden, source)?;
    let streamed = Run::new(device, FeedChoice::Streamed, hidden, source)?;
    let [mut upload, mut steps, mut total] = [const { Vec::new() }; 3];
    streamed.feed.open(device, |stream| {
        resident.feed.open(device, |table| {
            // Includes the first round, in which memory is touched for the first time.
            resident.epoch(table, 0, Steps::Run)?;
            streamed.epoch(stream, 0, Steps::Run)?;
            let losses = |run: &Run<'_>| device.read::<f32>(&run.losses);
            let furthest = losses(&resident)?.iter().zip(&losses(&streamed)?).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(furthest <= 1e-4, "{case}: a loss of the streamed epoch is {furthest} off");
            for round in 1..=n_rounds as u32 {
                upload.push(streamed.epoch(stream, round, Steps::LeaveOut)?);
                steps.push(resident.epoch(table, round, Steps::Run)?);
                total.push(streamed.epoch(stream, round, Steps::Run)?);
            }
            Ok(())
        })
    })?;
    let [upload, steps, total] = [upload, steps, total].map(|mut times| {
        times.sort();
        times[times.len() / 2]
    });
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let over = total.as_secs_f64() / upload.max(steps).as_secs_f64();
    let rate = source.n_rows() as f64 / total.as_secs_f64();
    println!("| {case} | {:.0} | {:.0} | {:.0} | {over:.2}× | {rate:.0} |", ms(upload), ms(steps), ms(total));
    Ok(steps)
}
