//! Tensor cores on any adapter: kernels with plain WGSL in place of the cooperative operations.

use brisk_kernels::*;

use crate::close::Tolerance;
use crate::gpu::{gpu, gpu_with, say};
use crate::random::Random;
use crate::run::*;

/// The cooperative operations in plain WGSL: an operand is a pointer to its memory, and each invocation of a subgroup has every
/// n-th element of a sum.
fn emulated(wgsl: &str, shape: CoopShape, n_matrices: usize) -> String {
    let size = shape.size();
    let wgsl = if n_matrices < 4 { without_more_matrices(wgsl) } else { wgsl.to_owned() };
    let mut source = wgsl.replace("enable wgpu_cooperative_matrix;", "").replace("coopMultiplyAdd(", "multiply_add(");
    // Subgroups have at least 8 invocations.
    let of_sum = format!("array<f32, {}>", size * size / 8);
    for (name, role, emulated) in [("OfA", "f16, A", "vec3u"), ("OfB", "f16, B", "vec3u"), ("Sum", "f32, C", &of_sum)] {
        let of_units = format!("alias {name} = coop_mat{size}x{size}<{role}>;");
        assert!(source.contains(&of_units), "no `{of_units}`");
        source = source.replace(&of_units, &format!("alias {name} = {emulated};"));
    }
    let mut held = [None; 3];
    let lines: Vec<String> = source.lines().map(|line| emulated_line(line, &source, &mut held)).collect();
    let [Some(a), Some(b), Some(results)] = held else { panic!("operands and results are {held:?}") };
    let first_buffer = source.split("var<storage, read> ").nth(1).and_then(|rest| rest.split(':').next()).expect("an operand");
    let functions = format!(
        "
        var<private> my_lane: u32;
        var<private> my_lanes: u32;
        fn element_of_a(i: u32) -> f32 {{ return f32({}); }}
        fn element_of_b(i: u32) -> f32 {{ return f32({}); }}
        fn store_rows(sum: Sum, at: u32, stride: u32) {{
            var mine = sum;
            for (var e = 0u; e * my_lanes < SIZE * SIZE; e += 1u) {{
                let i = e * my_lanes + my_lane;
                {results}[at + i / SIZE * stride + i % SIZE] = mine[e];
            }}
        }}
        fn multiply_add(of_a: OfA, of_b: OfB, sum: Sum) -> Sum {{
            var mine = sum;
            // A driver that knew the number of iterations would unroll the loop.
            let end = min(SIZE, 4u * arrayLength(&{first_buffer}));
            for (var e = 0u; e * my_lanes < SIZE * SIZE; e += 1u) {{
                let place = vec2u(e * my_lanes + my_lane) / vec2u(SIZE, 1u) % SIZE;
                for (var k = 0u; k < end; k += 1u) {{
                    mine[e] += element_of_a(of_a.x + place.x * of_a.y + k * of_a.z)
                        * element_of_b(of_b.x + k * of_b.y + place.y * of_b.z);
                }}
            }}
            return mine;
        }}\n",
        element(&source, a),
        element(&source, b),
    );
    let source = lines.join("\n");
    let main = source.find("fn main(\n").expect("an entry point") + "fn main(\n".len();
    let has_lanes = source.contains("@builtin(subgroup_size)");
    let lanes = "@builtin(subgroup_invocation_id) lane: u32,\n@builtin(subgroup_size) n_lanes: u32,\n";
    let source = format!("{}{}{}", &source[..main], if has_lanes { "" } else { lanes }, &source[main..]);
    let body = main + source[main..].find("\n) {\n").expect("a body") + "\n) {\n".len();
    let source = format!("{}my_lane = lane; my_lanes = n_lanes;\n{}{functions}", &source[..body], &source[body..]);
    for left in ["coop_mat", "coopLoad", "coopStore", "coopMultiply"] {
        assert!(!source.contains(left), "`{left}` is not emulated: {source}");
    }
    source
}

/// Without the code for more than 2 matrices: a software adapter's driver would also remove it, but only after a long
/// compilation.
fn without_more_matrices(wgsl: &str) -> String {
    let mut left_out = None;
    let is_for_two = |line: &&str| {
        let indent = line.len() - line.trim_start().len();
        if line.trim() == "if MATRICES == 4u {" {
            left_out = Some(indent);
        }
        let is_left_out = left_out.is_some();
        left_out = left_out.filter(|&start| indent > start || line.trim() != "}");
        !is_left_out
    };
    wgsl.lines().filter(is_for_two).map(|line| format!("{line}\n")).collect()
}

/// Element `i` of an operand, which may be stored in vectors.
fn element(source: &str, buffer: &str) -> String {
    let index = if in_vectors(source, buffer) { "[i / 4u][i % 4u]" } else { "[i]" };
    format!("{buffer}{index}")
}

fn in_vectors(source: &str, buffer: &str) -> bool {
    let has = |of: &str| source.contains(&format!("{buffer}: array<{of}"));
    has("vec4<f16>") || has("PATCH") && source.contains("alias PATCH = vec4<f16>;")
}

/// A line of a module, for the buffers of a, b and the results. Element (i, j) of an operand is at x + i y + j z.
fn emulated_line<'a>(line: &'a str, source: &str, held: &mut [Option<&'a str>; 3]) -> String {
    let calls = [
        ("return coopLoad<OfA>(&", 0, "return vec3u(AT, 1u, STRIDE);"),
        ("return coopLoadT<OfA>(&", 0, "return vec3u(AT, STRIDE, 1u);"),
        ("return coopLoad<OfB>(&", 1, "return vec3u(AT, 1u, STRIDE);"),
        ("return coopLoadT<OfB>(&", 1, "return vec3u(AT, STRIDE, 1u);"),
        ("coopStoreT(sum, &", 2, "store_rows(sum, AT, STRIDE);"),
    ];
    let Some((args, arg, plain)) =
        calls.iter().find_map(|&(head, arg, plain)| Some((line.trim().strip_prefix(head)?, arg, plain)))
    else {
        return line.to_owned();
    };
    let parts = args.strip_suffix(");").and_then(|args| args.rsplit_once("], "));
    let (element, stride) = parts.unwrap_or_else(|| panic!("`{line}`"));
    let (buffer, at) = element.split_once('[').unwrap_or_else(|| panic!("`{line}`"));
    assert!(held[arg].is_none_or(|known| known == buffer), "`{line}`: another buffer than {held:?}");
    held[arg] = Some(buffer);
    let width = if in_vectors(source, buffer) { 4 } else { 1 };
    plain.replace("AT", &format!("{width}u * ({at})")).replace("STRIDE", &format!("{width}u * ({stride})"))
}

/// A kernel on an adapter that is declared to have tensor cores.
///
/// llvmpipe ends loops after a total of 65535 iterations per invocation, so sums are short if there are many matrices.
#[derive(Debug)]
struct Emulated {
    adapter: Adapter,
    /// Matrices of a subgroup along each side, overriding the kernel's choice.
    n_matrices: usize,
    kernel: Box<dyn Kernel>,
}

impl Kernel for Emulated {
    fn signature(&self) -> Signature {
        self.kernel.signature()
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let mut dispatches = self.kernel.dispatches(&self.adapter)?;
        let shape = self.adapter.coop.expect("units");
        for dispatch in dispatches.iter_mut().filter(|dispatch| dispatch.label.ends_with(".coop")) {
            dispatch.wgsl = emulated(&dispatch.wgsl.source(), shape, self.n_matrices).into();
            if let Some(matrices) = dispatch.constants.iter_mut().find(|(name, _)| *name == "MATRICES") {
                matrices.1 = self.n_matrices as f64;
            }
        }
        Ok(dispatches)
    }
    fn twin(&self, args: &mut TwinArgs<'_>) {
        self.kernel.twin(args);
    }
}

/// `adapter` declared to have tensor cores, and subgroups of at least 8 invocations.
pub(crate) fn with_units(adapter: &Adapter, shape: CoopShape) -> Adapter {
    let subgroups = [adapter.subgroup_min_size, adapter.subgroup_max_size].map(|n_lanes| n_lanes.max(8));
    let hardware = adapter.clone().with_kind(AdapterKind::Hardware).with_features(adapter.features | CoopShape::FEATURES);
    hardware.with_subgroups(subgroups).with_coop(Some(shape))
}

pub(crate) fn given(random: &mut Random, kernel: &dyn Kernel) -> Vec<Words> {
    let reads = kernel.args().into_iter().filter(|arg| arg.access == Access::Read);
    reads
        .map(|arg| {
            let floats = random.floats(arg.len);
            if arg.dtype == DType::F32 { words(&floats) } else { half_words(arg.dtype, &floats) }
        })
        .collect()
}

/// `kernel` stored as `dtypes`, on tensor cores with matrices of one size, and with as many matrices for each subgroup; sums over
/// `n` products.
#[track_caller]
pub(crate) fn check(shape: CoopShape, n_matrices: usize, kernel: impl Kernel, dtypes: &[DType], n: usize) {
    let Some(adapter) = gpu().map(|gpu| gpu.recorder.adapter().clone()) else { return };
    check_on(&with_units(&adapter, shape), n_matrices, kernel, dtypes, n);
}

/// The same on an adapter declared as `adapter`.
#[track_caller]
pub(crate) fn check_on(adapter: &Adapter, n_matrices: usize, kernel: impl Kernel, dtypes: &[DType], n: usize) {
    let needed = wgpu::Features::SHADER_F16 | wgpu::Features::SUBGROUP;
    let Some(real) = gpu_with(needed).map(|gpu| gpu.recorder.adapter().clone()) else { return };
    if real.subgroup_min_size < 8 {
        say(&format!("COOPERATIVE MATRICES ARE NOT EMULATED on `{}`, whose subgroups have fewer than 8 invocations", real.name));
        return;
    }
    let kernel = stored(kernel, dtypes).unwrap_or_else(|error| panic!("{error}"));
    let labels: Vec<_> = kernel.dispatches(adapter).expect("a form").iter().map(|of| of.label).collect();
    assert!(labels[0].ends_with(".coop"), "{kernel:?}: {labels:?}");
    let given = given(&mut Random::new(n as u64), &*kernel);
    gpu_equals_twin_within(&Emulated { adapter: adapter.clone(), n_matrices, kernel }, &given, Tolerance::of_sum(n));
}
