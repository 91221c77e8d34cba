//! Burn's side of `cargo xtask bench kernels`: reads a line of words, writes a JSON object, so that the two sides alternate.
//!
//! `burn-peer cpu|gpu TABLE` opens the adapter of that kind and prints which it is. TABLE is a file of `f32`: rows of a label and
//! 28 features. Then
//!
//! - `matmul N`: seconds of one `[N, N]` product of the first numbers of the table by the next, where the table is repeated as
//!   needed, with its sum and its trace;
//! - `train BATCH`: rows per second of one epoch of 28-256-256-256-1 with Adam over the whole batches of the table, with its
//!   first and last loss.
//!
//! The conditions favour Burn: all data is on the device before the clock starts, already divided into batches; kernels are
//! compiled, fused and tuned in steps that are not timed; and the device is awaited once, at the end of a turn.

use std::io::{self, BufRead};
use std::time::Instant;

use burn::module::Module;
use burn::nn::loss::{BinaryCrossEntropyLoss, BinaryCrossEntropyLossConfig};
use burn::nn::{Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams, ModuleOptimizer};
use burn::tensor::activation::relu;
use burn::tensor::{Device, DeviceKind, Int, Tensor, TensorData};

const N_COLS: usize = 28;
/// Steps that are not timed, at the start of each turn.
const N_WARM_STEPS: usize = 3;
/// The minimum duration of a turn of products.
const TURN_S: f64 = 0.3;

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (kind, table) = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["cpu", table] => (DeviceKind::Cpu, table),
        ["gpu", table] => (DeviceKind::DefaultDevice, table),
        _ => return Err("burn-peer cpu|gpu TABLE, and questions on standard input".into()),
    };
    let table: Vec<f32> =
        std::fs::read(table)?.chunks_exact(4).map(|bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])).collect();
    let (device, setup) = Device::wgpu_options().device_kind(kind).init_with_setup()?;
    let info = setup.adapter.get_info();
    println!(r#"{{"burn": "0.22.1", "adapter": {:?}, "backend": "{}"}}"#, info.name, info.backend);
    let (mut products, mut training) = (None, None);
    for line in io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let answer = match words[..] {
            ["matmul", n] => {
                let n = n.parse()?;
                let kept = products.take().filter(|products: &Products| products.n == n);
                products.insert(kept.map_or_else(|| Products::new(&device, &table, n), Ok)?).turn()?
            }
            ["train", batch] => {
                let batch = batch.parse()?;
                let kept = training.take().filter(|training: &Training| training.batch == batch);
                training.insert(kept.map_or_else(|| Training::new(&device, &table, batch), Ok)?).turn()?
            }
            _ => return Err(format!("no question `{line}`").into()),
        };
        println!("{answer}");
    }
    Ok(())
}

/// Two matrices on the device.
struct Products {
    device: Device,
    n: usize,
    a: Tensor<2>,
    b: Tensor<2>,
    n_runs: usize,
}

impl Products {
    /// Uploads the operands and lets Burn tune the product.
    fn new(device: &Device, table: &[f32], n: usize) -> Result<Self, Error> {
        let mut numbers = table.iter().cycle().copied();
        let mut operand = || Tensor::from_data(TensorData::new(numbers.by_ref().take(n * n).collect(), [n, n]), device);
        let (a, b) = (operand(), operand());
        let mut products = Self { device: device.clone(), n, a, b, n_runs: 1 };
        products.run()?;
        let (_, seconds) = products.run()?;
        products.n_runs = ((TURN_S / seconds) as usize).clamp(1, 1000);
        products.run()?;
        Ok(products)
    }

    /// The last product, and the seconds of each.
    fn run(&self) -> Result<(Tensor<2>, f64), Error> {
        self.device.sync()?;
        let started = Instant::now();
        let mut y = self.a.clone().matmul(self.b.clone());
        for _ in 1..self.n_runs {
            y = self.a.clone().matmul(self.b.clone());
        }
        self.device.sync()?;
        Ok((y, started.elapsed().as_secs_f64() / self.n_runs as f64))
    }

    fn turn(&self) -> Result<String, Error> {
        let (y, seconds) = self.run()?;
        let y = y.into_data().try_to_vec::<f32>().map_err(|error| format!("{error:?}"))?;
        let sum: f64 = y.iter().map(|&y| f64::from(y)).sum();
        let trace: f64 = y.iter().step_by(self.n + 1).map(|&y| f64::from(y)).sum();
        Ok(format!(r#"{{"seconds": {seconds}, "sum": {sum}, "trace": {trace}}}"#))
    }
}

/// 28-256-256-256-1 with ReLU; one logit.
#[derive(Module, Debug)]
struct Mlp {
    layers: Vec<Linear>,
}

impl Mlp {
    fn new(device: &Device) -> Self {
        let widths = [N_COLS, 256, 256, 256, 1];
        Self { layers: widths.windows(2).map(|pair| LinearConfig::new(pair[0], pair[1]).init(device)).collect() }
    }

    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let (last, hidden) = self.layers.split_last().expect("there are four layers");
        last.forward(hidden.iter().fold(x, |x, layer| relu(layer.forward(x))))
    }
}

/// The table on the device, in batches.
struct Training {
    device: Device,
    batch: usize,
    batches: Vec<(Tensor<2>, Tensor<2, Int>)>,
    loss: BinaryCrossEntropyLoss,
}

impl Training {
    fn new(device: &Device, table: &[f32], batch: usize) -> Result<Self, Error> {
        let device = device.clone().autodiff();
        let batches = table
            .chunks_exact(batch * (1 + N_COLS))
            .map(|rows| {
                let rows = rows.chunks_exact(1 + N_COLS);
                let labels: Vec<i32> = rows.clone().map(|row| row[0] as i32).collect();
                let x: Vec<f32> = rows.flat_map(|row| &row[1..]).copied().collect();
                let x = Tensor::from_data(TensorData::new(x, [batch, N_COLS]), &device);
                (x, Tensor::from_data(TensorData::new(labels, [batch, 1]), &device))
            })
            .collect();
        let loss = BinaryCrossEntropyLossConfig::new().with_logits(true).init(&device);
        let training = Self { device, batch, batches, loss };
        training.turn()?;
        Ok(training)
    }

    /// One epoch from new weights.
    fn turn(&self) -> Result<String, Error> {
        let mut model = Mlp::new(&self.device);
        let mut optimizer = AdamConfig::new().with_epsilon(1e-8).init();
        for batch in self.batches.iter().cycle().take(N_WARM_STEPS) {
            (model, _) = self.step(model, &mut optimizer, batch);
        }
        self.device.sync()?;
        let mut losses = Vec::with_capacity(self.batches.len());
        let started = Instant::now();
        for batch in &self.batches {
            let (stepped, loss) = self.step(model, &mut optimizer, batch);
            losses.push(loss);
            model = stepped;
        }
        self.device.sync()?;
        let rows_per_s = (self.batches.len() * self.batch) as f64 / started.elapsed().as_secs_f64();
        let losses = Tensor::cat(losses, 0).into_data().try_to_vec::<f32>().map_err(|error| format!("{error:?}"))?;
        let (first, last) = (losses[0], losses[losses.len() - 1]);
        Ok(format!(r#"{{"rows_per_s": {rows_per_s}, "first_loss": {first}, "last_loss": {last}}}"#))
    }

    fn step(&self, model: Mlp, optimizer: &mut ModuleOptimizer, (x, labels): &(Tensor<2>, Tensor<2, Int>)) -> (Mlp, Tensor<1>) {
        let loss = self.loss.forward(model.forward(x.clone()), labels.clone());
        let grads = GradientsParams::from_grads(loss.backward(), &model);
        (optimizer.step(1e-3, model, grads), loss.inner())
    }
}
