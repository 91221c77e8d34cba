//! Values and gradients at kinks, poles and infinities, on both executors and in 16 bits. The expected values are PyTorch's.

use brisk_program::Device;
use brisk_tensor::{CrossEntropyOptions, DType, Error, Graph, LossReduction, Persistent, Tensor};

use crate::gpu::{cpu, gpu};

const INF: f32 = f32::INFINITY;
const NAN: f32 = f32::NAN;

const DTYPES: [DType; 3] = [DType::F32, DType::Bf16, DType::F16];

/// `f` of `x`, and its gradient for an upstream gradient of 1, 2, 3, ….
#[track_caller]
fn check(name: &str, f: fn(&Tensor) -> Tensor, shape: &[usize], x: &[f32], y: &[f32], grad: &[f32]) -> Result<(), Error> {
    check_in(&DTYPES, name, f, (shape, x), (y, grad))
}

#[track_caller]
fn check_in(
    dtypes: &[DType],
    name: &str,
    f: fn(&Tensor) -> Tensor,
    (shape, x): (&[usize], &[f32]),
    (y, grad): (&[f32], &[f32]),
) -> Result<(), Error> {
    for device in [Some(cpu(1)), gpu()].into_iter().flatten() {
        for &dtype in dtypes {
            let tolerance = match dtype {
                DType::F16 => 2e-3,
                DType::Bf16 => 2e-2,
                _ => 1e-5,
            };
            let (found_y, found) = of(&device, dtype, f, shape, x)?;
            let close = |a: f32, b: f32| a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= tolerance * (1.0 + b.abs());
            let is_right = |found: &[f32], expected: &[f32]| found.iter().zip(expected).all(|(a, b)| close(*a, *b));
            let info = device.info();
            assert!(is_right(&found_y, y), "{name} in {dtype} on {info}: {found_y:?}, expected {y:?}");
            assert!(is_right(&found, grad), "the gradient of {name} in {dtype} on {info}: {found:?}, expected {grad:?}");
        }
    }
    Ok(())
}

fn of(
    device: &Device,
    dtype: DType,
    f: fn(&Tensor) -> Tensor,
    shape: &[usize],
    x: &[f32],
) -> Result<(Vec<f32>, Vec<f32>), Error> {
    let [values, grads] = ["values", "grads"].map(|name| Persistent::new(name, DType::F32, x.len()));
    let graph = Graph::training("kink");
    let y = f(&graph.parameter(&values, &grads, 0..x.len(), shape).cast(dtype)).cast(DType::F32);
    let upstream: Vec<f32> = (1..=y.n_elements()).map(|i| i as f32).collect();
    graph.backward_from(&y, &graph.constant("upstream", &upstream, y.shape()))?;
    let stored = Persistent::new("y", DType::F32, y.n_elements());
    graph.store(&y, &graph.state(), &stored);
    device.write(&values, x)?;
    graph.compile(device)?.run(1)?;
    Ok((device.read(&stored)?, device.read(&grads)?))
}

fn cross_entropy(x: &Tensor, class: u32) -> Tensor {
    let target = x.graph().constant_codes("target", &[class], &[1]);
    x.cross_entropy(&target, &x.graph().constant("weight", &[1.0], &[1]), CrossEntropyOptions::default())
}

#[test]
fn roots_powers_and_logarithms() -> Result<(), Error> {
    check("std", |x| x.std(1, 1), &[2, 3], &[2.0, 2.0, 2.0, 1.0, 2.0, 3.0], &[0.0, 1.0], &[0.0, 0.0, 0.0, -1.0, 0.0, 1.0])?;
    check("std without correction", |x| x.std(.., 0), &[1, 7], &[0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1], &[0.0], &[0.0; 7])?;
    check("var", |x| x.var(1, 1), &[2, 3], &[2.0, 2.0, 2.0, 1.0, 2.0, 3.0], &[0.0, 1.0], &[0.0, 0.0, 0.0, -2.0, 0.0, 2.0])?;
    check("std of one", |x| x.std(1, 1), &[1, 1], &[3.0], &[NAN], &[NAN])?;
    check("norm", |x| x.norm(1), &[2, 3], &[0.0, 0.0, 0.0, 3.0, 0.0, 4.0], &[0.0, 5.0], &[0.0, 0.0, 0.0, 1.2, 0.0, 1.6])?;
    check("norm of an infinite", |x| x.norm(1), &[1, 2], &[INF, 1.0], &[INF], &[NAN, 0.0])?;
    check("sqrt", |x| x.sqrt(), &[1, 2], &[0.0, 4.0], &[0.0, 2.0], &[INF, 0.5])?;
    check("rsqrt", |x| x.rsqrt(), &[1, 2], &[0.0, 4.0], &[INF, 0.5], &[-INF, -0.125])?;
    check("log", |x| x.log(), &[1, 2], &[0.0, 4.0], &[-INF, 1.386294], &[INF, 0.5])?;
    check("log1p", |x| x.log1p(), &[1, 2], &[-1.0, 0.0], &[-INF, 0.0], &[INF, 2.0])?;
    check("reciprocal", |x| x.reciprocal(), &[1, 2], &[0.0, 4.0], &[INF, 0.25], &[-INF, -0.125])?;
    check("pow 0.5", |x| x.map(|x| x.powf(0.5)), &[1, 2], &[0.0, 4.0], &[0.0, 2.0], &[INF, 0.5])?;
    check("pow 0.0", |x| x.map(|x| x.powf(0.0)), &[1, 2], &[0.0, 4.0], &[1.0, 1.0], &[0.0, 0.0])?;
    check("pow 1.0", |x| x.map(|x| x.powf(1.0)), &[1, 2], &[0.0, 4.0], &[0.0, 4.0], &[1.0, 2.0])?;
    check("pow 2.0", |x| x.map(|x| x.powf(2.0)), &[1, 2], &[0.0, 4.0], &[0.0, 16.0], &[0.0, 16.0])?;
    check("pow 3.0", |x| x.map(|x| x.powf(3.0)), &[1, 2], &[0.0, 4.0], &[0.0, 64.0], &[0.0, 96.0])?;
    check("pow -1.0", |x| x.map(|x| x.powf(-1.0)), &[1, 2], &[0.0, 4.0], &[INF, 0.25], &[-INF, -0.125])?;
    check("pow -2.0", |x| x.map(|x| x.powf(-2.0)), &[1, 2], &[0.0, 4.0], &[INF, 0.0625], &[-INF, -0.0625])?;
    check("pow 1.5", |x| x.map(|x| x.powf(1.5)), &[1, 2], &[0.0, 4.0], &[0.0, 8.0], &[0.0, 6.0])?;
    Ok(())
}

#[test]
fn sums_of_exponentials() -> Result<(), Error> {
    check("logsumexp of an infinite", |x| x.logsumexp(1), &[1, 2], &[INF, 0.0], &[INF], &[NAN, 0.0])?;
    check("logsumexp of minus infinity", |x| x.logsumexp(1), &[1, 2], &[-INF, 0.0], &[0.0], &[0.0, 1.0])?;
    check("logsumexp of all minus infinity", |x| x.logsumexp(1), &[1, 2], &[-INF, -INF], &[-INF], &[NAN, NAN])?;
    check("logsumexp of infinities", |x| x.logsumexp(1), &[1, 2], &[INF, INF], &[INF], &[NAN, NAN])?;
    check("logsumexp of NaN", |x| x.logsumexp(1), &[1, 2], &[NAN, 0.0], &[NAN], &[NAN, NAN])?;
    check("softmax of an infinite", |x| x.softmax(1), &[1, 3], &[INF, 0.0, 1.0], &[NAN, NAN, NAN], &[NAN, NAN, NAN])?;
    check("log_softmax of an infinite", |x| x.log_softmax(1), &[1, 3], &[INF, 0.0, 1.0], &[NAN, NAN, NAN], &[NAN, NAN, NAN])?;
    check("cross_entropy of an infinite", |x| cross_entropy(x, 1), &[1, 3], &[INF, 0.0, 1.0], &[NAN], &[NAN, NAN, NAN])?;
    check(
        "cross_entropy of an infinite, the class",
        |x| cross_entropy(x, 0),
        &[1, 3],
        &[INF, 0.0, 1.0],
        &[NAN],
        &[NAN, NAN, NAN],
    )?;
    check(
        "softmax of minus infinity",
        |x| x.softmax(1),
        &[1, 3],
        &[-INF, 0.0, 1.0],
        &[0.0, 0.2689414, 0.7310586],
        &[-0.0, -0.1966119, 0.1966119],
    )?;
    check(
        "log_softmax of minus infinity",
        |x| x.log_softmax(1),
        &[1, 3],
        &[-INF, 0.0, 1.0],
        &[-INF, -1.313262, -0.3132617],
        &[1.0, 0.3863514, -1.386352],
    )?;
    check(
        "cross_entropy of minus infinity",
        |x| cross_entropy(x, 1),
        &[1, 3],
        &[-INF, 0.0, 1.0],
        &[1.313262],
        &[0.0, -0.7310586, 0.7310586],
    )?;
    check(
        "cross_entropy of minus infinity, the class",
        |x| cross_entropy(x, 0),
        &[1, 3],
        &[-INF, 0.0, 1.0],
        &[INF],
        &[-1.0, 0.2689414, 0.7310586],
    )?;
    check("softmax of all minus infinity", |x| x.softmax(1), &[1, 3], &[-INF, -INF, -INF], &[NAN, NAN, NAN], &[NAN, NAN, NAN])?;
    check(
        "log_softmax of all minus infinity",
        |x| x.log_softmax(1),
        &[1, 3],
        &[-INF, -INF, -INF],
        &[NAN, NAN, NAN],
        &[NAN, NAN, NAN],
    )?;
    check(
        "cross_entropy of all minus infinity",
        |x| cross_entropy(x, 1),
        &[1, 3],
        &[-INF, -INF, -INF],
        &[NAN],
        &[NAN, NAN, NAN],
    )?;
    check(
        "cross_entropy of all minus infinity, the class",
        |x| cross_entropy(x, 0),
        &[1, 3],
        &[-INF, -INF, -INF],
        &[NAN],
        &[NAN, NAN, NAN],
    )?;
    Ok(())
}

#[test]
fn activations() -> Result<(), Error> {
    check("abs", |x| x.abs(), &[1, 3], &[0.0, -0.0, 1.0], &[0.0, 0.0, 1.0], &[0.0, 0.0, 3.0])?;
    check("clamp", |x| x.clamp(0.0, 1.0), &[1, 3], &[0.0, 1.0, 2.0], &[0.0, 1.0, 1.0], &[0.0, 0.0, 0.0])?;
    check("relu", |x| x.relu(), &[1, 3], &[0.0, -INF, INF], &[0.0, 0.0, INF], &[0.0, 0.0, 3.0])?;
    check("relu of NaN", |x| x.relu(), &[1, 2], &[1.0, NAN], &[1.0, NAN], &[1.0, 2.0])?;
    check("elu", |x| x.map(|x| x.elu(1.0)), &[1, 3], &[0.0, -INF, NAN], &[0.0, -1.0, NAN], &[1.0, 0.0, 3.0])?;
    check(
        "layer_norm of a constant",
        |x| x.layer_norm(None, None, 1e-5),
        &[1, 3],
        &[5.0, 5.0, 5.0],
        &[0.0, 0.0, 0.0],
        &[-316.2278, 0.0, 316.2278],
    )?;
    check("max", |x| x.max(1), &[1, 3], &[1.0, 1.0, 0.0], &[1.0], &[0.5, 0.5, 0.0])?;
    check("softplus", |x| x.softplus(), &[1, 3], &[0.0, -INF, INF], &[std::f32::consts::LN_2, 0.0, INF], &[0.5, 0.0, 3.0])?;
    check("sigmoid", |x| x.sigmoid(), &[1, 3], &[0.0, -INF, INF], &[0.5, 0.0, 1.0], &[0.25, 0.0, 0.0])?;
    check("tanh", |x| x.tanh(), &[1, 3], &[0.0, -INF, INF], &[0.0, -1.0, 1.0], &[1.0, 0.0, 0.0])?;
    check("exp", |x| x.exp(), &[1, 3], &[0.0, -INF, INF], &[1.0, 0.0, INF], &[1.0, 0.0, INF])?;
    Ok(())
}

#[test]
fn losses_of_nan() -> Result<(), Error> {
    let huber = |x: &Tensor| x.huber_loss(&x.graph().constant("target", &[0.0; 3], &[1, 3]), 1.0, LossReduction::None);
    check("huber_loss", huber, &[1, 3], &[NAN, 0.5, -INF], &[NAN, 0.125, INF], &[NAN, 1.0, -3.0])?;
    let smooth = |x: &Tensor| x.smooth_l1_loss(&x.graph().constant("target", &[0.0; 3], &[1, 3]), 1.0, LossReduction::None);
    check("smooth_l1_loss", smooth, &[1, 3], &[NAN, 0.5, -INF], &[NAN, 0.125, INF], &[NAN, 1.0, -3.0])
}

/// Rows of equal numbers are constant, whatever their size: differences from the first are exact, means are not.
#[test]
fn constants_of_any_size_have_no_spread() -> Result<(), Error> {
    for value in [0.1, 3e9, 16_777_217.0, 3e37, -1e-30] {
        let x = [value; 7];
        let check = |name: &str, f: fn(&Tensor) -> Tensor, n: usize| {
            check_in(&DTYPES[..2], name, f, (&[1, 7], &x), (&[0.0; 7][..n], &[0.0; 7]))
        };
        check("layer_norm", |x| x.layer_norm(None, None, 1e-5) * 1e-9, 7)?;
        check("std", |x| x.std(1, 1), 1)?;
        check("var", |x| x.var(.., 0), 1)?;
    }
    Ok(())
}
