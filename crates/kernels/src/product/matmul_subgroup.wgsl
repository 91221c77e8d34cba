// y = epilogue(op(a) b), b: [k, n], without barriers: each lane has a register block of 32 rows by 2 vec4s of columns, and the lanes
// of a group read a for one another. n and k are multiples of 4, and m too if a is transposed. Needs subgroups of at least 8.
// Twin: matmul_cpu.rs. Reads a once for 64 columns and b once for 32 rows.
// Ladder: matmul_direct.wgsl (each lane reads all of its rows of a, the same as its neighbours) -> this (8 lanes read 8 rows, or 4 places
// of k of 8 rows, and broadcast).
//
// For software adapters: a load there is a loop over the lanes, a broadcast two instructions.

struct Params {
    m: u32,
    n: u32,
    k: u32,
    pad: u32,
}

const ROWS = 32u;
const LANES = 8u;
const VECTORS = 2u;
override TRANSPOSE_A: u32 = 0u;
override EPILOGUE: u32 = 0u;
override ACTIVATION: u32 = 0u;
override ALPHA: f32 = 1.0;

// How each is stored: src/stored_types.rs.
alias A = vec4f;
alias B = vec4f;
alias FUSED = vec4f;
alias Y = vec4f;
fn load_a(v: A) -> vec4f { return vec4f(v); }
fn load_b(v: B) -> vec4f { return vec4f(v); }
fn load_fused(v: FUSED) -> vec4f { return vec4f(v); }
fn store_y(v: vec4f) -> Y { return v; }

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<A>;
@group(0) @binding(2) var<storage, read> b: array<B>;
// The bias [n], or the output [m, n] whose activation is gone through.
@group(0) @binding(3) var<storage, read> fused: array<FUSED>;
@group(0) @binding(4) var<storage, read_write> y: array<Y>;

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

fn store_row(row: u32, col: u32, product: vec4f) {
    if row >= params.m {
        return;
    }
    let i = row * (params.n / 4u) + col;
    switch EPILOGUE {
        case 1u: { y[i] = store_y(act(product + load_fused(fused[col]))); }
        case 2u: { y[i] = store_y(product * slope_from_output(load_fused(fused[i]))); }
        default: { y[i] = store_y(act(product)); }
    }
}

// Four rows of one vector of columns.
fn store(row: u32, col: u32, products: mat4x4f) {
    if col < params.n / 4u {
        store_row(row, col, products[0]);
        store_row(row + 1u, col, products[1]);
        store_row(row + 2u, col, products[2]);
        store_row(row + 3u, col, products[3]);
    }
}

// What `lane` reads for eight rows: a vector along k of row `lane`, or of four rows at place `lane / 2` of k if a is transposed.
fn place_in_a(row: u32, lane: u32) -> u32 {
    if TRANSPOSE_A == 1u {
        return min(row / 4u + lane % 2u, params.m / 4u - 1u) + lane / 2u * (params.m / 4u);
    }
    return min(row + lane, params.m - 1u) * (params.k / 4u);
}

// Of eight rows read so, the first four at four places of k, a row a column of the matrix.
fn first_rows(read: vec4f) -> mat4x4f {
    if TRANSPOSE_A == 1u {
        return transpose(mat4x4f(
            subgroupBroadcast(read, 0u),
            subgroupBroadcast(read, 2u),
            subgroupBroadcast(read, 4u),
            subgroupBroadcast(read, 6u),
        ));
    }
    return mat4x4f(
        subgroupBroadcast(read, 0u),
        subgroupBroadcast(read, 1u),
        subgroupBroadcast(read, 2u),
        subgroupBroadcast(read, 3u),
    );
}

// The last four.
fn last_rows(read: vec4f) -> mat4x4f {
    if TRANSPOSE_A == 1u {
        return transpose(mat4x4f(
            subgroupBroadcast(read, 1u),
            subgroupBroadcast(read, 3u),
            subgroupBroadcast(read, 5u),
            subgroupBroadcast(read, 7u),
        ));
    }
    return mat4x4f(
        subgroupBroadcast(read, 4u),
        subgroupBroadcast(read, 5u),
        subgroupBroadcast(read, 6u),
        subgroupBroadcast(read, 7u),
    );
}

// One vector of columns of b at four places along k.
fn rows_of_b(at: u32, stride: u32) -> mat4x4f {
    return mat4x4f(load_b(b[at]), load_b(b[at + stride]), load_b(b[at + 2u * stride]), load_b(b[at + 3u * stride]));
}

// sum + b a, added in the order of k.
fn add_product(sum: mat4x4f, b: mat4x4f, a: mat4x4f) -> mat4x4f {
    return mat4x4f(
        fma(vec4f(a[0].w), b[3], fma(vec4f(a[0].z), b[2], fma(vec4f(a[0].y), b[1], fma(vec4f(a[0].x), b[0], sum[0])))),
        fma(vec4f(a[1].w), b[3], fma(vec4f(a[1].z), b[2], fma(vec4f(a[1].y), b[1], fma(vec4f(a[1].x), b[0], sum[1])))),
        fma(vec4f(a[2].w), b[3], fma(vec4f(a[2].z), b[2], fma(vec4f(a[2].y), b[1], fma(vec4f(a[2].x), b[0], sum[2])))),
        fma(vec4f(a[3].w), b[3], fma(vec4f(a[3].z), b[2], fma(vec4f(a[3].y), b[1], fma(vec4f(a[3].x), b[0], sum[3])))),
    );
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
    let col = group.x * LANES * VECTORS + lane;
    let b_stride = params.n / 4u;
    let k_step = select(1u, params.m, TRANSPOSE_A == 1u);

    // Rows and columns beyond the last read others again, and are not stored: every lane has to stay for the broadcasts.
    var a0_at = place_in_a(row, lane);
    var a1_at = place_in_a(row + 8u, lane);
    var a2_at = place_in_a(row + 16u, lane);
    var a3_at = place_in_a(row + 24u, lane);
    var b0_at = min(col, b_stride - 1u);
    var b1_at = min(col + LANES, b_stride - 1u);
    var s00 = mat4x4f();
    var s01 = mat4x4f();
    var s10 = mat4x4f();
    var s11 = mat4x4f();
    var s20 = mat4x4f();
    var s21 = mat4x4f();
    var s30 = mat4x4f();
    var s31 = mat4x4f();
    var s40 = mat4x4f();
    var s41 = mat4x4f();
    var s50 = mat4x4f();
    var s51 = mat4x4f();
    var s60 = mat4x4f();
    var s61 = mat4x4f();
    var s70 = mat4x4f();
    var s71 = mat4x4f();
    for (var i = 0u; i < params.k; i += 4u) {
        let b0 = rows_of_b(b0_at, b_stride);
        let b1 = rows_of_b(b1_at, b_stride);
        let read0 = load_a(a[a0_at]);
        let a0 = first_rows(read0);
        s00 = add_product(s00, b0, a0);
        s01 = add_product(s01, b1, a0);
        let a1 = last_rows(read0);
        s10 = add_product(s10, b0, a1);
        s11 = add_product(s11, b1, a1);
        let read1 = load_a(a[a1_at]);
        let a2 = first_rows(read1);
        s20 = add_product(s20, b0, a2);
        s21 = add_product(s21, b1, a2);
        let a3 = last_rows(read1);
        s30 = add_product(s30, b0, a3);
        s31 = add_product(s31, b1, a3);
        let read2 = load_a(a[a2_at]);
        let a4 = first_rows(read2);
        s40 = add_product(s40, b0, a4);
        s41 = add_product(s41, b1, a4);
        let a5 = last_rows(read2);
        s50 = add_product(s50, b0, a5);
        s51 = add_product(s51, b1, a5);
        let read3 = load_a(a[a3_at]);
        let a6 = first_rows(read3);
        s60 = add_product(s60, b0, a6);
        s61 = add_product(s61, b1, a6);
        let a7 = last_rows(read3);
        s70 = add_product(s70, b0, a7);
        s71 = add_product(s71, b1, a7);
        a0_at += k_step;
        a1_at += k_step;
        a2_at += k_step;
        a3_at += k_step;
        b0_at += 4u * b_stride;
        b1_at += 4u * b_stride;
    }

    for (var i = 0u; i < min(8u, (params.m - row + 3u) / 4u); i += 1u) {
        var p0 = s00;
        var p1 = s01;
        if i == 1u {
            p0 = s10;
            p1 = s11;
        }
        if i == 2u {
            p0 = s20;
            p1 = s21;
        }
        if i == 3u {
            p0 = s30;
            p1 = s31;
        }
        if i == 4u {
            p0 = s40;
            p1 = s41;
        }
        if i == 5u {
            p0 = s50;
            p1 = s51;
        }
        if i == 6u {
            p0 = s60;
            p1 = s61;
        }
        if i == 7u {
            p0 = s70;
            p1 = s71;
        }
        store(row + 4u * i, col, p0);
        store(row + 4u * i, col + LANES, p1);
    }
}
