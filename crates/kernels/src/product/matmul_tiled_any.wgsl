// y = epilogue(op(a) b), b: [k, n], any shape, by the tiles of main_tiled_any.wgsl.
// Twin: matmul_cpu.rs. Reads a once for 64 columns and b once for 64 rows.
// Ladder: matmul_direct.wgsl (each invocation reads for itself) -> this -> matmul_tiled.wgsl (vec4 loads, larger blocks, one barrier a tile). For
// hardware: on a software adapter barriers are ruinous.


struct Params {
    m: u32,
    n: u32,
    k: u32,
    pad: u32,
}

override TRANSPOSE_A: u32 = 0u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<A>;
@group(0) @binding(2) var<storage, read> b: array<B>;
// The bias [n], or the output [m, n] whose activation is gone through.
@group(0) @binding(3) var<storage, read> fused: array<FUSED>;
@group(0) @binding(4) var<storage, read_write> y: array<Y>;

// What a workgroup computes: results from `row` and `col` on, over all of K.
struct Job {
    exists: bool,
    row: u32,
    col: u32,
    first: u32,
    end: u32,
}

fn job_of(group: vec3u, groups: vec3u) -> Job {
    return Job(true, (group.z * groups.y + group.y) * TILE, group.x * TILE, 0u, params.k);
}

fn a_along_k() -> bool { return TRANSPOSE_A == 0u; }
fn b_along_k() -> bool { return false; }

alias RowsOfA = vec4u;
alias ColsOfB = vec4u;
fn rows_of_a(job: Job, rows: vec4u) -> RowsOfA { return rows; }
fn cols_of_b(job: Job, cols: vec4u) -> ColsOfB { return cols; }

fn store(job: Job, row: u32, col: u32, sums: vec4f) {
    store_two(row, col, sums.xy);
    store_two(row, col + 2u, sums.zw);
}

// Element of a at (row, k), 0 beyond the edges.
fn value_of_a(row: u32, k: u32) -> f32 {
    if row >= params.m || k >= params.k {
        return 0.0;
    }
    return load_a(select(row * params.k + k, k * params.m + row, TRANSPOSE_A == 1u));
}

fn value_of_b(k: u32, col: u32) -> f32 {
    if col >= params.n || k >= params.k {
        return 0.0;
    }
    return load_b(k * params.n + col);
}

fn four_of_a(job: Job, rows: RowsOfA, k: vec4u) -> vec4f {
    return vec4f(value_of_a(rows.x, k.x), value_of_a(rows.y, k.y), value_of_a(rows.z, k.z), value_of_a(rows.w, k.w));
}

fn four_of_b(job: Job, cols: ColsOfB, k: vec4u) -> vec4f {
    return vec4f(value_of_b(k.x, cols.x), value_of_b(k.y, cols.y), value_of_b(k.z, cols.z), value_of_b(k.w, cols.w));
}
