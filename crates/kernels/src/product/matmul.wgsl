// y = epilogue(op(a) b), b: [k, n]: any shape. Each lane has 2 columns of a block of 8 rows.
// Twin: matmul_cpu.rs. Reads a once for 16 columns and b once for 8 rows.
// Ladder: this -> matmul_direct.wgsl (vec4 loads, for n and k that are multiples of 4).

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

// As stored: src/stored_types.rs. Results in 16 bits are two neighbours in a row, so that there is an even number of columns or one row.
alias A = f32;
alias B = f32;
alias FUSED = f32;
alias Y = f32;
fn load_a(i: u32) -> f32 { return a[i]; }
fn load_b(i: u32) -> f32 { return b[i]; }
fn load_fused(i: u32) -> f32 { return fused[i]; }
fn store_y(i: u32, v: vec2f, n: u32) { y[i] = v.x; if n > 1u { y[i + 1u] = v.y; } }

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<A>;
@group(0) @binding(2) var<storage, read> b: array<B>;
// The bias [n], or the output [m, n] whose activation is gone through.
@group(0) @binding(3) var<storage, read> fused: array<FUSED>;
@group(0) @binding(4) var<storage, read_write> y: array<Y>;

// `y`, or `v` where that is NaN: told by its bits, since `clamp` may drop it.
fn or_nan(v: vec2f, y: vec2f) -> vec2f {
    return select(y, v, (bitcast<vec2u>(v) & vec2u(0x7FFFFFFFu)) > vec2u(0x7F800000u));
}

fn act(v: vec2f) -> vec2f {
    switch ACTIVATION {
        case 1u: { return select(v, vec2f(), v < vec2f()); }
        case 2u: { return select(v, ALPHA * (exp(min(v, vec2f()) / ALPHA) - 1.0), v < vec2f()); }
        case 3u: { return or_nan(v, 1.0 / (1.0 + exp(-clamp(v, vec2f(-87.0), vec2f(87.0))))); }
        case 4u: { return or_nan(v, tanh(clamp(v, vec2f(-10.0), vec2f(10.0)))); }
        default: { return v; }
    }
}

fn slope_from_output(v: vec2f) -> vec2f {
    switch ACTIVATION {
        case 1u: { return select(vec2f(), vec2f(1.0), v > vec2f()); }
        case 2u: { return select(v / ALPHA + 1.0, vec2f(1.0), v > vec2f()); }
        case 3u: { return v * (1.0 - v); }
        case 4u: { return 1.0 - v * v; }
        default: { return vec2f(1.0); }
    }
}

// Two neighbours of a row, of which the second may be beyond its end.
fn store(row: u32, col: u32, products: vec2f) {
    if row >= params.m || col >= params.n {
        return;
    }
    let i = row * params.n + col;
    let next = select(0u, 1u, col + 1u < params.n);
    switch EPILOGUE {
        case 1u: { store_y(i, act(products + vec2f(load_fused(col), load_fused(col + next))), 1u + next); }
        case 2u: { store_y(i, products * slope_from_output(vec2f(load_fused(i), load_fused(i + next))), 1u + next); }
        default: { store_y(i, act(products), 1u + next); }
    }
}

// The values of a in four rows, at one place along k.
fn rows_of_a(at: vec4u) -> vec4f {
    return vec4f(load_a(at.x), load_a(at.y), load_a(at.z), load_a(at.w));
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let row = (group.z * groups.y + group.y) * ROWS;
    let col = (group.x * LANES + lane) * 2u;
    if row >= params.m || col >= params.n {
        return;
    }
    // Rows and columns beyond the last read the last one again, and are not stored.
    let row_stride = select(params.k, 1u, TRANSPOSE_A == 1u);
    let k_stride = select(1u, params.m, TRANSPOSE_A == 1u);
    let rows = vec4u(row, row + 1u, row + 2u, row + 3u);
    var upper_at = min(rows, vec4u(params.m - 1u)) * row_stride;
    var lower_at = min(rows + 4u, vec4u(params.m - 1u)) * row_stride;
    var b0_at = col;
    var b1_at = min(col + 1u, params.n - 1u);
    var upper0 = vec4f();
    var lower0 = vec4f();
    var upper1 = vec4f();
    var lower1 = vec4f();
    for (var i = 0u; i < params.k; i += 1u) {
        let upper = rows_of_a(upper_at);
        let lower = rows_of_a(lower_at);
        let b0 = load_b(b0_at);
        let b1 = load_b(b1_at);
        upper0 += upper * b0;
        lower0 += lower * b0;
        upper1 += upper * b1;
        lower1 += lower * b1;
        upper_at += vec4u(k_stride);
        lower_at += vec4u(k_stride);
        b0_at += params.n;
        b1_at += params.n;
    }
    for (var i = 0u; i < 4u; i += 1u) {
        store(row + i, col, vec2f(upper0[i], upper1[i]));
        store(row + 4u + i, col, vec2f(lower0[i], lower1[i]));
    }
}
