//! Products on matrix units: where an adapter has them, on these, and on any adapter with plain WGSL in the place of what they do.

use brisk_kernels::CoopShape::{Eight, Sixteen};
use brisk_kernels::DType::{F16, F32};
use brisk_kernels::*;

use crate::close::Tolerance;
use crate::gpu::gpu;
use crate::random::Random;
use crate::run::*;

const TRANSPOSES: [Transpose; 4] = [Transpose::None, Transpose::A, Transpose::B, Transpose::Both];

/// What matrix units do, in plain WGSL: an operand is where it lies, and each lane of a subgroup has every so many elements of a sum.
fn emulated(wgsl: &str, shape: CoopShape) -> String {
    let size = shape.size();
    let mut source = wgsl.replace("enable wgpu_cooperative_matrix;", "").replace("coopMultiplyAdd(", "multiply_add(");
    // Subgroups have at least 8 lanes.
    let of_sum = format!("array<f32, {}>", size * size / 8);
    for (name, role, emulated) in [("OfA", "f16, A", "vec3u"), ("OfB", "f16, B", "vec3u"), ("Sum", "f32, C", &of_sum)] {
        let of_units = format!("alias {name} = coop_mat{size}x{size}<{role}>;");
        assert!(source.contains(&of_units), "no `{of_units}`");
        source = source.replace(&of_units, &format!("alias {name} = {emulated};"));
    }
    let of_units = [
        // Element (i, j) is at x + i y + j z.
        ("return coopLoad<OfA>(&a[", "], ", "return vec3u(", ", 1u, "),
        ("return coopLoad<OfB>(&b[", "], ", "return vec3u(", ", 1u, "),
        ("return coopLoadT<OfA>(&a[", "], ", "return by_rows(", ", "),
        ("return coopLoadT<OfB>(&b[", "], ", "return by_rows(", ", "),
    ];
    let line_of = |line: &str| {
        let replaced = of_units.iter().find(|(head, ..)| line.trim_start().starts_with(head));
        replaced.map_or_else(|| line.to_owned(), |(head, end, of, then)| line.replace(head, of).replace(end, then))
    };
    source = source.lines().map(|line| line_of(line) + "\n").collect();
    source = source.replace("coopStoreT(sum, &results[place.results], SIZE);", "store_rows(sum, place.results);");
    let start = "let n_beside =";
    assert!(source.contains(start), "no `{start}`");
    source = source.replace(start, "my_lane = lane; my_lanes = n_lanes; let n_beside =");
    source += "
        var<private> my_lane: u32;
        var<private> my_lanes: u32;
        fn by_rows(at: u32, stride: u32) -> vec3u { return vec3u(at, stride, 1u); }
        fn store_rows(sum: Sum, at: u32) {
            var mine = sum;
            for (var e = 0u; e * my_lanes < SIZE * SIZE; e += 1u) { results[at + e * my_lanes + my_lane] = mine[e]; }
        }
        fn multiply_add(of_a: OfA, of_b: OfB, sum: Sum) -> Sum {
            var mine = sum;
            // A driver that knew the end would write out every turn.
            let end = min(SIZE, params.k);
            for (var e = 0u; e * my_lanes < SIZE * SIZE; e += 1u) {
                let place = vec2u(e * my_lanes + my_lane) / vec2u(SIZE, 1u) % SIZE;
                for (var k = 0u; k < end; k += 1u) {
                    mine[e] += f32(a[of_a.x + place.x * of_a.y + k * of_a.z]) * f32(b[of_b.x + k * of_b.y + place.y * of_b.z]);
                }
            }
            return mine;
        }\n";
    for left in ["coop_mat", "coopLoad", "coopStore", "coopMultiply"] {
        assert!(!source.contains(left), "`{left}` is not emulated: {source}");
    }
    source
}

/// A kernel on an adapter that is said to have matrix units.
///
/// llvmpipe ends loops after 65535 turns of all of them in a lane, so sums are short where there are many matrices.
#[derive(Debug)]
struct Emulated {
    shape: CoopShape,
    /// Matrices of a subgroup along either side, as if by its own choice.
    n_matrices: usize,
    kernel: Box<dyn Kernel>,
}

impl Kernel for Emulated {
    fn name(&self) -> &'static str {
        self.kernel.name()
    }
    fn args(&self) -> Vec<Arg> {
        self.kernel.args()
    }
    fn dispatches(&self, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let mut dispatches = self.kernel.dispatches(&with_units(adapter, self.shape))?;
        for dispatch in dispatches.iter_mut().filter(|dispatch| dispatch.label.ends_with(".coop")) {
            dispatch.wgsl = emulated(dispatch.wgsl, self.shape).leak();
            let matrices = dispatch.constants.iter_mut().find(|(name, _)| *name == "MATRICES").expect("a constant of the module");
            matrices.1 = self.n_matrices as f64;
        }
        Ok(dispatches)
    }
    fn twin(&self, args: &mut TwinArgs<'_>) {
        self.kernel.twin(args);
    }
}

fn with_units(adapter: &Adapter, shape: CoopShape) -> Adapter {
    let features = adapter.features | CoopShape::FEATURES;
    Adapter { kind: AdapterKind::Hardware, coop: Some(shape), features, ..adapter.clone() }
}

fn given(random: &mut Random, kernel: &dyn Kernel) -> Vec<Words> {
    let reads = kernel.args().into_iter().filter(|arg| arg.access == Access::Read);
    reads
        .map(|arg| {
            let floats = random.floats(arg.len);
            if arg.dtype == DType::F32 { words(&floats) } else { half_words(arg.dtype, &floats) }
        })
        .collect()
}

/// `kernel` stored as `dtypes` by units of a size, and as many matrices for each subgroup; sums over `n` places.
#[track_caller]
fn check(shape: CoopShape, n_matrices: usize, kernel: impl Kernel, dtypes: &[DType], n: usize) {
    let Some(adapter) = gpu().map(|gpu| gpu.recorder.adapter().clone()) else { return };
    let needed = wgpu::Features::SHADER_F16 | wgpu::Features::SUBGROUP;
    assert!(adapter.features.contains(needed), "the emulation needs {needed:?}, which `{}` lacks", adapter.name);
    let kernel = stored(kernel, dtypes).unwrap_or_else(|error| panic!("{error}"));
    let labels: Vec<_> = kernel.dispatches(&with_units(&adapter, shape)).expect("a form").iter().map(|of| of.label).collect();
    assert!(labels[0].ends_with(".coop"), "{kernel:?}: {labels:?}");
    let given = given(&mut Random::new(n as u64), &*kernel);
    gpu_equals_twin_within(&Emulated { shape, n_matrices, kernel }, &given, Tolerance::of_sum(n));
}

/// Drivers of software adapters are slow to make these pipelines, so there are few.
#[test]
fn products_equal_twin() {
    let product = |transpose, m, n, k, epilogue| Matmul { m, n, k, transpose, epilogue };
    for transpose in TRANSPOSES {
        check(Eight, 2, product(transpose, 24, 16, 40, Epilogue::None), &[F16; 3], 40);
    }
    // Over the edges of several blocks, as many as share groups.
    check(Sixteen, 2, product(Transpose::B, 80, 112, 16, Epilogue::Bias(Activation::Relu)), &[F16, F16, F32, F16], 16);
    check(Sixteen, 4, product(Transpose::None, 80, 112, 32, Epilogue::None), &[F16, F16, F32], 32);
}

#[test]
fn batches_and_runs_of_a_sum_equal_twin() {
    let batch = BatchedMatmul { n_batch: 3, m: 48, n: 16, k: 16, transpose: Transpose::B };
    check(Sixteen, 4, batch, &[F16; 3], 16);
    check(Eight, 4, batch, &[F16, F16, F32], 16);
    // Two runs, of 512 places and of 16.
    let grad = Matmul { m: 16, n: 32, k: 528, transpose: Transpose::A, epilogue: Epilogue::None };
    check(Eight, 2, grad, &[F16, F16, F32], 528);
}

/// Where the adapter has units, they compute; where it has none, tiles do.
#[test]
fn the_units_of_this_adapter_are_used() {
    let Some(adapter) = gpu().map(|gpu| gpu.recorder.adapter().clone()) else { return };
    let adapter = Adapter { kind: AdapterKind::Hardware, ..adapter };
    let product = Matmul { m: 64, n: 64, k: 64, transpose: Transpose::B, epilogue: Epilogue::Bias(Activation::Relu) };
    let label = |dtypes: &[DType]| {
        let kernel = stored(product, dtypes).unwrap_or_else(|error| panic!("{error}"));
        kernel.dispatches(&adapter).expect("a form")[0].label
    };
    let expected = if adapter.coop.is_some() { "kernels.matmul.coop" } else { "kernels.matmul.tiled" };
    assert_eq!(label(&[F16, F16, F32, F16]), expected, "on `{}`, which has {:?}", adapter.name, adapter.coop);
    assert_eq!(label(&[F32; 4]), "kernels.matmul.tiled", "f32 is not rounded");
    assert_eq!(label(&[F16, F32, F32, F16]), "kernels.matmul.tiled", "nor is one operand");
    let mut random = Random::new(3);
    let kernel = stored(product, &[F16, F16, F32, F16]).unwrap_or_else(|error| panic!("{error}"));
    gpu_equals_twin_within(&*kernel, &given(&mut random, &*kernel), Tolerance::of_sum(product.k));
    let refused = product.dispatches_by(MatmulFamily::Coop, &Adapter { coop: None, ..adapter }).expect_err("no units");
    let ending = "expected an adapter that lists matrices of f16 with sums in f32, and the feature `coop`";
    assert!(refused.to_string().ends_with(ending), "{refused}");
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
        let product = Matmul { m, n, k, transpose: Transpose::None, epilogue: Epilogue::None };
        let kernel = stored(product, &[DType::F16; 3]).unwrap_or_else(|error| panic!("{error}"));
        let dispatches = kernel.dispatches(&with_units(&adapter, shape)).expect("a form");
        assert_eq!(dispatches[0].label, expected, "{product:?} by {shape:?}");
    }
}
