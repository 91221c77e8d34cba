//! Gradients against central differences along random directions.

use brisk_tensor::program::Device;
use brisk_tensor::program::kernels::Activate;
use brisk_tensor::{Activation, DType, Error, Graph, Persistent, Tensor};

use crate::random::Random;

/// Half the distance between the two points of a difference. The values are f32: closer together and their rounding shows,
/// farther apart and the curvature does.
const STEP: f32 = 2e-3;

/// The gradients' row of the tolerance table for f32: `|a - b| <= TOLERANCE + TOLERANCE |b|`.
const TOLERANCE: f64 = 2e-3;

const DIRECTIONS: usize = 3;

/// Checks the gradients of `Σ y g` with respect to parameters of these shapes: all at once, and each alone.
///
/// `y` is what `record` makes of the parameters, `g` is 1 where `y` is one number, else random. Sums are taken here, in f64.
/// The kernels that were recorded are given back.
#[track_caller]
pub(crate) fn check_gradients(
    shapes: &[&[usize]],
    record: impl Fn(&Graph, &[Tensor]) -> Result<Tensor, Error>,
) -> Vec<&'static str> {
    let function = Function::new(shapes, record).expect("the graph can be recorded");
    let mut random = Random::new(99);
    let at = random.floats(function.values.len());
    let grads = function.gradients(&at);
    assert!(grads.iter().any(|&grad| grad != 0.0), "a gradient of zeros throughout proves nothing");
    let whole = std::iter::once(0..at.len());
    for part in whole.chain(function.parts.iter().cloned()) {
        for _ in 0..DIRECTIONS {
            let direction: Vec<f32> = (0..at.len()).map(|i| if part.contains(&i) { random.float() } else { 0.0 }).collect();
            let found: f64 = grads.iter().zip(&direction).map(|(&grad, &d)| f64::from(grad) * f64::from(d)).sum();
            let expected = function.slope(&at, &direction);
            let off = (found - expected).abs();
            assert!(
                off <= TOLERANCE * (1.0 + expected.abs()),
                "elements {part:?}: the gradient gives a slope of {found}, the difference {expected}"
            );
        }
    }
    function.kernels
}

struct Function {
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
    fn new(shapes: &[&[usize]], record: impl Fn(&Graph, &[Tensor]) -> Result<Tensor, Error>) -> Result<Self, Error> {
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
        let result = record(&graph, &parameters)?;
        let n = result.n_elements();
        let g = if n == 1 { vec![1.0] } else { Random::new(5).floats(n) };
        if result.shape().is_empty() {
            graph.backward(&result)?;
        } else {
            graph.backward_from(&result, &graph.constant("g", &g, result.shape())?)?;
        }
        let y = Persistent::new("y", DType::F32, n);
        let kernels = graph.with_program(|program| {
            let kernels = program.kernel_names().collect();
            let y = program.persistent(&y);
            program.push(Activate { n, activation: Activation::Identity }, &[result.slice(), y]).map(|()| kernels)
        })?;
        let device = Device::cpu()?;
        let executable = graph.compile(&device)?;
        Ok(Self { device, executable, values, grads, parts, y, g, kernels })
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
