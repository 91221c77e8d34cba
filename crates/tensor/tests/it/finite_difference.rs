//! Gradients against central differences along random directions, in each precision.

use brisk_tensor::program::Device;
use brisk_tensor::program::kernels::Activate;
use brisk_tensor::{Activation, DType, Error, Graph, Persistent, Precision, Tensor};
use half::{bf16, f16};

use crate::random::Random;

/// Half the distance between the two points of a difference. The values are f32: closer together and their rounding shows,
/// farther apart and the curvature does.
const STEP: f32 = 2e-3;

/// The gradients' row of the tolerance table: `|a - b| <= tolerance + tolerance |b|`.
const fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 1e-2,
        DType::Bf16 => 8e-2,
        _ => 2e-3,
    }
}

const DIRECTIONS: usize = 3;

/// Checks the gradients of `Σ y g` with respect to parameters of these shapes: all at once, and each alone.
///
/// `y` is what `record` makes of the parameters, `g` is 1 where `y` is one number, else random. Sums are taken here, in f64.
/// The function is that in f32. Its gradients are taken in f32, then in each of the lower precisions twice: of parameters stored so, and of f32 ones
/// within autocast. The kernels that were recorded in f32 are given back.
#[track_caller]
pub(crate) fn check_gradients(
    shapes: &[&[usize]],
    record: impl Fn(&Graph, &[Tensor]) -> Result<Tensor, Error>,
) -> Vec<&'static str> {
    let function = Function::new(shapes, Storage::Parameters(DType::F32), &record).expect("the graph can be recorded");
    let at = Random::new(99).floats(function.values.len());
    check(&function, &function, &at, DType::F32);
    for (dtype, precision) in [(DType::F16, Precision::F16), (DType::Bf16, Precision::Bf16)] {
        let at = distinct(function.values.len(), dtype);
        for storage in [Storage::Parameters(dtype), Storage::Autocast(precision)] {
            let low = Function::new(shapes, storage, &record).expect("the graph can be recorded");
            check(&low, &function, &at, dtype);
        }
    }
    function.kernels
}

/// Whether the gradients of `low` at `at` are the slopes of `function` there.
#[track_caller]
fn check(low: &Function, function: &Function, at: &[f32], dtype: DType) {
    let (mut random, tolerance) = (Random::new(7), tolerance(dtype));
    let grads = low.gradients(at);
    assert!(grads.iter().any(|&grad| grad != 0.0), "a gradient of zeros throughout proves nothing");
    let whole = std::iter::once(0..at.len());
    for part in whole.chain(function.parts.iter().cloned()) {
        for _ in 0..DIRECTIONS {
            let direction: Vec<f32> = (0..at.len()).map(|i| if part.contains(&i) { random.float() } else { 0.0 }).collect();
            let parts: Vec<f64> = grads.iter().zip(&direction).map(|(&grad, &d)| f64::from(grad) * f64::from(d)).collect();
            let (found, expected) = (parts.iter().sum::<f64>(), function.slope(at, &direction));
            // Where parts cancel, their rounding does not.
            let rounded = if dtype == DType::F32 { 0.0 } else { parts.iter().map(|part| part * part).sum::<f64>().sqrt() };
            let off = (found - expected).abs();
            assert!(
                off <= tolerance * (1.0 + expected.abs().max(rounded)),
                "{:?}, elements {part:?}: the gradient gives a slope of {found}, the difference {expected}",
                low.storage
            );
        }
    }
}

/// Numbers that `dtype` holds, no two of them the same: where values tie, the greatest has no slope.
fn distinct(n: usize, dtype: DType) -> Vec<f32> {
    let round = |value| if dtype == DType::F16 { f16::from_f32(value).to_f32() } else { bf16::from_f32(value).to_f32() };
    let (mut random, mut values) = (Random::new(99), Vec::with_capacity(n));
    while values.len() < n {
        let value = round(random.float());
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

/// How values are stored.
#[derive(Debug, Clone, Copy)]
enum Storage {
    /// The parameters are cast to this type.
    Parameters(DType),
    /// The parameters are f32, and all is recorded within autocast.
    Autocast(Precision),
}

struct Function {
    storage: Storage,
    device: Device,
    executable: brisk_tensor::program::Executable,
    values: Persistent,
    grads: Persistent,
    parts: Vec<std::ops::Range<usize>>,
    y: Persistent,
    g: Vec<f32>,
    kernels: Vec<&'static str>,
}

impl Function {
    fn new(
        shapes: &[&[usize]],
        storage: Storage,
        record: impl Fn(&Graph, &[Tensor]) -> Result<Tensor, Error>,
    ) -> Result<Self, Error> {
        // Slices start where every adapter can bind them.
        let mut len = 0_usize;
        let parts: Vec<_> = shapes
            .iter()
            .map(|shape| {
                let start = len.next_multiple_of(64);
                len = start + shape.iter().product::<usize>();
                start..len
            })
            .collect();
        let (values, grads) = (Persistent::new("values", DType::F32, len), Persistent::new("grads", DType::F32, len));

        let graph = Graph::training("test");
        let parameter =
            |(range, shape): (&std::ops::Range<usize>, &&[usize])| graph.parameter(&values, &grads, range.clone(), shape);
        let parameters = parts.iter().zip(shapes).map(parameter).collect::<Result<Vec<_>, _>>()?;
        let result = match storage {
            Storage::Parameters(dtype) => {
                let stored = parameters.iter().map(|parameter| parameter.cast(dtype)).collect::<Result<Vec<_>, _>>()?;
                record(&graph, &stored)?
            }
            Storage::Autocast(precision) => graph.autocast(precision, || record(&graph, &parameters))?,
        };
        let n = result.n_elements();
        let g = if n == 1 { vec![1.0] } else { Random::new(5).floats(n) };
        if result.shape().is_empty() {
            graph.backward(&result)?;
        } else {
            graph.backward_from(&result, &graph.constant("g", &g, result.shape())?)?;
        }
        let y = Persistent::new("y", DType::F32, n);
        let kernels = graph.with_program(|program| program.kernel_names().collect());
        let result = result.cast(DType::F32)?;
        graph.with_program(|program| {
            let y = program.persistent(&y);
            program.push(Activate { n, activation: Activation::Identity }, &[result.slice(), y])
        })?;
        let device = Device::cpu()?;
        let executable = graph.compile(&device)?;
        Ok(Self { storage, device, executable, values, grads, parts, y, g, kernels })
    }

    fn at(&self, values: &[f32]) -> f64 {
        self.device.write(&self.values, values).expect("as many values as the buffer holds");
        self.executable.run(1).expect("the program runs");
        let y: Vec<f32> = self.device.read(&self.y).expect("the buffer can be read");
        y.iter().zip(&self.g).map(|(&y, &g)| f64::from(y) * f64::from(g)).sum()
    }

    fn gradients(&self, values: &[f32]) -> Vec<f32> {
        // Whatever stood there is replaced, not added to.
        self.device.write(&self.grads, &vec![7.0_f32; self.grads.len()]).expect("as many values as the buffer holds");
        self.at(values);
        let mut grads: Vec<f32> = self.device.read(&self.grads).expect("the buffer can be read");
        for (i, grad) in grads.iter_mut().enumerate() {
            if !self.parts.iter().any(|part| part.contains(&i)) {
                assert_eq!(*grad, 7.0, "element {i} is between the parameters and none of backward's business");
                *grad = 0.0;
            }
        }
        grads
    }

    /// The central difference along `direction`, over the distance between the two points as they were rounded.
    fn slope(&self, at: &[f32], direction: &[f32]) -> f64 {
        let moved = |by: f32| at.iter().zip(direction).map(|(&x, &d)| x + by * d).collect::<Vec<f32>>();
        (self.at(&moved(STEP)) - self.at(&moved(-STEP))) / (2.0 * f64::from(STEP))
    }
}
