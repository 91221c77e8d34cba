// y = epilogue(op(a) op(b)) by tiles of both operands in workgroup memory, each invocation with ROW_BLOCKS by COL_BLOCKS blocks of 4 by 4 results.
// n is a multiple of 4, k too where an operand is stored with k fastest, and m if a is transposed. Slices of the groups are either the pairs of a
// batch, or runs of k whose sums are added by map/map_reduce.rs (SPLIT).
// Twin: matmul_cpu.rs. Reads a once for a tile's columns and b once for its rows.
// Ladder: matmul_tiled_any.wgsl (scalar loads, blocks of 4 by 4, two barriers a tile) -> this -> matmul_coop.wgsl (tensor cores). For hardware:
// on a software adapter barriers are ruinous.
//
// What bounds it, for tiles of 128 by 128 by 256 invocations (2 by 2 blocks):
// - memory: 2 * 128 * 128 operations for each 2 * 128 values read, 32 a byte of f32 and 64 of f16; a card with 20 TFLOP/s and 1 TB/s needs 20.
// - workgroup memory: an invocation reads 4 vec4s, 64 bytes, for 64 multiply-adds. A processor that does 128 of these and 128 bytes a clock
//   would need 2 clocks for 2 invocations' sums and 1 for their bytes; with 1 by 1 blocks, 32 bytes for 16, the bytes are the bound.
// - registers: 64 sums, 16 operands, 16 or 32 that are on their way (half as many for tiles in f16): two groups of 256 invocations fit where a processor
//   has 64 Ki registers.
// - latency: the next tile is fetched while this one is used. Tiles are in two halves, so that one barrier a tile is enough.
// - banks: neighbouring invocations read neighbouring vec4s of b, and the same of a. An operand with k fastest is turned in registers, four rows of
//   four; an index of K is an odd number of vec4s, so that eight invocations write to different banks for a depth of 8.
// Small results take smaller tiles, so that the card is filled: see src/tiles.rs.
//
// Of operands in f16, an adapter may let products be added in f16 (Adapter::f16_accumulation), two by one instruction on hardware that packs them:
// over the 16 places of a tile, whose sums are added to totals in f32 and start from 0 again (BY_TILE, DEPTH = 16). So what is rounded away grows with a
// tile's places, by 2^-11 of the sum of |a b| for each, and not with k; beyond 65504 within a tile there is infinity. Instructions of an invocation with 64 results:
// - in f32, over tiles in f16: 64 multiply-adds and 16 conversions a place, 1280 for 16 places.
// - packed: 32 multiply-adds a place, and for each tile 64 conversions, 64 additions and 32 zeros: 672 for 16 places, 1.9 times fewer. For 8 places it would be
//   416 to 640, 1.5 times; for 32 it is 2.2 times, with twice the error and twice the workgroup memory.
// - registers: 64 totals, 32 of packed sums, 8 of operands, 16 on their way.

struct Params {
    m: u32,
    n: u32,
    k: u32,
    // Places of k in a slice, a multiple of DEPTH; k itself for a batch.
    slice_k: u32,
    n_slices: u32,
    pad0: u32,
    pad1: u32,
    pad2: u32,
}

override TRANSPOSE_A: u32 = 0u;
override TRANSPOSE_B: u32 = 0u;
override SPLIT: u32 = 0u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<A>;
@group(0) @binding(2) var<storage, read> b: array<B>;
// The bias [n], or the output [m, n] whose activation is gone through.
@group(0) @binding(3) var<storage, read> fused: array<FUSED>;
@group(0) @binding(4) var<storage, read_write> y: array<Y>;

// What a workgroup computes: blocks from `row` and `col` on, over the indices of K from `first` to `end`.
struct Job {
    exists: bool,
    row: u32,
    col: u32,
    first: u32,
    end: u32,
    slice: u32,
    a_start: u32,
    b_start: u32,
}

fn job_of(group: vec3u, groups: vec3u) -> Job {
    let n_row_groups = (params.m + 4u * TILE_ROWS - 1u) / (4u * TILE_ROWS);
    let row_group = group.z * groups.y + group.y;
    let slice = row_group / n_row_groups;
    let pair = select(slice, 0u, SPLIT == 1u);
    let first = select(0u, slice * params.slice_k, SPLIT == 1u);
    return Job(
        slice < params.n_slices,
        row_group % n_row_groups * TILE_ROWS,
        group.x * TILE_COLS,
        first,
        min(first + params.slice_k, params.k),
        slice,
        pair * (params.m * params.k / 4u),
        pair * (params.n / 4u * params.k),
    );
}

// Which operands are stored with k fastest.
fn a_along_k() -> bool { return TRANSPOSE_A == 0u; }
fn b_along_k() -> bool { return TRANSPOSE_B == 1u; }

alias RowsOfA = u32;
alias ColsOfB = u32;
fn rows_of_a(job: Job, row: u32) -> RowsOfA { return row; }
fn cols_of_b(job: Job, col: u32) -> ColsOfB { return col; }

// Four results of one row; `col` counts vec4s.
fn store_row(slice: u32, row: u32, col: u32, product: vec4f) {
    if row >= params.m {
        return;
    }
    let i = (slice * params.m + row) * (params.n / 4u) + col;
    y[i] = store_y(finished(product, i, col));
}

// A block of 4 by 4 results, a row a column of the matrix; `row` and `col` count blocks.
fn store(job: Job, row: u32, col: u32, products: mat4x4f) {
    if col < params.n / 4u {
        store_row(job.slice, 4u * row, col, products[0]);
        store_row(job.slice, 4u * row + 1u, col, products[1]);
        store_row(job.slice, 4u * row + 2u, col, products[2]);
        store_row(job.slice, 4u * row + 3u, col, products[3]);
    }
}

// What an operand has at four indices of K, in the run that ends at `end`: 0 from there on. Nothing is read beyond the operand.
fn within(v: vec4f, k: u32, end: u32) -> TILE {
    return select(TILE(0.0), store_tile(v), k < end);
}

// Four rows of a at four indices of K from `k` on. Rows beyond the last read the last ones again, and are not stored.
fn block_of_a(job: Job, row: RowsOfA, k: u32) -> Block {
    let end = job.end;
    let last = params.k - 1u;
    if TRANSPOSE_A == 1u {
        let stride = params.m / 4u;
        let at = job.a_start + min(row, stride - 1u);
        return Block(
            within(load_a(a[at + min(k, last) * stride]), k, end),
            within(load_a(a[at + min(k + 1u, last) * stride]), k + 1u, end),
            within(load_a(a[at + min(k + 2u, last) * stride]), k + 2u, end),
            within(load_a(a[at + min(k + 3u, last) * stride]), k + 3u, end),
        );
    }
    let stride = params.k / 4u;
    let at = job.a_start + min(k, last) / 4u;
    let rows = min(4u * row + vec4u(0u, 1u, 2u, 3u), vec4u(params.m - 1u));
    return turned(Block(
        within(load_a(a[at + rows.x * stride]), k, end),
        within(load_a(a[at + rows.y * stride]), k, end),
        within(load_a(a[at + rows.z * stride]), k, end),
        within(load_a(a[at + rows.w * stride]), k, end),
    ));
}

// The same of four columns of b.
fn block_of_b(job: Job, col: ColsOfB, k: u32) -> Block {
    let end = job.end;
    let last = params.k - 1u;
    if TRANSPOSE_B == 1u {
        let stride = params.k / 4u;
        let at = job.b_start + 4u * min(col, params.n / 4u - 1u) * stride + min(k, last) / 4u;
        return turned(Block(
            within(load_b(b[at]), k, end),
            within(load_b(b[at + stride]), k, end),
            within(load_b(b[at + 2u * stride]), k, end),
            within(load_b(b[at + 3u * stride]), k, end),
        ));
    }
    let stride = params.n / 4u;
    let at = job.b_start + min(col, stride - 1u);
    return Block(
        within(load_b(b[at + min(k, last) * stride]), k, end),
        within(load_b(b[at + min(k + 1u, last) * stride]), k + 1u, end),
        within(load_b(b[at + min(k + 2u, last) * stride]), k + 2u, end),
        within(load_b(b[at + min(k + 3u, last) * stride]), k + 3u, end),
    );
}
