// y = epilogue(op(a) b), b: [k, n], without barriers, in 64-bit words: each lane has 8 rows by 8 columns, and lanes read a for one another.
// n is a multiple of 8; any m and k.
// Twin: matmul_cpu.rs. Reads a once for 64 columns and b once for 8 rows.
// Ladder: matmul_subgroup_any.wgsl (any n) -> this -> matmul_wide.wgsl (reads a by vectors, and has more rows for a load of b).
//
// For software adapters, as matmul_wide.wgsl: for what that cannot compute, and for the thin products of a layer with few outputs, which have few rows or
// few terms.

struct Params {
    m: u32,
    n: u32,
    k: u32,
    pad: u32,
}

const ROWS = 8u;
const LANES = 8u;
override TRANSPOSE_A: u32 = 0u;
override EPILOGUE: u32 = 0u;
override ACTIVATION: u32 = 0u;
override ALPHA: f32 = 1.0;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<f32>;
@group(0) @binding(2) var<storage, read> b: array<vec4<u64>>;
// The bias [n], or the output [m, n] whose activation is gone through.
@group(0) @binding(3) var<storage, read> fused: array<vec4<u64>>;
@group(0) @binding(4) var<storage, read_write> y: array<vec4<u64>>;

// Eight columns of a row.
struct Eight {
    even: vec4f,
    odd: vec4f,
}

fn apart(pairs: vec4<u64>) -> Eight {
    return Eight(bitcast<vec4f>(vec4u(pairs)), bitcast<vec4f>(vec4u(pairs >> vec4u(32u))));
}

fn together(eight: Eight) -> vec4<u64> {
    return vec4<u64>(bitcast<vec4u>(eight.even)) | (vec4<u64>(bitcast<vec4u>(eight.odd)) << vec4u(32u));
}

// `y`, or `v` where that is NaN: told by its bits, since `clamp` may drop it.
fn or_nan(v: vec4f, y: vec4f) -> vec4f {
    return select(y, v, (bitcast<vec4u>(v) & vec4u(0x7FFFFFFFu)) > vec4u(0x7F800000u));
}

fn act(v: vec4f) -> vec4f {
    switch ACTIVATION {
        case 1u: { return select(v, vec4f(), v < vec4f()); }
        case 2u: { return select(v, ALPHA * (exp(min(v, vec4f()) / ALPHA) - 1.0), v < vec4f()); }
        case 3u: { return or_nan(v, 1.0 / (1.0 + exp(-clamp(v, vec4f(-87.0), vec4f(87.0))))); }
        case 4u: { return or_nan(v, tanh(clamp(v, vec4f(-10.0), vec4f(10.0)))); }
        default: { return v; }
    }
}

fn slope_from_output(v: vec4f) -> vec4f {
    switch ACTIVATION {
        case 1u: { return select(vec4f(), vec4f(1.0), v > vec4f()); }
        case 2u: { return select(v / ALPHA + 1.0, vec4f(1.0), v > vec4f()); }
        case 3u: { return v * (1.0 - v); }
        case 4u: { return 1.0 - v * v; }
        default: { return vec4f(1.0); }
    }
}

fn store_row(row: u32, col: u32, bias: Eight, sum: Eight) {
    if row >= params.m || col >= params.n / 8u {
        return;
    }
    let i = row * (params.n / 8u) + col;
    if EPILOGUE == 2u {
        let result = apart(fused[i]);
        y[i] = together(Eight(sum.even * slope_from_output(result.even), sum.odd * slope_from_output(result.odd)));
    } else {
        y[i] = together(Eight(act(sum.even + bias.even), act(sum.odd + bias.odd)));
    }
}

fn add(sum: Eight, b: Eight, a: f32) -> Eight {
    return Eight(fma(vec4f(a), b.even, sum.even), fma(vec4f(a), b.odd, sum.odd));
}

@compute @workgroup_size(LANES)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(subgroup_invocation_id) lane: u32,
) {
    let row = (group.z * groups.y + group.y) * ROWS;
    if row >= params.m {
        return;
    }
    let col = group.x * LANES + lane;
    let b_stride = params.n / 8u;

    // Rows and columns beyond the last read the last ones, and are not stored: every lane has to stay for the broadcasts.
    var a_at = min(row + lane, params.m - 1u) * select(params.k, 1u, TRANSPOSE_A == 1u);
    let a_step = select(1u, params.m, TRANSPOSE_A == 1u);
    var b_at = min(col, b_stride - 1u);
    var s0 = Eight();
    var s1 = Eight();
    var s2 = Eight();
    var s3 = Eight();
    var s4 = Eight();
    var s5 = Eight();
    var s6 = Eight();
    var s7 = Eight();
    for (var i = 0u; i < params.k; i += 1u) {
        let from_a = a[a_at];
        let from_b = apart(b[b_at]);
        s0 = add(s0, from_b, subgroupBroadcast(from_a, 0u));
        s1 = add(s1, from_b, subgroupBroadcast(from_a, 1u));
        s2 = add(s2, from_b, subgroupBroadcast(from_a, 2u));
        s3 = add(s3, from_b, subgroupBroadcast(from_a, 3u));
        s4 = add(s4, from_b, subgroupBroadcast(from_a, 4u));
        s5 = add(s5, from_b, subgroupBroadcast(from_a, 5u));
        s6 = add(s6, from_b, subgroupBroadcast(from_a, 6u));
        s7 = add(s7, from_b, subgroupBroadcast(from_a, 7u));
        a_at += a_step;
        b_at += b_stride;
    }
    var bias = Eight();
    if EPILOGUE == 1u {
        bias = apart(fused[min(col, b_stride - 1u)]);
    }
    store_row(row, col, bias, s0);
    store_row(row + 1u, col, bias, s1);
    store_row(row + 2u, col, bias, s2);
    store_row(row + 3u, col, bias, s3);
    store_row(row + 4u, col, bias, s4);
    store_row(row + 5u, col, bias, s5);
    store_row(row + 6u, col, bias, s6);
    store_row(row + 7u, col, bias, s7);
}
