//! Products on tensor cores, if an adapter has them, and on any adapter with plain WGSL in place of the cooperative operations.

use brisk_kernels::CoopShape::{Eight, Sixteen};
use brisk_kernels::DType::{F16, F32};
use brisk_kernels::*;

use crate::close::Tolerance;
use crate::emulated::{check, given, with_units};
use crate::gpu::gpu;
use crate::random::Random;
use crate::run::{AsOnHardware, gpu_equals_twin_within};

const TRANSPOSES: [Transpose; 4] = [Transpose::None, Transpose::A, Transpose::B, Transpose::Both];

/// Drivers of software adapters create these pipelines slowly, so there are few.
#[test]
fn products_equal_twin() {
    let product = |transpose, m, n, k, epilogue| Matmul { n_batch: 1, m, n, k, transpose, epilogue };
    for transpose in TRANSPOSES {
        check(Eight, 2, product(transpose, 24, 16, 40, Epilogue::none()), &[F16; 3], 40);
    }
    // Across the edges of several blocks, as many as share workgroups.
    check(Sixteen, 2, product(Transpose::B, 80, 112, 16, Epilogue::bias(&Activation::relu())), &[F16, F16, F32, F16], 16);
    check(Sixteen, 4, product(Transpose::None, 80, 112, 32, Epilogue::none()), &[F16, F16, F32], 32);
}

#[test]
fn batches_and_runs_of_a_sum_equal_twin() {
    let batch = Matmul { n_batch: 3, m: 48, n: 16, k: 16, transpose: Transpose::B, epilogue: Epilogue::none() };
    check(Sixteen, 4, batch.clone(), &[F16; 3], 16);
    check(Eight, 4, batch, &[F16, F16, F32], 16);
    // Two parts of K, of 512 indices and of 16.
    let grad = Matmul { n_batch: 1, m: 16, n: 32, k: 528, transpose: Transpose::A, epilogue: Epilogue::none() };
    check(Eight, 2, grad, &[F16, F16, F32], 528);
}

/// Uses tensor cores if the adapter has them, else tiles.
#[test]
fn the_units_of_this_adapter_are_used() {
    let Some(adapter) = gpu().map(|gpu| gpu.recorder.adapter().clone()) else { return };
    let adapter = adapter.with_kind(AdapterKind::Hardware);
    let product =
        Matmul { n_batch: 1, m: 64, n: 64, k: 64, transpose: Transpose::B, epilogue: Epilogue::bias(&Activation::relu()) };
    let label = |dtypes: &[DType]| {
        let kernel = stored(product.clone(), dtypes).unwrap_or_else(|error| panic!("{error}"));
        kernel.dispatches(&adapter).expect("a form")[0].label
    };
    let expected = if adapter.coop.is_some() { "kernels.matmul.coop" } else { "kernels.matmul.tiled" };
    assert_eq!(label(&[F16, F16, F32, F16]), expected, "on `{}`, which has {:?}", adapter.name, adapter.coop);
    assert_eq!(label(&[F32; 4]), "kernels.matmul.tiled", "f32 is not rounded");
    assert_eq!(label(&[F16, F32, F32, F16]), "kernels.matmul.tiled", "nor is one operand");
    let mut random = Random::new(3);
    let kernel = AsOnHardware(stored(product.clone(), &[F16, F16, F32, F16]).unwrap_or_else(|error| panic!("{error}")));
    gpu_equals_twin_within(&kernel, &given(&mut random, &kernel), Tolerance::of_sum(product.k));
    let refused = product.dispatches_by(MatmulFamily::Coop, &adapter.with_coop(None)).expect_err("no units");
    let ending = "with workgroup memory for four of them, and a device that was opened to use them";
    assert!(refused.to_string().ends_with(ending), "{refused}");
}

/// Workgroup memory holds a matrix of sums for each of four blocks.
#[test]
fn memory_that_is_too_small_goes_to_tiles() {
    let product = Matmul { n_batch: 1, m: 64, n: 64, k: 64, transpose: Transpose::None, epilogue: Epilogue::none() };
    for (n_lanes, n_bytes, expected) in [
        (32, 16 << 10, "kernels.matmul.coop"),
        (8, 16 << 10, "kernels.matmul.coop"),
        (8, 4 << 10, "kernels.matmul.coop"),
        (8, 4095, "kernels.matmul.tiled"),
    ] {
        let adapter = Adapter::new("sample", AdapterKind::Hardware)
            .with_features(CoopShape::FEATURES)
            .with_limits(wgpu::Limits { max_compute_workgroup_storage_size: n_bytes, ..wgpu::Limits::default() })
            .with_subgroups([n_lanes, 32])
            .with_coop(Some(Sixteen));
        let kernel = stored(product.clone(), &[F16; 3]).unwrap_or_else(|error| panic!("{error}"));
        let dispatches = kernel.dispatches(&adapter).expect("a form");
        assert_eq!(dispatches[0].label, expected, "subgroups of {n_lanes} lanes or more, {n_bytes} bytes");
    }
}

#[test]
fn sizes_that_are_no_multiples_go_to_tiles() {
    let Some(adapter) = gpu().map(|gpu| gpu.recorder.adapter().clone()) else { return };
    for (m, n, k, shape, expected) in [
        (64, 64, 64, Sixteen, "kernels.matmul.coop"),
        (64, 64, 40, Sixteen, "kernels.matmul.tiled"),
        (64, 64, 40, Eight, "kernels.matmul.coop"),
        (60, 64, 64, Eight, "kernels.matmul.tiled"),
        (64, 28, 64, Eight, "kernels.matmul.tiled"),
    ] {
        let product = Matmul { n_batch: 1, m, n, k, transpose: Transpose::None, epilogue: Epilogue::none() };
        let kernel = stored(product.clone(), &[DType::F16; 3]).unwrap_or_else(|error| panic!("{error}"));
        let dispatches = kernel.dispatches(&with_units(&adapter, shape)).expect("a form");
        assert_eq!(dispatches[0].label, expected, "{product:?} by {shape:?}");
    }
}

#[test]
fn products_of_this_device_are_checked() {
    let Some(gpu) = gpu() else { return };
    let recorder = || gpu::Recorder::new(&gpu.device).with_coop(gpu.recorder.adapter().coop);
    recorder().check_products(&gpu.queue).unwrap_or_else(|error| panic!("as it chooses: {error}"));
    for family in [MatmulFamily::Direct, MatmulFamily::Tiled] {
        let recorder = recorder().with_matmul_family(family);
        let checked = recorder.expect("every device can run it").check_products(&gpu.queue);
        checked.unwrap_or_else(|error| panic!("{family:?}: {error}"));
    }
    let refused = gpu::Recorder::new(&gpu.device).with_matmul_family(MatmulFamily::Coop).expect_err("without matrices");
    assert!(refused.to_string().contains("Coop on"), "{refused}");
}

#[test]
fn families_have_names() {
    assert_eq!("direct".parse::<MatmulFamily>(), Ok(MatmulFamily::Direct));
    let unknown = "coops".parse::<MatmulFamily>().expect_err("no family").to_string();
    assert_eq!(unknown, "no family of matrix products is called `coops`; choose direct, tiled or coop");
}
