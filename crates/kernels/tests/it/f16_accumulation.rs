//! Products of f16 that are added in f16, 16 at a time, if an adapter allows it.

use brisk_kernels::DType::{Bf16, F16, F32};
use brisk_kernels::*;

use crate::gpu::{gpu, gpu_with};
use crate::random::Random;
use crate::run::*;
use crate::samples::output_grad;

/// The number of products that are added in f16.
const SUM_LEN: usize = 16;

/// A kernel whose adapter is declared as hardware without tensor cores, which may add in f16.
#[derive(Debug)]
struct Allowed {
    kernel: Box<dyn Kernel>,
    /// Tiles of this size, as if the product were large enough for them to fill the adapter.
    tiles: Option<Tiles>,
}

impl Kernel for Allowed {
    fn signature(&self) -> Signature {
        self.kernel.signature()
    }

    fn dispatches(&self, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let mut dispatches = self.kernel.dispatches(&allowing(adapter))?;
        if let Some(Tiles { invocations, blocks, .. }) = self.tiles {
            // Smaller tiles give more than enough workgroups.
            let larger = [
                ("INVOCATION_ROWS", invocations[0]),
                ("INVOCATION_COLS", invocations[1]),
                ("ROW_BLOCKS", blocks[0]),
                ("COL_BLOCKS", blocks[1]),
            ];
            for (constant, value) in larger {
                let constant = dispatches[0].constants.iter_mut().find(|(name, _)| *name == constant).expect("one of tiles");
                constant.1 = value as f64;
            }
        }
        Ok(dispatches)
    }
    fn twin(&self, args: &mut TwinArgs<'_>) {
        self.kernel.twin(args);
    }
}

fn allowing(adapter: &Adapter) -> Adapter {
    adapter.clone().with_kind(AdapterKind::Hardware).with_coop(None).with_f16_accumulation(true)
}

/// Whether the first dispatch adds in f16.
fn adds_in_f16(kernel: &dyn Kernel, adapter: &Adapter) -> bool {
    let dispatches = kernel.dispatches(adapter).unwrap_or_else(|error| panic!("{error}"));
    dispatches[0].wgsl.source().contains("alias SUM = vec4<f16>;")
}

/// Numbers with magnitudes from 1/4 to 1: products and their sums are then multiples of `2^-14`, none of which is below f16's
/// normal numbers.
fn factors(random: &mut Random, n: usize) -> Vec<f32> {
    (0..n).map(|_| random.float()).map(|v| (0.25 + 0.75 * v.abs()).copysign(v)).collect()
}

/// `kernel` stored as `dtypes`, with operands in f16 and results in f32, which adds the same products as `plain`. The results
/// differ by at most the error of adding in f16, and by more than the error of adding in f32.
#[track_caller]
fn check(kernel: impl Kernel + Clone, plain: &dyn Kernel, dtypes: &[DType], tiles: Option<Tiles>, n_products: usize) {
    let mut random = Random::new(n_products as u64);
    let reads: Vec<Arg> = kernel.args().into_iter().filter(|arg| arg.access == Access::Read).collect();
    let given: Vec<Words> = reads
        .iter()
        .zip(dtypes)
        .map(|(arg, &dtype)| {
            let floats = factors(&mut random, arg.len);
            if dtype == F32 { words(&floats) } else { half_words(dtype, &floats) }
        })
        .collect();
    let sizes = [0, 1].map(|i| words(&floats_of(F16, &given[i], reads[i].len).iter().map(|v| v.abs()).collect::<Vec<_>>()));

    let kernel = stored(kernel, dtypes).unwrap_or_else(|error| panic!("{error}"));
    let kernel = Allowed { kernel, tiles };
    let expected = twin_floats(&kernel, &given);
    let sums_of_sizes = twin_floats(plain, &sizes);
    let Some(mut gpu) = gpu_with(wgpu::Features::SHADER_F16) else { return };
    assert!(adds_in_f16(&*kernel.kernel, &allowing(gpu.recorder.adapter())), "{kernel:?} on `{}`", gpu.recorder.adapter().name);
    let found = run_gpu(&mut gpu, &kernel, &given);
    drop(gpu);

    // A sum of n products, each step of which has a relative error of at most u, has an error of at most n u / (1 - n u) of the
    // sum of their magnitudes (Higham 2002, 3.1). The device decides whether a product is rounded before it is added; the first
    // of n is added to 0.
    let [u16, u32] = [2.0_f64.powi(-11), 2.0_f64.powi(-24)];
    let of_f16 = SUM_LEN as f64 * u16 / (1.0 - SUM_LEN as f64 * u16);
    let of_f32 = 2.0 * n_products as f64 * u32;
    let mut n_beyond_f32 = 0;
    for (i, ((&found, &expected), &size)) in floats(&found[0]).iter().zip(&expected).zip(&sums_of_sizes).enumerate() {
        let [off, size] = [f64::from((found - expected).abs()), f64::from(size)];
        assert!(off <= (of_f16 + of_f32) * size, "{kernel:?}[{i}] is {found}, expected {expected}, off by {off} of {size}");
        n_beyond_f32 += usize::from(off > of_f32 * size);
    }
    assert!(n_beyond_f32 > 0, "{kernel:?} is as near as sums in f32 are");
}

fn product(transpose: Transpose, [m, n, k]: [usize; 3], epilogue: Epilogue) -> Matmul {
    Matmul { n_batch: 1, m, n, k, transpose, epilogue }
}

#[track_caller]
fn check_product(matmul: Matmul, tiles: Option<Tiles>) {
    let plain = Matmul { epilogue: Epilogue::none(), ..matmul };
    let dtypes = if matmul.args().len() > plain.args().len() { vec![F16, F16, F32, F32] } else { vec![F16, F16, F32] };
    check(matmul.clone(), &plain, &dtypes, tiles, matmul.k);
}

/// Drivers of software adapters create these pipelines slowly, so there are few.
#[test]
fn products_equal_twin() {
    let grad = output_grad(&Activation::relu());
    check_product(product(Transpose::None, [20, 36, 28], Epilogue::bias(&Activation::relu())), None);
    check_product(product(Transpose::A, [4, 12, 21], Epilogue::none()), None);
    check_product(product(Transpose::B, [36, 20, 64], Epilogue::none()), Some(Tiles::MEDIUM));
    check_product(product(Transpose::Both, [12, 132, 40], grad), Some(Tiles::LARGE));
}

#[test]
fn batches_and_runs_of_a_sum_equal_twin() {
    let batch = Matmul { n_batch: 3, m: 20, n: 36, k: 24, transpose: Transpose::B, epilogue: Epilogue::none() };
    check(batch.clone(), &batch, &[F16, F16, F32], None, 24);
    // Two parts of K, of 512 indices and of 16.
    check_product(product(Transpose::A, [16, 32, 528], Epilogue::none()), None);
}

#[test]
fn convolutions_equal_twin() {
    let x = Images { n_images: 2, height: 5, width: 6, n_channels: 4 };
    let shape = ConvShape::dense(x, 8, Window { stride: [2, 1], ..Window::square(3, 1) });
    let (n_forward, n_backward, n_pixels) = (shape.n_patch(), 9 * shape.n_out, shape.y().n_pixels());
    let conv = |epilogue| Conv2d { shape, epilogue };
    check(conv(Epilogue::bias(&Activation::relu())), &conv(Epilogue::none()), &[F16, F16, F32, F32], None, n_forward);
    let grad_x = |epilogue| Conv2dGradInput { shape, epilogue };
    check(grad_x(Epilogue::none()), &grad_x(Epilogue::none()), &[F16, F16, F32], Some(Tiles::MEDIUM), n_backward);
    let grad_weight = Conv2dGradWeight { shape };
    check(grad_weight, &grad_weight, &[F16, F16, F32], None, n_pixels);
}

/// The first result of a product whose sum has `values` at these K indices of 32, and 0 at the others.
#[track_caller]
fn check_sum(values: [(usize, f32); 2], expected: f32, expected_in_f32: f32) {
    let matmul = product(Transpose::None, [1, 12, 32], Epilogue::none());
    let mut a = vec![0.0; matmul.k];
    values.iter().for_each(|&(place, value)| a[place] = value);
    let given = [half_words(F16, &a), half_words(F16, &vec![1.0; matmul.k * matmul.n])];
    let kernel = || stored(matmul.clone(), &[F16, F16, F32]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(twin_floats(&kernel(), &given), [expected_in_f32; 12], "{values:?} by the twin");
    let Some(mut gpu) = gpu_with(wgpu::Features::SHADER_F16) else { return };
    let in_f32 = run_gpu(&mut gpu, &kernel(), &given);
    let found = run_gpu(&mut gpu, &Allowed { kernel: kernel(), tiles: None }, &given);
    assert_eq!(floats(&in_f32[0]), [expected_in_f32; 12], "{values:?} in f32");
    assert_eq!(floats(&found[0]), [expected; 12], "{values:?} in f16");
}

/// 2049 is not an f16 number, so the 1 is lost if both are in one tile. This distinguishes f16 from f32 here.
#[test]
fn sums_are_of_f16_within_a_tile_and_of_f32_beyond() {
    check_sum([(0, 2048.0), (1, 1.0)], 2048.0, 2049.0);
    check_sum([(14, 1.0), (15, 2048.0)], 2048.0, 2049.0);
    check_sum([(15, 2048.0), (16, 1.0)], 2049.0, 2049.0);
}

#[test]
fn sums_beyond_the_largest_f16_are_infinite_within_a_tile() {
    check_sum([(3, 60_000.0), (12, 60_000.0)], f32::INFINITY, 120_000.0);
    check_sum([(3, -60_000.0), (12, -60_000.0)], f32::NEG_INFINITY, -120_000.0);
    check_sum([(3, 60_000.0), (19, 60_000.0)], 120_000.0, 120_000.0);
}

/// Only if it is allowed, on hardware that supports the type, and if both operands are stored in it.
#[test]
fn f32_is_added_in_elsewhere() {
    let Some(adapter) = gpu().map(|gpu| gpu.recorder.adapter().clone()) else { return };
    let allowing = allowing(&adapter).with_features(adapter.features | wgpu::Features::SHADER_F16);
    let lacking = allowing.clone().with_features(adapter.features - wgpu::Features::SHADER_F16);
    let software = allowing.clone().with_kind(AdapterKind::Software);
    let refusing = allowing.clone().with_f16_accumulation(false);
    let adds = |matmul: Matmul, dtypes: &[DType], adapter: &Adapter| {
        let kernel = stored(matmul, dtypes).unwrap_or_else(|error| panic!("{error}"));
        (adds_in_f16(&*kernel, adapter), adapter.f16_sum_len())
    };
    let vectors = product(Transpose::B, [64, 64, 40], Epilogue::none());
    assert_eq!(adds(vectors.clone(), &[F16, F16, F16], &allowing), (true, Some(SUM_LEN)));
    for dtypes in [[F16, F32, F16], [F32, F16, F16], [Bf16, Bf16, F32], [F32, F32, F16]] {
        assert!(!adds(vectors.clone(), &dtypes, &allowing).0, "{dtypes:?}");
    }
    for adapter in [&lacking, &software, &refusing] {
        assert_eq!(adds(vectors.clone(), &[F16; 3], adapter), (false, None), "{adapter:?}");
    }
    // Operands that are not read as vectors, and products that tensor cores support.
    assert!(!adds(Matmul { k: 39, ..vectors.clone() }, &[F16; 3], &allowing).0, "rows that begin within a vector");
    let features = allowing.features | CoopShape::FEATURES;
    let units = allowing.clone().with_coop(Some(CoopShape::Sixteen)).with_features(features).with_subgroups([32; 2]);
    assert!(!adds(Matmul { k: 48, ..vectors.clone() }, &[F16; 3], &units).0, "cooperative matrices add in f32");
    assert!(adds(vectors, &[F16; 3], &units).0, "40 is not a multiple of 16, so tiles compute it");
}
