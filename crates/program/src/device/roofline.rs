//! The peak rates of a device, measured with the kernels of this library.

use brisk_kernels::{DType, Epilogue, Map, Matmul, Transpose};

use crate::device::Device;
use crate::device_info::DeviceKind;
use crate::error::Error;
use crate::profile::roofline::Roofline;
use crate::record::persistent::Persistent;
use crate::record::program::Program;

/// The shortest time counts: slower replays were disturbed.
const N_REPLAYS: usize = 6;
/// The smallest sizes worth measuring with, if memory is limited.
const LEAST: Sizes = Sizes { n_copied: 1 << 12, n_side: 32 };

#[derive(Debug, Clone, Copy)]
struct Sizes {
    /// Elements of a copy.
    n_copied: usize,
    /// Rows and columns of a product.
    n_side: usize,
}

impl Sizes {
    fn of(kind: DeviceKind) -> Self {
        match kind {
            DeviceKind::Cpu => Self { n_copied: 1 << 23, n_side: 1024 },
            DeviceKind::Software => Self { n_copied: 1 << 22, n_side: 512 },
            DeviceKind::Gpu => Self { n_copied: 1 << 26, n_side: 2048 },
        }
    }
}

/// Measures the rates of a device.
pub(super) fn measure(device: &Device) -> Result<Roofline, Error> {
    let sizes = Sizes::of(device.info().kind);
    // A larger copy would be split into several.
    let n_copied = sizes.n_copied.min(device.max_binding_bytes() / size_of::<f32>());
    let copy_bytes_per_s = largest_that_fits(device, n_copied, LEAST.n_copied, copy)?;
    let flops_per_s = largest_that_fits(device, sizes.n_side, LEAST.n_side, product)?;
    Ok(Roofline { copy_bytes_per_s, flops_per_s })
}

/// A rate measured at `size`, or at half of it and so on while the device does not have enough memory.
fn largest_that_fits(
    device: &Device,
    size: usize,
    least: usize,
    rate: impl Fn(&Device, usize) -> Result<f64, Error>,
) -> Result<f64, Error> {
    match rate(device, size) {
        Err(error) if size > least && is_too_large(&error) => largest_that_fits(device, size / 2, least, rate),
        measured => measured,
    }
}

fn is_too_large(error: &Error) -> bool {
    use brisk_kernels::Error::BindingLimit;
    matches!(
        error,
        Error::MemoryLimit { .. } | Error::BufferLimit { .. } | Error::OutOfMemory { .. } | Error::Kernel(BindingLimit { .. })
    )
}

fn copy(device: &Device, n: usize) -> Result<f64, Error> {
    let [x, y] = ["roofline x", "roofline y"].map(|name| Persistent::new(name, DType::F32, n));
    let mut program = Program::new("roofline copy");
    let (x, y) = (program.persistent(&x), program.persistent(&y));
    let copy = Map::unary(n, |x| x);
    // Copied there and back, so that no page is read before it has been written.
    program.push(copy.clone(), &[x, y])?;
    program.push(copy, &[y, x])?;
    Ok(8.0 * n as f64 / shortest_s(device, &program)?)
}

fn product(device: &Device, n: usize) -> Result<f64, Error> {
    let [a, b, y] = ["roofline a", "roofline b", "roofline y"].map(|name| Persistent::new(name, DType::F32, n * n));
    let mut program = Program::new("roofline product");
    let args = [&a, &b, &y].map(|buffer| program.persistent(buffer));
    program.push(Matmul { n_batch: 1, m: n, n, k: n, transpose: Transpose::None, epilogue: Epilogue::none() }, &args)?;
    // A GPU needs less power for zeros than for other numbers, and would run faster.
    let values: Vec<f32> = (0..n * n).map(|i| (i % 251) as f32 / 125.0 - 1.0).collect();
    device.write(&a, &values)?;
    device.write(&b, &values)?;
    Ok(2.0 * (n as f64).powi(3) / shortest_s(device, &program)?)
}

fn shortest_s(device: &Device, program: &Program) -> Result<f64, Error> {
    let (_, spans) = device.compile(program)?.spans(N_REPLAYS)?;
    // The first replay warms up.
    let shortest_ns = spans.iter().skip(program.n_kernels()).map(|span| span.len_ns).min();
    Ok(1e-9 * shortest_ns.unwrap_or(0).max(1) as f64)
}
