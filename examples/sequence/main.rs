//! A network for sequences: tokens, positions, attention with a causal mask, in brisk's tensor operations. It learns to predict
//! the next token of sequences whose second half repeats the first, which takes attention to a token half a sequence back.
//!
//! `cargo run --release --example sequence`; `-- --precision f16` trains in mixed precision.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, ensure};
use brisk_examples::command_line::{self, value};
use brisk_examples::print;
use brisk_examples::run::RunOptions;
use brisk_loader::{Order, Rows};
use brisk_nn::tensor::{CrossEntropyOptions, DType, Graph, Persistent, Precision, Tensor, Transpose};
use brisk_nn::{Activation, Adam, Bound, Embedding, LayerNorm, Linear, ParametersBuilder, Philox, Schedule};
use brisk_train::{Feed, FeedConfig, Standardisation, Step};
use clap::Parser;
use serde_json::json;

/// The number of different tokens, and of tokens in a sequence.
const N_TOKENS: usize = 16;
const LENGTH: usize = 16;
/// Columns of a token's vector, and heads of attention.
const WIDTH: usize = 64;
const N_HEADS: usize = 4;

const N_ROWS: u32 = 8192;
const N_TEST: u32 = 512;
const SEED: u64 = 7;
const BATCH_ROWS: usize = 64;

/// Trains a network with attention to predict the next token of a sequence
#[derive(Debug, Parser)]
#[command(name = "sequence")]
struct Options {
    /// Precision of matrix products
    #[arg(long, value_name = "TYPE", help_heading = "Training", default_value = "f32", value_parser = value::precision())]
    precision: Precision,
    /// Passes over the sequences
    #[arg(long, value_name = "N", help_heading = "Training", default_value = "6", allow_negative_numbers = true,
        value_parser = value::whole::<usize>(1..=10_000))]
    epochs: usize,
    #[command(flatten)]
    run: RunOptions,
}

/// A transformer of one layer: Vaswani et al. 2017, arXiv:1706.03762, normalised before each part.
struct Network {
    tokens: Embedding,
    positions: Embedding,
    norms: [LayerNorm; 3],
    /// Queries, keys and values.
    attention: [Linear; 3],
    joined: Linear,
    hidden: [Linear; 2],
    head: Linear,
}

impl Network {
    fn new(p: &mut ParametersBuilder) -> Self {
        let plain = Activation::identity;
        Self {
            tokens: Embedding::new(p, "tokens", N_TOKENS, WIDTH),
            positions: Embedding::new(p, "positions", LENGTH, WIDTH),
            norms: ["norm.attention", "norm.hidden", "norm.head"].map(|name| LayerNorm::new(p, name, WIDTH)),
            attention: ["query", "key", "value"].map(|name| Linear::new(p, name, WIDTH, WIDTH, plain())),
            joined: Linear::new(p, "joined", WIDTH, WIDTH, plain()),
            hidden: [
                Linear::new(p, "hidden.0", WIDTH, 4 * WIDTH, Activation::gelu()),
                Linear::new(p, "hidden.1", 4 * WIDTH, WIDTH, plain()),
            ],
            head: Linear::new(p, "head", WIDTH, N_TOKENS, plain()),
        }
    }

    /// Logits of the next token, `[n * length, N_TOKENS]`, of tokens `[n, length]`, f32.
    fn forward(&self, params: &Bound, tokens: &Tensor) -> Tensor {
        let (graph, n, length) = (tokens.graph(), tokens.shape()[0], tokens.shape()[1]);
        let numbers: Vec<u32> = (0..n).flat_map(|_| 0..length as u32).collect();
        let positions = graph.constant_codes("positions", &numbers, &[n * length]);
        let codes = tokens.reshape(&[n * length]).cast(DType::U32);
        let x = self.tokens.forward(params, &codes, 0) + self.positions.forward(params, &positions, 0);
        let x = &x + self.attend(params, &self.norms[0].forward(params, &x), n);
        let hidden = self.hidden[0].forward(params, &self.norms[1].forward(params, &x));
        let x = &x + self.hidden[1].forward(params, &hidden);
        self.head.forward(params, &self.norms[2].forward(params, &x))
    }

    /// Attention of each position to itself and earlier ones: `x`, `[n * length, WIDTH]`.
    fn attend(&self, params: &Bound, x: &Tensor, n: usize) -> Tensor {
        let (length, width) = (x.shape()[0] / n, WIDTH / N_HEADS);
        let by_head =
            |x: Tensor| x.reshape(&[n, length, N_HEADS, width]).permute(&[0, 2, 1, 3]).reshape(&[n * N_HEADS, length, width]);
        let [q, k, v] = [0, 1, 2].map(|i| by_head(self.attention[i].forward(params, x)));
        let is_later = |i: usize| if i % length > i / length { f32::NEG_INFINITY } else { 0.0 };
        let mask = x.graph().constant("mask", &(0..length * length).map(is_later).collect::<Vec<_>>(), &[length, length]);
        let weights = (q.batched_matmul(&k, Transpose::B) * (width as f32).sqrt().recip() + mask).softmax(2);
        let y = weights.batched_matmul(&v, Transpose::None).reshape(&[n, N_HEADS, length, width]);
        self.joined.forward(params, &y.permute(&[0, 2, 1, 3]).reshape(&[n * length, WIDTH]))
    }
}

fn main() -> ExitCode {
    command_line::run(|options| run(&options).map(|()| ExitCode::SUCCESS))
}

fn run(options: &Options) -> Result<()> {
    let run = options.run.start(&[])?;
    let device = &run.device;
    let mut builder = ParametersBuilder::new();
    let network = Network::new(&mut builder);
    let (params, rows) = (builder.build(SEED), Rows::new(sequences(0..N_ROWS), vec![0.0; N_ROWS as usize], LENGTH)?);
    let feed = Feed::new(device, "sequences", &rows, Order::Shuffled { seed: SEED }, BATCH_ROWS, &FeedConfig::default())?;
    let adam = Adam::new(&params);

    // Each position but the last predicts the next token.
    let step = Step::over(device, &feed, &Standardisation::none(LENGTH))
        .train(&params, &adam, &Schedule::one_cycle(3e-3))
        .precision(options.precision)
        .epochs(options.epochs)
        .record(|batch, params| {
            let n = batch.x.shape()[0];
            let logits = network.forward(&params[0], &batch.x.narrow(1, 0..LENGTH - 1));
            let weights = batch.weights.reshape(&[n, 1]).expand(&[n, LENGTH - 1]).reshape(&[n * (LENGTH - 1)]);
            logits.cross_entropy(&next_tokens(&batch.x), &weights, CrossEntropyOptions::default())
        })?;
    let (started, mut losses) = (Instant::now(), Vec::new());
    for epoch in 0..options.epochs {
        losses.push(step.run_epoch(epoch)?.mean);
        print::result(format_args!("epoch {}: loss {:.4}", epoch + 1, losses[epoch]))?;
    }

    let train_rows_per_s = options.epochs as f64 * f64::from(N_ROWS) / started.elapsed().as_secs_f64();

    let graph = Graph::inference("test");
    let n = N_TEST as usize;
    let tokens = graph.constant("tokens", &sequences(N_ROWS..N_ROWS + N_TEST), &[n, LENGTH]);
    let logits = network.forward(&params.bind(&graph), &tokens.narrow(1, 0..LENGTH - 1));
    let is_correct = logits.correct(&next_tokens(&tokens)).reshape(&[n, LENGTH - 1]);
    // The first half is random.
    let accuracy = Persistent::new("accuracy", DType::F32, 1);
    graph.store(&is_correct.narrow(1, LENGTH / 2 - 1..LENGTH - 1).mean(..), &graph.state(), &accuracy);
    graph.compile(device)?.run(1)?;
    let accuracy = device.read::<f32>(&accuracy)?[0];
    print::result(format_args!("tokens of the second half that are predicted correctly: {accuracy:.4}"))?;
    run.finish([json!({
        "seed": SEED, "rows": N_ROWS, "epochs": options.epochs, "train_rows_per_s": train_rows_per_s,
        "loader_rows_per_s": run.loader(&rows, BATCH_ROWS)?,
        "planned_peak_bytes": Graph::planned_peak_bytes(&[step.graph(), &graph])?, "precision": options.precision.to_string(),
        "train_loss": losses, "test_rows": N_TEST, "test_accuracy": accuracy,
    })])?;
    ensure!(accuracy > 0.9 || options.epochs < 6, "the network has not learned to repeat");
    Ok(())
}

/// The tokens after the first, `[n * (LENGTH - 1)]` u32.
fn next_tokens(tokens: &Tensor) -> Tensor {
    let n = tokens.shape()[0];
    tokens.narrow(1, 1..LENGTH).reshape(&[n * (LENGTH - 1)]).cast(DType::U32)
}

/// Random tokens, twice in a row.
fn sequences(rows: std::ops::Range<u32>) -> Vec<f32> {
    let random = Philox::new(SEED);
    let half = (LENGTH / 2) as u64;
    let token = move |row: u32, i: u64| (random.uniform(row, i % half) * N_TOKENS as f32).floor();
    rows.flat_map(|row| (0..LENGTH as u64).map(move |i| token(row, i))).collect()
}
