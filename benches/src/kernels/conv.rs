//! A convolution and its gradients on the CPU executor, compared with PyTorch on the same number of threads.

use std::cell::Cell;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use brisk_program::Device;
use brisk_program::kernels::{
    Activation, Conv2d, Conv2dGradInput, Conv2dGradWeight, ConvShape, Epilogue, Images, MapReduce, Reducer, Window,
};

use super::case::Case;
use super::turns::Turns;
use crate::options::{Options, Scale};
use crate::peer::Peer;
use crate::row::{Better, Row, Table};

pub(super) fn run(options: &Options) -> Result<Table> {
    let device = Device::cpu()?;
    let x = match options.scale {
        Scale::Full => Images { n_images: 64, height: 32, width: 32, n_channels: 64 },
        Scale::Smoke => Images { n_images: 2, height: 6, width: 5, n_channels: 64 },
    };
    let shape = ConvShape::dense(x, 64, Window::square(3, 1));
    let turns = Turns::of(options);
    let forward = Case::new(&device, Conv2d { shape, epilogue: Epilogue::bias(&Activation::identity()) }, &turns)?;
    let grad_input = Case::new(&device, Conv2dGradInput { shape, epilogue: Epilogue::none() }, &turns)?;
    let grad_weight = Case::new(&device, Conv2dGradWeight { shape }, &turns)?;
    let grad_bias = Case::new(&device, MapReduce::of(Reducer::Sum, &[shape.y().n_pixels(), shape.n_out], &[0]), &turns)?;
    check(&shape, &forward, &grad_input, &grad_weight)?;

    let mut ours = || forward.seconds();
    let mut ours_back = || Ok(grad_input.seconds()? + grad_weight.seconds()? + grad_bias.seconds()?);
    let what = format!("convolution 3x3, 64 to 64, {} images of {} x {}", x.n_images, x.height, x.width);
    let line = |direction: &str, ours, theirs: Option<Vec<f64>>| Row {
        suite: "kernels",
        case: format!("twin, {what}, {direction}"),
        ours,
        unit: "s",
        target: theirs.is_some().then_some(0.8),
        reference: theirs.map(|theirs| ("PyTorch, the faster layout".to_owned(), theirs)),
        better: Better::Less,
    };
    let rows = match &options.peers {
        None => {
            let [ours, back] = turns.take([&mut ours, &mut ours_back])?;
            vec![line("forward", ours, None), line("backward", back, None)]
        }
        Some(python) => {
            let mut torch = Torch::start(python, &shape)?;
            // One measurement of PyTorch returns both figures.
            let back = Cell::new(0.0);
            let [ours, theirs, ours_back, theirs_back] = turns.take([
                &mut ours,
                &mut || {
                    let [forward, backward] = torch.seconds()?;
                    back.set(backward);
                    Ok(forward)
                },
                &mut ours_back,
                &mut || Ok(back.get()),
            ])?;
            vec![line("forward", ours, Some(theirs)), line("backward", ours_back, Some(theirs_back))]
        }
    };
    Ok(Table { device: device.info().clone(), rows })
}

/// PyTorch's side, which waits for its turns.
struct Torch {
    peer: Peer,
    question: String,
}

impl Torch {
    fn start(python: &Path, shape: &ConvShape) -> Result<Self> {
        let n_threads = std::thread::available_parallelism()?.get();
        let Images { n_images, height, width, n_channels } = shape.x;
        let sizes = [n_threads, n_images, height, width, n_channels, shape.n_out, 3, 1, 1];
        let peer = Peer::python(python, "crates/kernels/benches/conv2d.py", &[])?;
        Ok(Self { peer, question: sizes.map(|size| size.to_string()).join(" ") })
    }

    /// The times of the forward and the backward pass.
    fn seconds(&mut self) -> Result<[f64; 2]> {
        let ms = self.peer.ask(&self.question)?;
        let ms: [f64; 2] = ms.try_into().ok().context("PyTorch's side has two figures")?;
        Ok(ms.map(|ms| 1e-3 * ms))
    }
}

/// Checks some elements of the results against their definitions, in `f64`.
fn check(shape: &ConvShape, forward: &Case, grad_input: &Case, grad_weight: &Case) -> Result<()> {
    let Images { n_images, height, width, n_channels } = shape.x;
    let n_out = shape.n_out;
    // With a stride of 1 and this padding, results have the size of the images.
    let at = |image: usize, i: usize, j: usize| (image * height + i) * width + j;
    let taps = || (0..3).flat_map(|u| (0..3).map(move |v| (u, v)));
    // The pixel that the window at `i` reads with tap `u`.
    let reach = |i: usize, u: usize, n: usize| (i + u).checked_sub(1).filter(|&h| h < n);
    let product = |a: f32, b: f32| f64::from(a) * f64::from(b);

    let [x, w, bias, y] = read(forward, ["x", "weight", "bias", "y"])?;
    some(&y, "y", |index| {
        let (o, pixel) = (index % n_out, index / n_out);
        let (image, i, j) = (pixel / width / height, pixel / width % height, pixel % width);
        let inside = taps().filter_map(|(u, v)| Some((u, v, reach(i, u, height)?, reach(j, v, width)?)));
        let sum: f64 = inside
            .flat_map(|(u, v, h, l)| (0..n_channels).map(move |c| (u, v, h, l, c)))
            .map(|(u, v, h, l, c)| product(w[((o * 3 + u) * 3 + v) * n_channels + c], x[at(image, h, l) * n_channels + c]))
            .sum();
        sum + f64::from(bias[o])
    })?;

    let [grad_y, w, grad_x] = read(grad_input, ["grad_y", "weight", "grad_x"])?;
    some(&grad_x, "grad_x", |index| {
        let (c, pixel) = (index % n_channels, index / n_channels);
        let (image, h, l) = (pixel / width / height, pixel / width % height, pixel % width);
        // The windows that read this pixel: with the taps reversed.
        let inside = taps().filter_map(|(u, v)| Some((u, v, reach(h, 2 - u, height)?, reach(l, 2 - v, width)?)));
        inside
            .flat_map(|(u, v, i, j)| (0..n_out).map(move |o| (u, v, i, j, o)))
            .map(|(u, v, i, j, o)| product(w[((o * 3 + u) * 3 + v) * n_channels + c], grad_y[at(image, i, j) * n_out + o]))
            .sum()
    })?;

    let [grad_y, x, grad_weight] = read(grad_weight, ["grad_y", "x", "grad_weight"])?;
    some(&grad_weight, "grad_weight", |index| {
        let (c, tap) = (index % n_channels, index / n_channels);
        let (o, u, v) = (tap / 9, tap / 3 % 3, tap % 3);
        let pixels = (0..n_images).flat_map(|image| (0..height).flat_map(move |i| (0..width).map(move |j| (image, i, j))));
        pixels
            .filter_map(|(image, i, j)| Some((at(image, i, j), at(image, reach(i, u, height)?, reach(j, v, width)?))))
            .map(|(from, to)| product(grad_y[from * n_out + o], x[to * n_channels + c]))
            .sum()
    })
}

fn read<const N: usize>(case: &Case, names: [&str; N]) -> Result<[Vec<f32>; N]> {
    let values = names.into_iter().map(|name| case.read(name)).collect::<Result<Vec<_>>>()?;
    Ok(values.try_into().expect("a name gives an argument"))
}

/// Checks that these elements of `found` are those `expected`.
fn some(found: &[f32], what: &str, expected: impl Fn(usize) -> f64) -> Result<()> {
    let greatest = found.iter().fold(0.0_f64, |greatest, &x| greatest.max(f64::from(x).abs()));
    for index in (0..found.len()).step_by(found.len().div_ceil(97)) {
        let (found, expected) = (f64::from(found[index]), expected(index));
        let is_close = (found - expected).abs() <= 1e-5 * greatest;
        ensure!(is_close, "{what}[{index}] is {found}, expected {expected}: there is nothing to time");
    }
    Ok(())
}
