//! Gradients against finite differences.

use std::ops::Range;

use brisk_kernels::{DType, Map, Philox};
use brisk_program::{Device, Executable, Persistent};
use half::{bf16, f16};

use crate::error::Error;
use crate::graph::Graph;
use crate::graph::autocast::Precision;
use crate::graph::tensor::Tensor;

/// Compares the gradients that a backward pass computes with finite differences of the forward pass, on the CPU.
///
/// `record` records a function of parameters with these `shapes`. The gradient of `Σ g y` is checked, where `y` is its result and
/// `g` is random, or 1 if the result is a single number: along random directions over all parameters at once and over each
/// parameter on its own, against the central difference of the function in f32. Gradients are computed in f32, and in f16 and
/// bf16 twice: for parameters stored in that dtype, and for f32 parameters within [`Graph::autocast`].
///
/// The parameters are uniform in -1 to 1, and no two are equal, so that a maximum is unique. Where a difference crosses a kink,
/// as that of a ReLU, other values are drawn, a few times. For a function that is not finite there, shift or scale the arguments.
///
/// # Errors
/// [`Error::Refused`] if there are no shapes; [`Error::Gradient`] names the first gradient off by more than `t + t·|expected|`,
/// where `t` is 2e-3 for f32, 1e-2 for f16 and 8e-2 for bf16, or zero everywhere; the first error of what `record` records.
/// # Reference
/// `torch.autograd.gradcheck`; `jax.test_util.check_grads`, which uses random directions as well.
/// # Examples
/// ```
/// use brisk_tensor::{Activation, check_gradients};
///
/// check_gradients(&[&[4, 3], &[2, 3]], |_, p| p[0].linear(&p[1], None, Activation::tanh()))?;
/// # Ok::<(), brisk_tensor::Error>(())
/// ```
#[track_caller]
pub fn check_gradients(shapes: &[&[usize]], record: impl Fn(&Graph, &[Tensor]) -> Tensor) -> Result<(), Error> {
    if shapes.is_empty() {
        let (found, expected) = ("no shapes".to_owned(), "the shape of at least one parameter");
        return Err(Error::Refused { op: "check_gradients", found, expected });
    }
    let function = Function::new(shapes, Storage::Parameters(DType::F32), &record)?;
    compare(&function, &function, DType::F32)?;
    for (dtype, precision) in [(DType::F16, Precision::F16), (DType::Bf16, Precision::Bf16)] {
        for storage in [Storage::Parameters(dtype), Storage::Autocast(precision)] {
            compare(&Function::new(shapes, storage, &record)?, &function, dtype)?;
        }
    }
    Ok(())
}

/// Half the distance between the two points of a difference. The values are f32: with a smaller step their rounding shows, with a
/// larger one the curvature of the function.
const STEP: f32 = 2e-3;

/// The contents of the buffer of gradients before the backward pass.
const UNTOUCHED: f32 = 7.0;

const N_DIRECTIONS: usize = 3;

/// The tolerance of gradients, absolute and relative.
const fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 1e-2,
        DType::Bf16 => 8e-2,
        _ => 2e-3,
    }
}

/// How often other values are drawn if a difference crosses a kink or, in a lower precision, a rounded value does.
const N_POINTS: usize = 4;

/// Whether the gradients of `low` are the slopes of `function`.
fn compare(low: &Function, function: &Function, dtype: DType) -> Result<(), Error> {
    let mut result = Ok(());
    for point in 0..N_POINTS {
        let at = distinct(function.values.len(), dtype, point);
        match compare_at(low, function, &at, dtype)? {
            None => return Ok(()),
            Some(Mismatch { parameter, found, expected, at_a_kink }) => {
                result = Err(Error::Gradient { stored: low.storage.to_string(), parameter, found, expected });
                if dtype == DType::F32 && !at_a_kink {
                    break;
                }
            }
        }
    }
    result
}

struct Mismatch {
    parameter: Option<usize>,
    found: f64,
    expected: f64,
    /// Whether the function has a kink between the two points of the difference.
    at_a_kink: bool,
}

/// The first gradient of `low` at `at` that is not the slope of `function` there.
fn compare_at(low: &Function, function: &Function, at: &[f32], dtype: DType) -> Result<Option<Mismatch>, Error> {
    let tolerance = tolerance(dtype);
    let grads = low.gradients(at)?;
    if grads.iter().all(|&grad| grad == 0.0) {
        // A gradient of zeros would agree with a flat function, which proves nothing.
        let expected = function.slope(at, &uniform(at.len(), Stream::Direction(0)), STEP)?;
        return Ok(Some(Mismatch { parameter: None, found: 0.0, expected, at_a_kink: false }));
    }
    let each = function.parameters.iter().cloned().enumerate().map(|(i, range)| (Some(i), range));
    for (parameter, range) in std::iter::once((None, 0..at.len())).chain(each) {
        for n in 0..N_DIRECTIONS {
            let mut direction = uniform(at.len(), Stream::Direction(n));
            direction.iter_mut().enumerate().filter(|(i, _)| !range.contains(i)).for_each(|(_, d)| *d = 0.0);
            let terms: Vec<f64> = grads.iter().zip(&direction).map(|(&grad, &d)| f64::from(grad) * f64::from(d)).collect();
            let (found, expected) = (terms.iter().sum::<f64>(), function.slope(at, &direction, STEP)?);
            // If the terms cancel, their rounding errors do not.
            let rounding = if dtype == DType::F32 { 0.0 } else { terms.iter().map(|term| term * term).sum::<f64>().sqrt() };
            let allowed = tolerance * (1.0 + expected.abs().max(rounding));
            // NaN fails as well.
            let is_close = (found - expected).abs() <= allowed;
            if !is_close {
                let at_a_kink = function.has_kink(at, &direction, allowed)?;
                return Ok(Some(Mismatch { parameter, found, expected, at_a_kink }));
            }
        }
    }
    Ok(None)
}

/// How the parameters are stored.
#[derive(Debug, Clone, Copy)]
enum Storage {
    /// They are cast to this dtype.
    Parameters(DType),
    /// They are f32, and the function is recorded within autocast.
    Autocast(Precision),
}

impl std::fmt::Display for Storage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Parameters(dtype) => write!(f, "parameters stored in {dtype}"),
            Self::Autocast(precision) => write!(f, "autocast to {precision}"),
        }
    }
}

/// A recorded function with its backward pass.
struct Function {
    storage: Storage,
    device: Device,
    executable: Executable,
    values: Persistent,
    grads: Persistent,
    /// The elements of each parameter in `values`.
    parameters: Vec<Range<usize>>,
    y: Persistent,
    g: Vec<f32>,
}

impl Function {
    #[track_caller]
    fn new(shapes: &[&[usize]], storage: Storage, record: impl Fn(&Graph, &[Tensor]) -> Tensor) -> Result<Self, Error> {
        let mut len = 0_usize;
        let ranges: Vec<Range<usize>> = shapes
            .iter()
            .map(|shape| {
                // Slices start where every adapter can bind them.
                let start = len.next_multiple_of(64);
                len = start + shape.iter().product::<usize>();
                start..len
            })
            .collect();
        let (values, grads) = (Persistent::new("values", DType::F32, len), Persistent::new("grads", DType::F32, len));

        let graph = Graph::training("check_gradients");
        let parameter = |(range, shape): (&Range<usize>, &&[usize])| graph.parameter(&values, &grads, range.clone(), shape);
        let parameters: Vec<_> = ranges.iter().zip(shapes).map(parameter).collect();
        let result = match storage {
            Storage::Parameters(dtype) => {
                let stored: Vec<_> = parameters.iter().map(|parameter| parameter.cast(dtype)).collect();
                record(&graph, &stored)
            }
            Storage::Autocast(precision) => graph.autocast(precision, || record(&graph, &parameters)),
        };
        let n = result.n_elements();
        let g = if n == 1 { vec![1.0] } else { uniform(n, Stream::Upstream) };
        if result.shape().is_empty() {
            graph.backward(&result)?;
        } else {
            graph.backward_from(&result, &graph.constant("g", &g, result.shape()))?;
        }
        let y = Persistent::new("y", DType::F32, n);
        let result = result.cast(DType::F32);
        graph.push(Map::unary(n, |x| x), &[result.slice(), graph.buffer(&y)]);
        // The same random numbers in each evaluation.
        graph.hold(&graph.state());
        let device = Device::cpu()?;
        let executable = graph.compile(&device)?;
        Ok(Self { storage, device, executable, values, grads, parameters: ranges, y, g })
    }

    /// `Σ g y` in f64, for these values of the parameters.
    fn at(&self, values: &[f32]) -> Result<f64, Error> {
        self.device.write(&self.values, values)?;
        self.executable.run(1)?;
        let y: Vec<f32> = self.device.read(&self.y)?;
        Ok(y.iter().zip(&self.g).map(|(&y, &g)| f64::from(y) * f64::from(g)).sum())
    }

    /// The gradients at these values, 0 between the parameters.
    fn gradients(&self, values: &[f32]) -> Result<Vec<f32>, Error> {
        // The backward pass must replace the old values instead of adding to them.
        self.device.write(&self.grads, &vec![UNTOUCHED; self.grads.len()])?;
        self.at(values)?;
        let mut grads: Vec<f32> = self.device.read(&self.grads)?;
        for (i, grad) in grads.iter_mut().enumerate() {
            if !self.parameters.iter().any(|range| range.contains(&i)) {
                if *grad != UNTOUCHED {
                    let found = format!("a gradient was written to element {i}, between two parameters");
                    return Err(Error::Refused { op: "check_gradients", found, expected: "gradients of parameters only" });
                }
                *grad = 0.0;
            }
        }
        Ok(grads)
    }

    /// The central difference along `direction`.
    fn slope(&self, at: &[f32], direction: &[f32], step: f32) -> Result<f64, Error> {
        Ok((self.moved(at, direction, step)? - self.moved(at, direction, -step)?) / (2.0 * f64::from(step)))
    }

    /// Whether the slope jumps near `at`. Without a kink, the slopes to the two sides differ by the curvature times the step, so
    /// by half as much for half the step.
    fn has_kink(&self, at: &[f32], direction: &[f32], allowed: f64) -> Result<bool, Error> {
        let here = self.at(at)?;
        let bend = |step: f32| {
            let (after, before) = (self.moved(at, direction, step)?, self.moved(at, direction, -step)?);
            Ok::<_, Error>((after - 2.0 * here + before) / f64::from(step))
        };
        Ok((bend(STEP)? - 2.0 * bend(STEP / 2.0)?).abs() > allowed / 2.0)
    }

    fn moved(&self, at: &[f32], direction: &[f32], by: f32) -> Result<f64, Error> {
        self.at(&at.iter().zip(direction).map(|(&x, &d)| x + by * d).collect::<Vec<f32>>())
    }
}

/// The purpose of random numbers; each purpose has its own stream.
#[derive(Clone, Copy)]
enum Stream {
    Upstream,
    Values(usize),
    Direction(usize),
}

/// Numbers uniform in -1 to 1, the same in every run.
fn uniform(n: usize, stream: Stream) -> Vec<f32> {
    let stream = match stream {
        Stream::Upstream => 0,
        Stream::Values(point) => 1 + point as u32,
        Stream::Direction(n) => 100 + n as u32,
    };
    let philox = Philox::new(0);
    (0..n as u64).map(|i| 2.0 * philox.uniform(stream, i) - 1.0).collect()
}

/// Uniform numbers that `dtype` represents, no two of them equal.
fn distinct(n: usize, dtype: DType, point: usize) -> Vec<f32> {
    let rounded = |value: f32| match dtype {
        DType::F16 => f16::from_f32(value).to_f32(),
        DType::Bf16 => bf16::from_f32(value).to_f32(),
        _ => value,
    };
    let mut seen = std::collections::HashSet::new();
    // bf16 represents about 30,000 numbers in the range; with more than a tenth as many parameters, some values repeat.
    let mut values: Vec<f32> = uniform(20 * n + 64, Stream::Values(point)).into_iter().map(rounded).collect();
    let all = values.clone();
    values.retain(|value| seen.insert(value.to_bits()));
    values.extend(all);
    values.truncate(n);
    values
}
