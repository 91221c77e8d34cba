// y = epilogue(op(a) b), b: [k, n], any shape, without barriers: each lane has 8 rows by 8 columns, and lanes read a for one another.
// Twin: matmul_cpu.rs. Reads a once for 64 columns and b once for 8 rows.
// Ladder: matmul.wgsl (each lane reads all of a that it needs) -> this -> matmul_wide_any.wgsl (loads of 64 bits, for n that are multiples of 8).
//
// For software adapters, where a load is a loop over the lanes: a lane reads a row of a, and the other lanes have it by a broadcast. The lanes'
// columns are 8 apart, so that a group reads whole lines of b.

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
@group(0) @binding(2) var<storage, read> b: array<f32>;
// The bias [n], or the output [m, n] whose activation is gone through.
@group(0) @binding(3) var<storage, read> fused: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

// Eight columns of a row.
struct Eight {
    low: vec4f,
    high: vec4f,
}

// `y`, or `v` where that is NaN: told by its bits, since `clamp` may drop it.
fn or_nan(v: f32, y: f32) -> f32 {
    return select(y, v, (bitcast<u32>(v) & 0x7FFFFFFFu) > 0x7F800000u);
}

fn act(v: f32) -> f32 {
    switch ACTIVATION {
        case 1u: { return select(v, 0.0, v < 0.0); }
        case 2u: { return select(v, ALPHA * (exp(min(v, 0.0) / ALPHA) - 1.0), v < 0.0); }
        case 3u: { return or_nan(v, 1.0 / (1.0 + exp(-clamp(v, -87.0, 87.0)))); }
        case 4u: { return or_nan(v, tanh(clamp(v, -10.0, 10.0))); }
        default: { return v; }
    }
}

fn slope_from_output(v: f32) -> f32 {
    switch ACTIVATION {
        case 1u: { return select(0.0, 1.0, v > 0.0); }
        case 2u: { return select(v / ALPHA + 1.0, 1.0, v > 0.0); }
        case 3u: { return v * (1.0 - v); }
        case 4u: { return 1.0 - v * v; }
        default: { return 1.0; }
    }
}

fn store_four(row: u32, col: u32, sum: vec4f) {
    for (var j = 0u; j < 4u; j += 1u) {
        let at = col + j * LANES;
        if at < params.n {
            let i = row * params.n + at;
            switch EPILOGUE {
                case 1u: { y[i] = act(sum[j] + fused[at]); }
                case 2u: { y[i] = sum[j] * slope_from_output(fused[i]); }
                default: { y[i] = act(sum[j]); }
            }
        }
    }
}

fn four_of_b(at: vec4u) -> vec4f {
    return vec4f(b[at.x], b[at.y], b[at.z], b[at.w]);
}

fn add(sum: Eight, b: Eight, a: f32) -> Eight {
    return Eight(fma(vec4f(a), b.low, sum.low), fma(vec4f(a), b.high, sum.high));
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
    let col = group.x * LANES * 8u + lane;

    // Rows and columns beyond the last read the last ones, and are not stored: every lane has to stay for the broadcasts.
    var a_at = min(row + lane, params.m - 1u) * select(params.k, 1u, TRANSPOSE_A == 1u);
    let a_step = select(1u, params.m, TRANSPOSE_A == 1u);
    let cols = vec4u(col, col + LANES, col + 2u * LANES, col + 3u * LANES);
    var low_at = min(cols, vec4u(params.n - 1u));
    var high_at = min(cols + 4u * LANES, vec4u(params.n - 1u));
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
        let from_b = Eight(four_of_b(low_at), four_of_b(high_at));
        s0 = add(s0, from_b, subgroupBroadcast(from_a, 0u));
        s1 = add(s1, from_b, subgroupBroadcast(from_a, 1u));
        s2 = add(s2, from_b, subgroupBroadcast(from_a, 2u));
        s3 = add(s3, from_b, subgroupBroadcast(from_a, 3u));
        s4 = add(s4, from_b, subgroupBroadcast(from_a, 4u));
        s5 = add(s5, from_b, subgroupBroadcast(from_a, 5u));
        s6 = add(s6, from_b, subgroupBroadcast(from_a, 6u));
        s7 = add(s7, from_b, subgroupBroadcast(from_a, 7u));
        a_at += a_step;
        low_at += vec4u(params.n);
        high_at += vec4u(params.n);
    }
    // By a loop, since stores are most of what such an adapter compiles.
    for (var i = 0u; i < min(ROWS, params.m - row); i += 1u) {
        var sum = s0;
        if i == 1u {
            sum = s1;
        }
        if i == 2u {
            sum = s2;
        }
        if i == 3u {
            sum = s3;
        }
        if i == 4u {
            sum = s4;
        }
        if i == 5u {
            sum = s5;
        }
        if i == 6u {
            sum = s6;
        }
        if i == 7u {
            sum = s7;
        }
        store_four(row + i, col, sum.low);
        store_four(row + i, col + 4u * LANES, sum.high);
    }
}
