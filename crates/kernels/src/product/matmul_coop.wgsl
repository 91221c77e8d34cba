// y = epilogue(op(a) op(b)) for a and b stored in f16, on tensor cores: each subgroup has MATRICES by MATRICES results of SIZE by SIZE, whose sums
// are kept in f32. m, n and k are multiples of SIZE. Slices are those of matmul_tiled.wgsl: pairs of a batch, or runs of k (SPLIT).
// Twin: matmul_cpu.rs. Reads a once for a block's columns and b once for its rows, from the nearest cache in most cases.
// Ladder: matmul_tiled.wgsl (multiply-adds of the invocations) -> this (of tensor cores, which on a card of 2020 do 8 to 16 times as many a clock).
//
// What bounds it, for 4 by 4 matrices of 16 by 16: a subgroup reads 2 * 64 values of f16 for 2 * 64 * 64 operations at an index of K, 32 operations a
// byte; with 2 by 2 it is 16. A card with 20 TB/s from its first caches could feed 640 TFLOP/s, or 320. Operands go from there into registers
// as the units want them, so there is no workgroup memory and no barrier in the loop. Neighbouring subgroups have blocks two by two,
// so that each operand is fetched once for two. The sums take 128 registers an invocation of 32, those of 2 by 2 take 32: smaller blocks where larger ones would
// not fill the card.
//
// A matrix has no elements that an invocation could get at, so sums go through workgroup memory for the epilogue, one matrix of each subgroup at a time.
// Every subgroup of a group takes part in all of it, since the barriers are the group's: one whose block is beyond the end does the last one again and
// stores nothing. Whatever is loaded lies within the operands. How many invocations a subgroup has may differ from group to group.

struct Params {
    m: u32,
    n: u32,
    k: u32,
    // Places of k in a slice, a multiple of SIZE; k itself for a batch.
    slice_k: u32,
    n_slices: u32,
    pad0: u32,
    pad1: u32,
    pad2: u32,
}

override LANES: u32 = 128u;
// Subgroups that a group has at most.
override N_SUBGROUPS: u32 = 16u;
// Matrices of a subgroup along the rows and along the columns: 2 or 4.
override MATRICES: u32 = 4u;
override TRANSPOSE_A: u32 = 0u;
override TRANSPOSE_B: u32 = 0u;
override SPLIT: u32 = 0u;
override RESULTS_LEN: u32 = N_SUBGROUPS * SIZE * SIZE;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<f16>;
@group(0) @binding(2) var<storage, read> b: array<f16>;
// The bias [n], or the output [m, n] whose activation is gone through.
@group(0) @binding(3) var<storage, read> fused: array<FUSED>;
@group(0) @binding(4) var<storage, read_write> y: array<Y>;

// results[subgroup][row][col].
var<workgroup> results: array<f32, RESULTS_LEN>;
// The number of subgroups, which is the same for all of them; naga has to be told.
var<workgroup> n_subgroups_of_group: u32;

// Four results of one row; `col` counts vec4s.
fn store(slice: u32, row: u32, col: u32, product: vec4f) {
    let i = (slice * params.m + row) * (params.n / 4u) + col;
    y[i] = store_y(finished(product, i, col));
}

// The matrix of a from `row` and `k` on. One beyond the last row is the last one.
fn load_a(start: u32, row: u32, k: u32) -> OfA {
    let first = min(row, params.m - SIZE);
    if TRANSPOSE_A == 1u {
        return coopLoad<OfA>(&a[start + k * params.m + first], params.m);
    }
    return coopLoadT<OfA>(&a[start + first * params.k + k], params.k);
}

fn load_b(start: u32, k: u32, col: u32) -> OfB {
    let first = min(col, params.n - SIZE);
    if TRANSPOSE_B == 1u {
        return coopLoad<OfB>(&b[start + first * params.k + k], params.k);
    }
    return coopLoadT<OfB>(&b[start + k * params.n + first], params.n);
}

// Where a subgroup's results go: to its own part of the workgroup memory and, if they are to be stored, from there to `row` and `col` on.
struct Place {
    results: u32,
    lane: u32,
    n_lanes: u32,
    slice: u32,
    row: u32,
    col: u32,
    exists: bool,
}

fn finish(place: Place, row: u32, col: u32, sum: Sum) {
    coopStoreT(sum, &results[place.results], SIZE);
    workgroupBarrier();
    let first_row = place.row + row * SIZE;
    let first_col = place.col + col * SIZE;
    if place.exists && first_row < params.m && first_col < params.n {
        for (var i = place.lane; i < SIZE * SIZE / 4u; i += place.n_lanes) {
            let at = place.results + 4u * i;
            let product = vec4f(results[at], results[at + 1u], results[at + 2u], results[at + 3u]);
            store(place.slice, first_row + i / (SIZE / 4u), first_col / 4u + i % (SIZE / 4u), product);
        }
    }
    workgroupBarrier();
}

@compute @workgroup_size(LANES)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(num_subgroups) n_subgroups: u32,
    @builtin(subgroup_invocation_id) lane: u32,
    @builtin(subgroup_size) n_lanes: u32,
    @builtin(local_invocation_index) lane_of_group: u32,
) {
    if lane_of_group == 0u {
        n_subgroups_of_group = n_subgroups;
    }
    let n_beside = workgroupUniformLoad(&n_subgroups_of_group);
    // Blocks lie in bands of two rows of them, so that neighbours are two by two.
    let block_len = MATRICES * SIZE;
    let n_cols = (params.n + block_len - 1u) / block_len;
    let n_bands = (params.m + 2u * block_len - 1u) / (2u * block_len);
    let n_blocks = params.n_slices * n_bands * 2u * n_cols;
    let first_block = (group.y * groups.x + group.x) * n_beside;
    // Whole groups leave here.
    if first_block >= n_blocks {
        return;
    }
    let block = min(first_block + subgroup, n_blocks - 1u);
    let slice = block / (n_bands * 2u * n_cols);
    let band = block / (2u * n_cols) % n_bands;
    let row = (2u * band + block % 2u) * block_len;
    let col = block / 2u % n_cols * block_len;

    let pair = select(slice, 0u, SPLIT == 1u);
    let a_start = pair * params.m * params.k;
    let b_start = pair * params.k * params.n;
    let first_k = select(0u, slice * params.slice_k, SPLIT == 1u);
    let end_k = min(first_k + params.slice_k, params.k);

    var s00 = Sum();
    var s01 = Sum();
    var s02 = Sum();
    var s03 = Sum();
    var s10 = Sum();
    var s11 = Sum();
    var s12 = Sum();
    var s13 = Sum();
    var s20 = Sum();
    var s21 = Sum();
    var s22 = Sum();
    var s23 = Sum();
    var s30 = Sum();
    var s31 = Sum();
    var s32 = Sum();
    var s33 = Sum();
    for (var k = first_k; k < end_k; k += SIZE) {
        let a0 = load_a(a_start, row, k);
        let a1 = load_a(a_start, row + SIZE, k);
        let b0 = load_b(b_start, k, col);
        let b1 = load_b(b_start, k, col + SIZE);
        s00 = coopMultiplyAdd(a0, b0, s00);
        s01 = coopMultiplyAdd(a0, b1, s01);
        s10 = coopMultiplyAdd(a1, b0, s10);
        s11 = coopMultiplyAdd(a1, b1, s11);
        if MATRICES == 4u {
            let a2 = load_a(a_start, row + 2u * SIZE, k);
            let a3 = load_a(a_start, row + 3u * SIZE, k);
            s20 = coopMultiplyAdd(a2, b0, s20);
            s21 = coopMultiplyAdd(a2, b1, s21);
            s30 = coopMultiplyAdd(a3, b0, s30);
            s31 = coopMultiplyAdd(a3, b1, s31);
            let b2 = load_b(b_start, k, col + 2u * SIZE);
            s02 = coopMultiplyAdd(a0, b2, s02);
            s12 = coopMultiplyAdd(a1, b2, s12);
            s22 = coopMultiplyAdd(a2, b2, s22);
            s32 = coopMultiplyAdd(a3, b2, s32);
            let b3 = load_b(b_start, k, col + 3u * SIZE);
            s03 = coopMultiplyAdd(a0, b3, s03);
            s13 = coopMultiplyAdd(a1, b3, s13);
            s23 = coopMultiplyAdd(a2, b3, s23);
            s33 = coopMultiplyAdd(a3, b3, s33);
        }
    }

    let exists = first_block + subgroup < n_blocks;
    let place = Place(subgroup * SIZE * SIZE, lane, n_lanes, slice, row, col, exists);
    finish(place, 0u, 0u, s00);
    finish(place, 0u, 1u, s01);
    finish(place, 1u, 0u, s10);
    finish(place, 1u, 1u, s11);
    if MATRICES == 4u {
        finish(place, 0u, 2u, s02);
        finish(place, 0u, 3u, s03);
        finish(place, 1u, 2u, s12);
        finish(place, 1u, 3u, s13);
        finish(place, 2u, 0u, s20);
        finish(place, 2u, 1u, s21);
        finish(place, 2u, 2u, s22);
        finish(place, 2u, 3u, s23);
        finish(place, 3u, 0u, s30);
        finish(place, 3u, 1u, s31);
        finish(place, 3u, 2u, s32);
        finish(place, 3u, 3u, s33);
    }
}
