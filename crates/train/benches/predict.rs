//! The time that a `Predictor` takes for one row and for more, of an MLP 784-256-26.
//!
//! `cargo bench -p brisk-train --bench predict`; `BRISK_DEVICE` picks the device, the CPU with one thread by default.
//! `-- --smoke` is tiny. Outputs are compared with those of `Model::predict` before anything is timed. With `BRISK_PYTHON` naming
//! a Python that has PyTorch, the same network is timed there, with one thread, and the ratio is printed.
#![expect(clippy::print_stdout, reason = "a bench reports")]

use std::process::Command;
use std::time::Instant;

use brisk_loader::Rows;
use brisk_nn::tensor::program::{Device, Selection};
use brisk_nn::{Activation, Mlp, MlpConfig};
use brisk_train::{Model, Predictor};

const N_COLS: usize = 784;
const SIZES: [usize; 6] = [1, 16, 100, 256, 1000, 4097];
const MAX_ROWS: usize = 4097;

/// Prints the milliseconds of each size, one per line.
const PEER: &str = "
import json, sys, time, torch
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Linear(256, 26)).eval()
for rows in json.loads(sys.argv[1]):
    repeats = max(10, 100_000 // (rows + 50))
    x, times = torch.rand(rows, 784), []
    with torch.inference_mode():
        for _ in range(repeats):
            start = time.perf_counter()
            model(x)
            times.append(time.perf_counter() - start)
    print(sorted(times)[repeats // 2] * 1e3)
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let is_smoke = std::env::args().any(|arg| arg == "--smoke");
    let device = match Selection::from_env() {
        Selection::Best => Device::builder().selection(Selection::Cpu).threads(1).open()?,
        asked => Device::builder().selection(asked).open()?,
    };
    let sizes = MlpConfig { n_inputs: N_COLS, hidden: vec![256], n_outputs: 26, activation: Activation::relu() };
    let model = Model::new(7, |params| Mlp::new(params, &sizes));
    let predictor = Predictor::new(&device, &model, N_COLS)?;
    let features: Vec<f32> = (0..MAX_ROWS * N_COLS).map(|i| (i as f32 * 0.618).fract()).collect();
    let expected = model.predict(&Rows::new(&features[..], vec![0.0; MAX_ROWS], N_COLS)?)?;
    for n_rows in SIZES {
        let found = predictor.predict(&features[..n_rows * N_COLS], &[])?;
        let is_close = found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-4);
        assert!(is_close && found.len() == n_rows * 26, "{n_rows} rows are predicted as the model does");
    }

    let peers = std::env::var("BRISK_PYTHON").ok().map(|python| peer_ms(&python)).transpose()?;
    println!("784-256-26 on {}, medians", device.info());
    println!("| rows | ms | rows/s | PyTorch, ms | ratio |");
    println!("|---|---|---|---|---|");
    for (i, n_rows) in SIZES.into_iter().enumerate() {
        let n_repeats = if is_smoke { 3 } else { (400_000 / (n_rows + 100)).max(20) };
        let rows = &features[..n_rows * N_COLS];
        let mut times = Vec::with_capacity(n_repeats);
        for _ in 0..n_repeats {
            let start = Instant::now();
            predictor.predict(rows, &[])?;
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
        times.sort_by(f64::total_cmp);
        let ms = times[n_repeats / 2];
        let (peer, ratio) = match peers.as_ref().and_then(|peers| peers.get(i)) {
            None => ("".to_owned(), "".to_owned()),
            Some(peer) => (format!("{peer:.3}"), format!("{:.2}", peer / ms)),
        };
        println!("| {n_rows} | {ms:.3} | {:.0} | {peer} | {ratio} |", n_rows as f64 / ms * 1e3);
    }

    println!("one row at a time by several threads, which share the predictor");
    println!("| threads | median, ms | 99th percentile, ms | ratio | rows/s |");
    println!("|---|---|---|---|---|");
    for n_threads in [1, 2, 4, 8] {
        let [median, last, rows_per_s] =
            by_threads(&predictor, &features[..N_COLS], n_threads, if is_smoke { 3 } else { 20_000 })?;
        println!("| {n_threads} | {median:.3} | {last:.3} | {:.1} | {rows_per_s:.0} |", last / median);
    }
    Ok(())
}

/// The median and the 99th percentile of the milliseconds of a prediction, and the predictions per second of all threads
/// together.
fn by_threads(predictor: &Predictor, row: &[f32], n_threads: usize, n_repeats: usize) -> Result<[f64; 3], brisk_train::Error> {
    let start = Instant::now();
    let of_thread = || -> Result<Vec<f64>, brisk_train::Error> {
        let predicted = |_| {
            let start = Instant::now();
            predictor.predict(row, &[])?;
            Ok(start.elapsed().as_secs_f64() * 1e3)
        };
        (0..n_repeats).map(predicted).collect()
    };
    let times = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..n_threads).map(|_| scope.spawn(of_thread)).collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread that predicts")).collect::<Result<Vec<_>, _>>()
    })?;
    let seconds = start.elapsed().as_secs_f64();
    let mut times = times.concat();
    times.sort_by(f64::total_cmp);
    Ok([times[times.len() / 2], times[times.len() * 99 / 100], times.len() as f64 / seconds])
}

fn peer_ms(python: &str) -> Result<Vec<f64>, Box<dyn std::error::Error>> {
    let output = Command::new(python).args(["-c", PEER, &format!("{SIZES:?}")]).output()?;
    if !output.status.success() {
        return Err(format!("{python}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let text = String::from_utf8(output.stdout)?;
    Ok(text.lines().map(str::parse).collect::<Result<_, _>>()?)
}
