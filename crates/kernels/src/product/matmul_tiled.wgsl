// y = epilogue(op(a) op(b)) by tiles of both operands in workgroup memory, each lane with ROW_BLOCKS by COL_BLOCKS blocks of 4 by 4 results.
// n is a multiple of 4, k too where an operand is stored with k fastest, and m if a is transposed. Slices of the groups are either the pairs of a
// batch, or runs of k whose sums are added in order by column_sum.wgsl (SPLIT).
// Twin: matmul_cpu.rs. Reads a once for a tile's columns and b once for its rows.
// Ladder: matmul_tiled_any.wgsl (scalar loads, blocks of 4 by 4, two barriers a tile) -> this -> matmul_coop.wgsl (the matrix units). For hardware:
// on a software adapter barriers are ruinous.
//
// What bounds it, for tiles of 128 by 128 by 256 lanes (2 by 2 blocks):
// - memory: 2 * 128 * 128 operations for each 2 * 128 values read, 32 a byte of f32 and 64 of f16; a card with 20 TFLOP/s and 1 TB/s needs 20.
// - workgroup memory: a lane reads 4 vec4s, 64 bytes, for 64 multiply-adds. A processor that does 128 of these and 128 bytes a clock
//   would need 2 clocks for 2 lanes' sums and 1 for their bytes; with 1 by 1 blocks, 32 bytes for 16, the bytes are the bound.
// - registers: 64 sums, 16 operands, 16 or 32 that are on their way (half as many for tiles in f16): two groups of 256 lanes fit where a processor
//   has 64 Ki registers.
// - latency: the next tile is fetched while this one is used. Tiles are in two halves, so that one barrier a tile is enough.
// - banks: neighbouring lanes read neighbouring vec4s of b, and the same of a. An operand with k fastest is turned in registers, four rows of
//   four; a place of k is an odd number of vec4s, so that eight lanes write to different banks for a depth of 8.
// Small results take smaller tiles, so that the card is filled: see src/tiles.rs.
//
// Of operands in f16, an adapter may let products be added in f16 (Adapter::f16_accumulation), two by one instruction on hardware that packs them:
// over the 16 places of a tile, whose sums are added to totals in f32 and start from 0 again (BY_TILE, DEPTH = 16). So what is rounded away grows with a
// tile's places, by 2^-11 of the sum of |a b| for each, and not with k; beyond 65504 within a tile there is infinity. Instructions of a lane with 64 results:
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

override LANE_ROWS: u32 = 8u;
override LANE_COLS: u32 = 8u;
override ROW_BLOCKS: u32 = 2u;
override COL_BLOCKS: u32 = 2u;
override DEPTH: u32 = 8u;
override BY_TILE: u32 = 0u;
override TRANSPOSE_A: u32 = 0u;
override TRANSPOSE_B: u32 = 0u;
override SPLIT: u32 = 0u;
override EPILOGUE: u32 = 0u;
override ACTIVATION: u32 = 0u;
override ALPHA: f32 = 1.0;

// A tile's rows and columns in blocks, and what a place of k takes in workgroup memory.
override TILE_ROWS: u32 = LANE_ROWS * ROW_BLOCKS;
override TILE_COLS: u32 = LANE_COLS * COL_BLOCKS;
override A_STRIDE: u32 = TILE_ROWS + 1u;
override B_STRIDE: u32 = TILE_COLS + 1u;
override A_LEN: u32 = DEPTH * A_STRIDE;
override B_LEN: u32 = DEPTH * B_STRIDE;
override A_HALVES: u32 = 2u * A_LEN;
override B_HALVES: u32 = 2u * B_LEN;

// How each is stored: src/stored_types.rs.
alias A = vec4f;
alias B = vec4f;
alias FUSED = vec4f;
alias Y = vec4f;
fn load_a(v: A) -> vec4f { return vec4f(v); }
fn load_b(v: B) -> vec4f { return vec4f(v); }
fn load_fused(v: FUSED) -> vec4f { return vec4f(v); }
fn store_y(v: vec4f) -> Y { return v; }
// In workgroup memory: in f16 where both operands are, and the device has the type.
alias TILE = vec4f;
fn load_tile(v: TILE) -> SUM { return SUM(v); }
fn store_tile(v: vec4f) -> TILE { return TILE(v); }
// What products are added in: with BY_TILE that may be f16, for the places of one tile, whose sums are added in f32.
alias SUM = vec4f;
fn load_sum(v: SUM) -> vec4f { return vec4f(v); }

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<A>;
@group(0) @binding(2) var<storage, read> b: array<B>;
// The bias [n], or the output [m, n] whose activation is gone through.
@group(0) @binding(3) var<storage, read> fused: array<FUSED>;
@group(0) @binding(4) var<storage, read_write> y: array<Y>;

// a_tile[half][k][row / 4], b_tile[half][k][col / 4].
var<workgroup> a_tile: array<TILE, A_HALVES>;
var<workgroup> b_tile: array<TILE, B_HALVES>;

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

// Four results of one row; `col` counts vec4s.
fn store_row(slice: u32, row: u32, col: u32, product: vec4f) {
    if row >= params.m {
        return;
    }
    let i = (slice * params.m + row) * (params.n / 4u) + col;
    switch EPILOGUE {
        case 1u: { y[i] = store_y(act(product + load_fused(fused[col]))); }
        case 2u: { y[i] = store_y(product * slope_from_output(load_fused(fused[i]))); }
        default: { y[i] = store_y(act(product)); }
    }
}

// A block of 4 by 4 results, a row a column of the matrix; `row` and `col` count blocks.
fn store(slice: u32, row: u32, col: u32, products: mat4x4f) {
    if col < params.n / 4u {
        store_row(slice, 4u * row, col, products[0]);
        store_row(slice, 4u * row + 1u, col, products[1]);
        store_row(slice, 4u * row + 2u, col, products[2]);
        store_row(slice, 4u * row + 3u, col, products[3]);
    }
}

// What a lane fetches: four rows or columns of an operand at four places of k, as they go into a tile.
struct Block {
    at0: TILE,
    at1: TILE,
    at2: TILE,
    at3: TILE,
}

// Four rows of four places as four places of four rows.
fn turned(rows: Block) -> Block {
    return Block(
        TILE(rows.at0.x, rows.at1.x, rows.at2.x, rows.at3.x),
        TILE(rows.at0.y, rows.at1.y, rows.at2.y, rows.at3.y),
        TILE(rows.at0.z, rows.at1.z, rows.at2.z, rows.at3.z),
        TILE(rows.at0.w, rows.at1.w, rows.at2.w, rows.at3.w),
    );
}

// What an operand has at four places of k, in the run that ends at `end`: 0 from there on. Nothing is read beyond the operand.
fn within(v: vec4f, k: u32, end: u32) -> TILE {
    return select(TILE(0.0), store_tile(v), k < end);
}

// Four rows of a at four places of k from `k` on. Rows beyond the last read the last ones again, and are not stored.
fn block_of_a(start: u32, row: u32, k: u32, end: u32) -> Block {
    let last = params.k - 1u;
    if TRANSPOSE_A == 1u {
        let stride = params.m / 4u;
        let at = start + min(row, stride - 1u);
        return Block(
            within(load_a(a[at + min(k, last) * stride]), k, end),
            within(load_a(a[at + min(k + 1u, last) * stride]), k + 1u, end),
            within(load_a(a[at + min(k + 2u, last) * stride]), k + 2u, end),
            within(load_a(a[at + min(k + 3u, last) * stride]), k + 3u, end),
        );
    }
    let stride = params.k / 4u;
    let at = start + min(k, last) / 4u;
    let rows = min(4u * row + vec4u(0u, 1u, 2u, 3u), vec4u(params.m - 1u));
    return turned(Block(
        within(load_a(a[at + rows.x * stride]), k, end),
        within(load_a(a[at + rows.y * stride]), k, end),
        within(load_a(a[at + rows.z * stride]), k, end),
        within(load_a(a[at + rows.w * stride]), k, end),
    ));
}

// The same of four columns of b.
fn block_of_b(start: u32, col: u32, k: u32, end: u32) -> Block {
    let last = params.k - 1u;
    if TRANSPOSE_B == 1u {
        let stride = params.k / 4u;
        let at = start + 4u * min(col, params.n / 4u - 1u) * stride + min(k, last) / 4u;
        return turned(Block(
            within(load_b(b[at]), k, end),
            within(load_b(b[at + stride]), k, end),
            within(load_b(b[at + 2u * stride]), k, end),
            within(load_b(b[at + 3u * stride]), k, end),
        ));
    }
    let stride = params.n / 4u;
    let at = start + min(col, stride - 1u);
    return Block(
        within(load_b(b[at + min(k, last) * stride]), k, end),
        within(load_b(b[at + min(k + 1u, last) * stride]), k + 1u, end),
        within(load_b(b[at + min(k + 2u, last) * stride]), k + 2u, end),
        within(load_b(b[at + min(k + 3u, last) * stride]), k + 3u, end),
    );
}

// Which block of a tile a lane fetches: its number along the rows or columns, and along k. Neighbours read what lies beside each other.
fn fetched(lane: u32, n_blocks: u32, k_fastest: bool) -> vec2u {
    if k_fastest {
        return vec2u(lane / (DEPTH / 4u), lane % (DEPTH / 4u));
    }
    return vec2u(lane % n_blocks, lane / n_blocks);
}

// A block of 4 by 4 sums.
struct Sums {
    of_x: SUM,
    of_y: SUM,
    of_z: SUM,
    of_w: SUM,
}

fn add_product(sums: Sums, a: SUM, b: SUM) -> Sums {
    return Sums(
        fma(SUM(a.x), b, sums.of_x),
        fma(SUM(a.y), b, sums.of_y),
        fma(SUM(a.z), b, sums.of_z),
        fma(SUM(a.w), b, sums.of_w),
    );
}

fn add_sums(totals: mat4x4f, sums: Sums) -> mat4x4f {
    return totals + mat4x4f(load_sum(sums.of_x), load_sum(sums.of_y), load_sum(sums.of_z), load_sum(sums.of_w));
}

@compute @workgroup_size(LANE_COLS, LANE_ROWS)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let n_row_groups = (params.m + 4u * TILE_ROWS - 1u) / (4u * TILE_ROWS);
    let row_group = group.z * groups.y + group.y;
    let slice = row_group / n_row_groups;
    // Whole groups leave here, so that the barriers below are reached by all lanes of a group or by none.
    if slice >= params.n_slices {
        return;
    }
    let tile_row = row_group % n_row_groups * TILE_ROWS;
    let tile_col = group.x * TILE_COLS;
    let pair = select(slice, 0u, SPLIT == 1u);
    let a_start = pair * (params.m * params.k / 4u);
    let b_start = pair * (params.n / 4u * params.k);
    let first = select(0u, slice * params.slice_k, SPLIT == 1u);
    let end = min(first + params.slice_k, params.k);

    // The first lanes fetch a, the last ones b: those are others where a tile has fewer blocks than there are lanes.
    let of_a = fetched(lane, TILE_ROWS, TRANSPOSE_A == 0u);
    let b_lane = LANE_ROWS * LANE_COLS - 1u - lane;
    let of_b = fetched(b_lane, TILE_COLS, TRANSPOSE_B == 1u);
    let fetches_a = lane < TILE_ROWS * DEPTH / 4u;
    let fetches_b = b_lane < TILE_COLS * DEPTH / 4u;

    let lane_row = lane / LANE_COLS;
    let lane_col = lane % LANE_COLS;
    var s00 = Sums();
    var s01 = Sums();
    var s10 = Sums();
    var s11 = Sums();
    // What is left of these without BY_TILE is 0.
    var t00 = mat4x4f();
    var t01 = mat4x4f();
    var t10 = mat4x4f();
    var t11 = mat4x4f();
    var next_a = Block();
    var next_b = Block();
    if fetches_a {
        next_a = block_of_a(a_start, tile_row + of_a.x, first + 4u * of_a.y, end);
    }
    if fetches_b {
        next_b = block_of_b(b_start, tile_col + of_b.x, first + 4u * of_b.y, end);
    }
    var stage = 0u;
    for (var start = first; start < end; start += DEPTH) {
        let a_stage = stage * A_LEN;
        let b_stage = stage * B_LEN;
        if fetches_a {
            let at = a_stage + 4u * of_a.y * A_STRIDE + of_a.x;
            a_tile[at] = next_a.at0;
            a_tile[at + A_STRIDE] = next_a.at1;
            a_tile[at + 2u * A_STRIDE] = next_a.at2;
            a_tile[at + 3u * A_STRIDE] = next_a.at3;
        }
        if fetches_b {
            let at = b_stage + 4u * of_b.y * B_STRIDE + of_b.x;
            b_tile[at] = next_b.at0;
            b_tile[at + B_STRIDE] = next_b.at1;
            b_tile[at + 2u * B_STRIDE] = next_b.at2;
            b_tile[at + 3u * B_STRIDE] = next_b.at3;
        }
        // The other half is still being read by some, this one by none: they are past the barrier before.
        workgroupBarrier();
        if fetches_a && start + DEPTH < end {
            next_a = block_of_a(a_start, tile_row + of_a.x, start + DEPTH + 4u * of_a.y, end);
        }
        if fetches_b && start + DEPTH < end {
            next_b = block_of_b(b_start, tile_col + of_b.x, start + DEPTH + 4u * of_b.y, end);
        }
        for (var k = 0u; k < DEPTH; k += 1u) {
            let a_at = a_stage + k * A_STRIDE + lane_row;
            let b_at = b_stage + k * B_STRIDE + lane_col;
            let a0 = load_tile(a_tile[a_at]);
            let b0 = load_tile(b_tile[b_at]);
            s00 = add_product(s00, a0, b0);
            if ROW_BLOCKS == 2u {
                s10 = add_product(s10, load_tile(a_tile[a_at + LANE_ROWS]), b0);
            }
            if COL_BLOCKS == 2u {
                s01 = add_product(s01, a0, load_tile(b_tile[b_at + LANE_COLS]));
            }
            if ROW_BLOCKS == 2u && COL_BLOCKS == 2u {
                s11 = add_product(s11, load_tile(a_tile[a_at + LANE_ROWS]), load_tile(b_tile[b_at + LANE_COLS]));
            }
        }
        if BY_TILE == 1u {
            t00 = add_sums(t00, s00);
            t01 = add_sums(t01, s01);
            t10 = add_sums(t10, s10);
            t11 = add_sums(t11, s11);
            s00 = Sums();
            s01 = Sums();
            s10 = Sums();
            s11 = Sums();
        }
        stage = 1u - stage;
    }

    let row = tile_row + lane_row;
    let col = tile_col + lane_col;
    store(slice, row, col, add_sums(t00, s00));
    if COL_BLOCKS == 2u {
        store(slice, row, col + LANE_COLS, add_sums(t01, s01));
    }
    if ROW_BLOCKS == 2u {
        store(slice, row + LANE_ROWS, col, add_sums(t10, s10));
    }
    if ROW_BLOCKS == 2u && COL_BLOCKS == 2u {
        store(slice, row + LANE_ROWS, col + LANE_COLS, add_sums(t11, s11));
    }
}
