//! A self-check of matrix products. wgpu's interface to cooperative matrices is experimental, and so are some drivers.

use std::sync::mpsc;
use std::time::Duration;

use ::half::f16;

use super::recorder::{Recorder, ready};
use crate::arg::Access;
use crate::conversion::converted::stored;
use crate::dtype::DType;
use crate::error::Error;
use crate::gemm::transpose::Transpose;
use crate::kernel::kernel::Kernel as _;
use crate::product::epilogue::Epilogue;
use crate::product::matmul::Matmul;

/// Rows of the products. All sizes are multiples of those of cooperative matrices.
const M: usize = 32;
/// Columns of the products.
const N: usize = 64;
/// The K dimension of the products.
const K: usize = 48;
/// The time limit; a slower driver is considered unusable.
const TIMEOUT: Duration = Duration::from_secs(10);

impl Recorder {
    /// Checks that the device computes products of f16 correctly, in the form that this recorder chooses for them, with three
    /// small products of integers whose results are known exactly. It submits to `queue` and waits.
    ///
    /// # Errors
    /// [`Error::WrongProducts`], with the details, if the driver rejects the pipelines, does not finish, or computes wrong
    /// results. The device may then be lost.
    pub fn check_products(&mut self, queue: &wgpu::Queue) -> Result<(), Error> {
        // Forward, gradient of the weights, gradient of the input: an operand is loaded by rows in one, by columns in another.
        for transpose in [Transpose::B, Transpose::A, Transpose::None] {
            let checked = product(self, queue, transpose).and_then(|found| compare(&found, &expected(transpose)));
            checked.map_err(|reason| Error::WrongProducts { adapter: self.adapter().name.clone(), reason })?;
        }
        Ok(())
    }
}

fn compare(found: &[f32], expected: &[f32]) -> Result<(), String> {
    match found.iter().zip(expected).position(|(found, expected)| found != expected) {
        None => Ok(()),
        Some(i) => Err(format!("row {}, column {} of a product is {}, expected {}", i / N, i % N, found[i], expected[i])),
    }
}

/// Whole numbers from -4 to 4, so that all sums are exact in f32, in any order.
fn value(i: usize) -> i32 {
    i32::try_from((i * 7 + i / 5) % 9).expect("it is below 9") - 4
}

/// Element `[row, col]` of a matrix stored with `n_cols` columns, or of its transpose.
fn element(row: usize, col: usize, n_cols: usize, n_rows: usize, is_transposed: bool) -> i32 {
    value(if is_transposed { col * n_rows + row } else { row * n_cols + col })
}

fn expected(transpose: Transpose) -> Vec<f32> {
    let sum = |i: usize, j: usize| -> i32 {
        (0..K).map(|k| element(i, k, K, M, transpose.a()) * element(k, j, N, K, transpose.b())).sum()
    };
    (0..M * N).map(|i| sum(i / N, i % N) as f32).collect()
}

/// The product computed by the device.
fn product(recorder: &mut Recorder, queue: &wgpu::Queue, transpose: Transpose) -> Result<Vec<f32>, String> {
    let device = recorder.device.clone();
    let product = Matmul { n_batch: 1, m: M, n: N, k: K, transpose, epilogue: Epilogue::none() };
    let kernel = stored(product, &[DType::F16, DType::F16, DType::F32]).map_err(|error| error.to_string())?;
    let args = kernel.args();
    let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
    let buffer = |size: usize, usage| {
        let size = (size as u64).next_multiple_of(wgpu::COPY_BUFFER_ALIGNMENT);
        device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("kernels.check_products"),
            size,
            usage,
            mapped_at_creation: false,
        })
    };
    let buffers: Vec<wgpu::Buffer> = args.iter().map(|arg| buffer(arg.len_bytes(), usage)).collect();
    for (arg, buffer) in args.iter().zip(&buffers).filter(|(arg, _)| arg.access == Access::Read) {
        let values: Vec<f16> = (0..arg.len).map(|i| f16::from_f32(value(i) as f32)).collect();
        queue.write_buffer(buffer, 0, bytemuck::cast_slice(&values));
    }
    let y = args.iter().position(|arg| arg.name == "y").ok_or("a product has no result")?;
    let bindings: Vec<_> = buffers.iter().map(|buffer| buffer.as_entire_buffer_binding()).collect();
    let read_back = buffer(args[y].len_bytes(), wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ);

    let scope = device.push_error_scope(wgpu::ErrorFilter::Validation);
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("kernels.check_products") });
    let recorded = recorder.record(&*kernel, &bindings, &mut encoder);
    encoder.copy_buffer_to_buffer(&buffers[y], 0, &read_back, 0, read_back.size());
    let submission_index = Some(queue.submit([encoder.finish()]));
    let (send, receive) = mpsc::channel();
    read_back.map_async(wgpu::MapMode::Read, .., move |mapped| drop(send.send(mapped)));
    let waited = device.poll(wgpu::PollType::Wait { submission_index, timeout: Some(TIMEOUT) });
    let invalid = ready(scope.pop());
    recorded.map_err(|error| error.to_string())?;
    if let Some(error) = invalid {
        return Err(error.to_string());
    }
    waited.map_err(|error| error.to_string())?;
    match receive.try_recv() {
        Ok(Ok(())) => {}
        Ok(Err(error)) => return Err(error.to_string()),
        Err(_) => return Err("a result was computed but cannot be read".to_owned()),
    }
    let view = read_back.get_mapped_range(..).map_err(|error| error.to_string())?;
    Ok(bytemuck::pod_collect_to_vec(&view))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_elements_are_named() {
        let expected = expected(Transpose::A);
        assert!(expected.iter().any(|value| *value > 20.0) && expected.iter().any(|value| *value < -20.0), "{expected:?}");
        let mut found = expected.clone();
        assert_eq!(compare(&found, &expected), Ok(()));
        found[N + 3] = f32::NAN;
        let reason = format!("row 1, column 3 of a product is NaN, expected {}", expected[N + 3]);
        assert_eq!(compare(&found, &expected), Err(reason));
    }
}
