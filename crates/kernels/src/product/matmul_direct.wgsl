// y = epilogue(op(a) b), b: [k, n], without barriers: each invocation has a register block of 16 rows by 4 vec4s of columns.
// n and k are multiples of 4, and m too if a is transposed.
// Twin: matmul_cpu.rs. Reads a once for 128 columns and b once for 16 rows.
// Ladder: matmul.wgsl (scalar loads, any shape) -> this (vec4 loads, blocks of 4 by 4 as matrices) -> matmul_tiled.wgsl (shared tiles).
//
// On a software adapter a load is a loop over the 8 invocations, so what counts is multiply-adds a load: 512 for 8 vec4 loads here.
// The invocations' columns are 8 vectors apart, so that a group reads whole lines of b. The sums are stored by a loop of 4 turns and not
// by 16 statements a column: stores are the larger part of what such an adapter compiles.

struct Params {
    m: u32,
    n: u32,
    k: u32,
    pad: u32,
}

const ROWS = 16u;
const LANES = 8u;
const VECTORS = 4u;
override TRANSPOSE_A: u32 = 0u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<A>;
@group(0) @binding(2) var<storage, read> b: array<B>;
// The bias [n], or the output [m, n] whose activation is gone through.
@group(0) @binding(3) var<storage, read> fused: array<FUSED>;
@group(0) @binding(4) var<storage, read_write> y: array<Y>;

fn store_row(row: u32, col: u32, product: vec4f) {
    if row >= params.m {
        return;
    }
    let i = row * (params.n / 4u) + col;
    y[i] = store_y(finished(product, i, col));
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

// Four rows of a at four places along k, a row a column of the matrix.
fn rows_of_a(at: u32, stride: u32) -> mat4x4f {
    let read = mat4x4f(load_a(a[at]), load_a(a[at + stride]), load_a(a[at + 2u * stride]), load_a(a[at + 3u * stride]));
    if TRANSPOSE_A == 1u {
        return transpose(read);
    }
    return read;
}

// One vector of columns of b at four places along k.
fn rows_of_b(at: u32, stride: u32) -> mat4x4f {
    return mat4x4f(load_b(b[at]), load_b(b[at + stride]), load_b(b[at + 2u * stride]), load_b(b[at + 3u * stride]));
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let row = (group.z * groups.y + group.y) * ROWS;
    if row >= params.m {
        return;
    }
    let col = group.x * LANES * VECTORS + lane;
    let b_stride = params.n / 4u;
    let a_stride = select(params.k, params.m, TRANSPOSE_A == 1u) / 4u;
    let row_step = select(params.k, 1u, TRANSPOSE_A == 1u);
    let k_step = select(1u, params.m, TRANSPOSE_A == 1u);

    // Blocks beyond the last row or column read the last ones again, and are not stored.
    let last_row = (params.m - 1u) / 4u * 4u;
    var a0_at = row * row_step / 4u;
    var a1_at = min(row + 4u, last_row) * row_step / 4u;
    var a2_at = min(row + 8u, last_row) * row_step / 4u;
    var a3_at = min(row + 12u, last_row) * row_step / 4u;
    let last_col = b_stride - 1u;
    var b0_at = min(col, last_col);
    var b1_at = min(col + LANES, last_col);
    var b2_at = min(col + 2u * LANES, last_col);
    var b3_at = min(col + 3u * LANES, last_col);

    var s00 = mat4x4f();
    var s01 = mat4x4f();
    var s02 = mat4x4f();
    var s03 = mat4x4f();
    var s10 = mat4x4f();
    var s11 = mat4x4f();
    var s12 = mat4x4f();
    var s13 = mat4x4f();
    var s20 = mat4x4f();
    var s21 = mat4x4f();
    var s22 = mat4x4f();
    var s23 = mat4x4f();
    var s30 = mat4x4f();
    var s31 = mat4x4f();
    var s32 = mat4x4f();
    var s33 = mat4x4f();
    for (var i = 0u; i < params.k; i += 4u) {
        let b0 = rows_of_b(b0_at, b_stride);
        let b1 = rows_of_b(b1_at, b_stride);
        let b2 = rows_of_b(b2_at, b_stride);
        let b3 = rows_of_b(b3_at, b_stride);
        let a0 = rows_of_a(a0_at, a_stride);
        s00 = add_product(s00, b0, a0);
        s01 = add_product(s01, b1, a0);
        s02 = add_product(s02, b2, a0);
        s03 = add_product(s03, b3, a0);
        let a1 = rows_of_a(a1_at, a_stride);
        s10 = add_product(s10, b0, a1);
        s11 = add_product(s11, b1, a1);
        s12 = add_product(s12, b2, a1);
        s13 = add_product(s13, b3, a1);
        let a2 = rows_of_a(a2_at, a_stride);
        s20 = add_product(s20, b0, a2);
        s21 = add_product(s21, b1, a2);
        s22 = add_product(s22, b2, a2);
        s23 = add_product(s23, b3, a2);
        let a3 = rows_of_a(a3_at, a_stride);
        s30 = add_product(s30, b0, a3);
        s31 = add_product(s31, b1, a3);
        s32 = add_product(s32, b2, a3);
        s33 = add_product(s33, b3, a3);
        a0_at += k_step;
        a1_at += k_step;
        a2_at += k_step;
        a3_at += k_step;
        b0_at += 4u * b_stride;
        b1_at += 4u * b_stride;
        b2_at += 4u * b_stride;
        b3_at += 4u * b_stride;
    }

    for (var i = 0u; i < min(4u, (params.m - row + 3u) / 4u); i += 1u) {
        var p0 = s00;
        var p1 = s01;
        var p2 = s02;
        var p3 = s03;
        if i == 1u {
            p0 = s10;
            p1 = s11;
            p2 = s12;
            p3 = s13;
        }
        if i == 2u {
            p0 = s20;
            p1 = s21;
            p2 = s22;
            p3 = s23;
        }
        if i == 3u {
            p0 = s30;
            p1 = s31;
            p2 = s32;
            p3 = s33;
        }
        store(row + 4u * i, col, p0);
        store(row + 4u * i, col + LANES, p1);
        store(row + 4u * i, col + 2u * LANES, p2);
        store(row + 4u * i, col + 3u * LANES, p3);
    }
}
