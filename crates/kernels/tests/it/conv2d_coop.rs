//! Convolutions on tensor cores, if an adapter has them, and on any adapter with plain WGSL in place of the cooperative
//! operations.

use brisk_kernels::CoopShape::{Eight, Sixteen};
use brisk_kernels::DType::{F16, F32};
use brisk_kernels::*;

use crate::close::Tolerance;
use crate::emulated::{check, check_on, given, with_units};
use crate::gpu::gpu;
use crate::random::Random;
use crate::run::{AsOnHardware, gpu_equals_twin_within};
use crate::samples::output_grad;

fn shape(x: [usize; 4], n_out: usize, window: Window) -> ConvShape {
    let [n_images, height, width, n_channels] = x;
    ConvShape::dense(Images { n_images, height, width, n_channels }, n_out, window)
}

const fn window(kernel: [usize; 2], stride: [usize; 2], padding: [usize; 2]) -> Window {
    Window { kernel, stride, padding }
}

/// Rows and images that end within a matrix of pixels, numbers of pixels that are not a multiple of one, strides, taps entirely
/// in the padding, columns beyond a tile's last.
fn shapes_of_eight() -> [ConvShape; 6] {
    [
        shape([2, 5, 7, 8], 8, Window::square(3, 1)),
        shape([3, 8, 6, 16], 8, window([3, 3], [2, 2], [1, 1])),
        shape([5, 3, 3, 8], 16, window([1, 1], [2, 2], [0, 0])),
        shape([2, 9, 7, 8], 8, window([5, 2], [3, 2], [2, 0])),
        shape([1, 3, 4, 8], 8, window([2, 3], [2, 1], [3, 4])),
        shape([1, 5, 3, 24], 8, window([1, 1], [1, 2], [0, 0])),
    ]
}

fn forward(shape: ConvShape, epilogue: Epilogue) -> Conv2d {
    Conv2d { shape, epilogue }
}

fn grad_input(shape: ConvShape, epilogue: Epilogue) -> Conv2dGradInput {
    Conv2dGradInput { shape, epilogue }
}

/// Drivers of software adapters create these pipelines slowly, so there are few.
#[test]
fn forward_equals_twin() {
    for shape in shapes_of_eight() {
        check(Eight, 2, forward(shape, Epilogue::none()), &[F16, F16, F32], shape.n_patch());
    }
    // Two adjacent blocks, of which the second is incomplete.
    let wide = shape([2, 5, 5, 8], 40, Window::square(3, 1));
    check(Eight, 2, forward(wide, Epilogue::bias(&Activation::relu())), &[F16, F16, F32, F16], wide.n_patch());
    let sixteen = shape([3, 5, 6, 16], 48, window([3, 3], [1, 2], [1, 1]));
    check(Sixteen, 2, forward(sixteen, Epilogue::bias(&Activation::relu())), &[F16; 4], sixteen.n_patch());
}

#[test]
fn gradients_of_the_input_equal_twin() {
    for shape in shapes_of_eight() {
        check(Eight, 2, grad_input(shape, Epilogue::none()), &[F16, F16, F32], shape.window.n_taps() * shape.n_out);
    }
    let wide = shape([2, 7, 6, 48], 16, window([3, 3], [2, 1], [1, 1]));
    check(Sixteen, 2, grad_input(wide, output_grad(&Activation::tanh())), &[F16; 4], wide.window.n_taps() * wide.n_out);
}

/// Parts that end within a depth, the last one within a matrix; columns beyond a tile's last; a batch with fewer pixels than a
/// part.
#[test]
fn gradients_of_the_weights_equal_twin() {
    for shape in shapes_of_eight() {
        check(Eight, 2, Conv2dGradWeight { shape }, &[F16, F16, F32], shape.y().n_pixels());
    }
    let two_runs = shape([3, 15, 13, 8], 8, window([2, 1], [1, 1], [0, 0]));
    check(Eight, 2, Conv2dGradWeight { shape: two_runs }, &[F16, F16, F32], two_runs.y().n_pixels());
    let sixteen = shape([3, 5, 6, 16], 48, window([3, 3], [1, 2], [1, 1]));
    check(Sixteen, 2, Conv2dGradWeight { shape: sixteen }, &[F16; 3], sixteen.y().n_pixels());
    let wide = shape([2, 9, 8, 16], 40, window([3, 2], [1, 1], [1, 0]));
    check(Eight, 2, Conv2dGradWeight { shape: wide }, &[F16, F16, F32], wide.y().n_pixels());
    // 32 parts of 257 pixels, which become 31 parts of whole matrices.
    let empty_run = shape([1, 8225, 1, 16], 16, window([2, 1], [1, 1], [0, 0]));
    check(Sixteen, 2, Conv2dGradWeight { shape: empty_run }, &[F16, F16, F32], empty_run.y().n_pixels());
}

/// If subgroups are smaller than usual, some have no block and only gather; if they are larger, they process several blocks.
#[test]
fn any_number_of_subgroups_equals_twin() {
    let Some(adapter) = gpu().map(|gpu| gpu.recorder.adapter().clone()) else { return };
    let narrow = shape([2, 5, 7, 16], 8, Window::square(3, 1));
    for of_lanes in [32, 4] {
        let adapter = with_units(&adapter, Eight).with_subgroups([of_lanes; 2]);
        check_on(&adapter, 2, forward(narrow, Epilogue::none()), &[F16; 3], narrow.n_patch());
        check_on(&adapter, 2, Conv2dGradWeight { shape: narrow }, &[F16, F16, F32], narrow.y().n_pixels());
    }
}

/// Uses tensor cores if the adapter has them, else tiles.
#[test]
fn the_units_of_this_adapter_are_used() {
    let Some(adapter) = gpu().map(|gpu| gpu.recorder.adapter().clone()) else { return };
    let hardware = adapter.with_kind(AdapterKind::Hardware);
    let family = if hardware.coop.is_some() { ".coop" } else { ".tiled" };
    let check = |kernel: Result<Box<dyn Kernel>, Error>, n: usize| {
        let kernel = AsOnHardware(kernel.unwrap_or_else(|error| panic!("{error}")));
        let label = kernel.dispatches(&hardware).expect("a form")[0].label;
        assert!(label.ends_with(family), "{label} on `{}`, which has {:?}", hardware.name, hardware.coop);
        gpu_equals_twin_within(&kernel, &given(&mut Random::new(n as u64), &kernel), Tolerance::of_sum(n));
    };
    let size = hardware.coop.map_or(8, CoopShape::size);
    let of_units = |shape: ConvShape| {
        let x = Images { n_channels: shape.x.n_channels / 8 * size, ..shape.x };
        ConvShape { x, n_out: shape.n_out / 8 * size, ..shape }
    };
    for shape in shapes_of_eight().map(of_units) {
        let (n, n_back) = (shape.n_patch(), shape.window.n_taps() * shape.n_out);
        check(stored(forward(shape, Epilogue::bias(&Activation::relu())), &[F16, F16, F32, F16]), n);
        check(stored(grad_input(shape, output_grad(&Activation::relu())), &[F16; 4]), n_back);
        check(stored(Conv2dGradWeight { shape }, &[F16, F16, F32]), shape.y().n_pixels());
    }
}

#[test]
fn what_units_cannot_compute_goes_to_tiles() {
    let Some(adapter) = gpu().map(|gpu| gpu.recorder.adapter().clone()) else { return };
    let label = |[n_channels, n_out]: [usize; 2], dtypes: &[DType], adapter: &Adapter| {
        let kernel = stored(forward(shape([1, 4, 4, n_channels], n_out, Window::square(3, 1)), Epilogue::none()), dtypes);
        kernel.unwrap_or_else(|error| panic!("{error}")).dispatches(adapter).expect("a form")[0].label
    };
    let units = with_units(&adapter, Sixteen);
    assert_eq!(label([16, 32], &[F16; 3], &units), "kernels.conv2d.coop", "whole matrices");
    assert_eq!(label([24, 32], &[F16; 3], &units), "kernels.conv2d.tiled", "channels of x end within a matrix");
    assert_eq!(label([16, 24], &[F16; 3], &units), "kernels.conv2d.tiled", "and those of y");
    assert_eq!(label([24, 24], &[F16; 3], &with_units(&adapter, Eight)), "kernels.conv2d.coop", "not within one of 8 by 8");
    assert_eq!(label([16, 32], &[F32; 3], &units), "kernels.conv2d.tiled", "f32 is not rounded");
    assert_eq!(label([16, 32], &[F16, DType::Bf16, F16], &units), "kernels.conv2d.tiled", "bf16 is not f16");
    let limits = wgpu::Limits { max_compute_workgroup_storage_size: 16384, ..units.limits.clone() };
    let small = units.clone().with_subgroups([units.subgroup_min_size, 32]).with_limits(limits);
    assert_eq!(label([16, 32], &[F16; 3], &small), "kernels.conv2d.tiled", "a group has no room for its patches");
    let few_pixels = Conv2dGradWeight { shape: shape([1, 3, 5, 16], 16, Window::square(3, 1)) };
    let kernel = stored(few_pixels, &[F16; 3]).unwrap_or_else(|error| panic!("{error}"));
    let dispatches = kernel.dispatches(&with_units(&adapter, Sixteen)).expect("a form");
    assert_eq!(dispatches[0].label, "kernels.conv2d_grad_weight.tiled", "fewer pixels than a matrix has");
}
