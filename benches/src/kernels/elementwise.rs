//! Elementwise functions, softmax and layer norm on the CPU executor, compared with a copy and with PyTorch on the same number of
//! threads.

use std::hint::black_box;

use anyhow::{Context, Result};
use brisk_program::Device;
use brisk_program::kernels::expr::Expr;
use brisk_program::kernels::{Affine, Kernel, LayerNorm, Map, Softmax, SoftmaxForm};
use rayon::ThreadPoolBuilder;
use rayon::prelude::*;

use super::case::Case;
use super::turns::{Turns, seconds};
use crate::options::{Options, Scale};
use crate::peer::Peer;
use crate::row::{Better, Row, Table};

/// How many sets of buffers each side has, used in turn. The addresses of buffers change the speed of a pass by up to 1.8 times.
const N_PLACEMENTS: usize = 4;

pub(super) fn run(options: &Options) -> Result<Table> {
    let device = Device::cpu()?;
    let n_threads = std::thread::available_parallelism()?.get();
    // 16 Mi elements do not fit in a cache.
    let (n_rows, n_cols) = if options.scale == Scale::Smoke { (40, 64) } else { (16 << 10, 1 << 10) };
    let n = n_rows * n_cols;
    let pool = ThreadPoolBuilder::new().num_threads(n_threads).build()?;
    let torch = options.peers.as_deref().map(|python| {
        let args = [n_rows, n_cols, n_threads].map(|size| size.to_string());
        Peer::python(python, "benches/peers/elementwise.py", &args)
    });
    let mut torch = torch.transpose()?;
    let turns = Turns::of(options);
    let (from, mut to) = (vec![1.0_f32; n], vec![0.0_f32; n]);
    let share = n.div_ceil(n_threads);
    let mut rows = Vec::new();
    for (name, kernel) in cases(n_rows, n_cols) {
        let placements = (0..N_PLACEMENTS).map(|_| Case::new(&device, kernel(), &turns)).collect::<Result<Vec<_>>>()?;
        let mut placements = placements.iter().cycle();
        let mut ours = || placements.next().context("there is a placement")?.seconds();
        let mut copy = || {
            seconds(1, || {
                pool.install(|| {
                    let (to, from) = (black_box(&mut to).par_chunks_mut(share), black_box(&from).par_chunks(share));
                    to.zip(from).for_each(|(to, from)| to.copy_from_slice(from));
                });
                Ok(())
            })
        };
        let row = |ours, reference: (&str, Vec<f64>), target| Row {
            suite: "kernels",
            case: format!("twin, {name}, {n_rows} x {n_cols}"),
            ours,
            unit: "s",
            reference: Some((reference.0.to_owned(), reference.1)),
            target,
            better: Better::Less,
        };
        // A copy reads and writes once; the chain of six operations should take at most twice its time.
        let of_copy = (name == "six operations").then_some(0.5);
        match &mut torch {
            None => {
                let [ours, copied] = turns.take([&mut ours, &mut copy])?;
                rows.push(row(ours, ("limit:memcpy", copied), of_copy));
            }
            Some(torch) => {
                let mut theirs = || torch.ask(name)?.first().copied().context("PyTorch's side has one figure");
                let [ours, copied, theirs] = turns.take([&mut ours, &mut copy, &mut theirs])?;
                rows.push(row(ours.clone(), ("limit:memcpy", copied), of_copy));
                rows.push(row(ours, ("PyTorch", theirs), Some(1.0)));
            }
        }
    }
    Ok(Table { device: device.info().clone(), rows })
}

type MakeKernel = Box<dyn Fn() -> Box<dyn Kernel>>;

fn cases(n_rows: usize, n_cols: usize) -> Vec<(&'static str, MakeKernel)> {
    let n = n_rows * n_cols;
    let (a, b) = (Expr::input(0), Expr::input(1));
    let map = |expr: Expr| -> MakeKernel { Box::new(move || Box::new(Map::flat(n, expr.clone()))) };
    let softmax = Softmax { n_rows, n_cols, form: SoftmaxForm::Probability };
    let layer_norm = LayerNorm { n_rows, n_cols, eps: 1e-5, affine: Affine::WeightAndBias };
    vec![
        ("add", map(&a + &b)),
        ("multiply", map(&a * &b)),
        ("relu", map(a.relu())),
        ("exp", map(a.exp())),
        ("tanh", map(a.tanh())),
        ("sigmoid", map(a.sigmoid())),
        ("gelu", map(a.gelu())),
        ("six operations", map(((&a * 2.0 + 1.0).relu() - 0.25) * &a / 3.0)),
        ("softmax", Box::new(move || Box::new(softmax))),
        ("layer norm", Box::new(move || Box::new(layer_norm))),
    ]
}
