// Part: the main loop of products by tiles of both operands in workgroup memory, each invocation with ROW_BLOCKS by COL_BLOCKS blocks of 4 by 4
// results. What bounds it: matmul_tiled.wgsl.
//
// Expects of the part that loads and stores:
// - `Job`, what a workgroup computes, with `exists`, `row` and `col` (its first blocks), and `first` and `end` of K; `job_of(group, groups)`;
// - `a_along_k()` and `b_along_k()`, whether neighbours along K lie side by side in an operand;
// - `rows_of_a(job, row)` and `cols_of_b(job, col)`, what a block needs to be found, and `block_of_a(job, rows, k)`, `block_of_b(job, cols, k)`;
// - `store(job, row, col, sums)`, which checks that the block is within the result.
// Expects of the stored types `TILE`, in workgroup memory, and `SUM`, in which products are added: with BY_TILE that may be f16, for the
// products of one tile, whose sums are added in f32.

override LANE_ROWS: u32 = 8u;
override LANE_COLS: u32 = 8u;
override ROW_BLOCKS: u32 = 2u;
override COL_BLOCKS: u32 = 2u;
override DEPTH: u32 = 8u;
override BY_TILE: u32 = 0u;

// A tile's rows and columns in blocks, and how much workgroup memory an index of K takes.
override TILE_ROWS: u32 = LANE_ROWS * ROW_BLOCKS;
override TILE_COLS: u32 = LANE_COLS * COL_BLOCKS;
override A_STRIDE: u32 = TILE_ROWS + 1u;
override B_STRIDE: u32 = TILE_COLS + 1u;
override A_LEN: u32 = DEPTH * A_STRIDE;
override B_LEN: u32 = DEPTH * B_STRIDE;
override A_HALVES: u32 = 2u * A_LEN;
override B_HALVES: u32 = 2u * B_LEN;

// a_tile[half][k][row / 4], b_tile[half][k][col / 4].
var<workgroup> a_tile: array<TILE, A_HALVES>;
var<workgroup> b_tile: array<TILE, B_HALVES>;

fn load_tile(v: TILE) -> SUM { return SUM(v); }
fn store_tile(v: vec4f) -> TILE { return TILE(v); }
fn load_sum(v: SUM) -> vec4f { return vec4f(v); }

// What an invocation fetches: four rows or columns of an operand at four indices of K, as they go into a tile.
struct Block {
    at0: TILE,
    at1: TILE,
    at2: TILE,
    at3: TILE,
}

// Four rows at four indices of K, from four indices of K in four rows.
fn turned(rows: Block) -> Block {
    return Block(
        TILE(rows.at0.x, rows.at1.x, rows.at2.x, rows.at3.x),
        TILE(rows.at0.y, rows.at1.y, rows.at2.y, rows.at3.y),
        TILE(rows.at0.z, rows.at1.z, rows.at2.z, rows.at3.z),
        TILE(rows.at0.w, rows.at1.w, rows.at2.w, rows.at3.w),
    );
}

// Which block of a tile an invocation fetches: its index along the rows or columns, and along K. Neighbours read what is stored side by side.
fn fetched(lane: u32, n_blocks: u32, along_k: bool) -> vec2u {
    if along_k {
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
    let job = job_of(group, groups);
    // Whole workgroups leave here, so that the barriers below are reached by all invocations of one or by none.
    if !job.exists {
        return;
    }

    // The first invocations fetch a, the last ones b: those are others where a tile has fewer blocks than there are invocations. Then each
    // holds one block that is on its way, not two: 16 registers fewer.
    let of_a = fetched(lane, TILE_ROWS, a_along_k());
    let b_lane = LANE_ROWS * LANE_COLS - 1u - lane;
    let of_b = fetched(b_lane, TILE_COLS, b_along_k());
    let fetches_a = lane < TILE_ROWS * DEPTH / 4u;
    let fetches_b = b_lane < TILE_COLS * DEPTH / 4u;
    let fetches_one = (TILE_ROWS + TILE_COLS) * DEPTH / 4u <= LANE_ROWS * LANE_COLS;
    let rows = rows_of_a(job, job.row + of_a.x);
    let cols = cols_of_b(job, job.col + of_b.x);

    let lane_row = lane / LANE_COLS;
    let lane_col = lane % LANE_COLS;
    var s00 = Sums();
    var s01 = Sums();
    var s10 = Sums();
    var s11 = Sums();
    // Without BY_TILE these stay 0, and no code is left of them.
    var t00 = mat4x4f();
    var t01 = mat4x4f();
    var t10 = mat4x4f();
    var t11 = mat4x4f();
    var next = Block();
    var next_b = Block();
    if fetches_a {
        next = block_of_a(job, rows, job.first + 4u * of_a.y);
    }
    if fetches_b {
        let block = block_of_b(job, cols, job.first + 4u * of_b.y);
        if fetches_one {
            next = block;
        } else {
            next_b = block;
        }
    }
    var stage = 0u;
    for (var start = job.first; start < job.end; start += DEPTH) {
        let a_stage = stage * A_LEN;
        let b_stage = stage * B_LEN;
        if fetches_a {
            let at = a_stage + 4u * of_a.y * A_STRIDE + of_a.x;
            a_tile[at] = next.at0;
            a_tile[at + A_STRIDE] = next.at1;
            a_tile[at + 2u * A_STRIDE] = next.at2;
            a_tile[at + 3u * A_STRIDE] = next.at3;
        }
        if fetches_b {
            var block = next_b;
            if fetches_one {
                block = next;
            }
            let at = b_stage + 4u * of_b.y * B_STRIDE + of_b.x;
            b_tile[at] = block.at0;
            b_tile[at + B_STRIDE] = block.at1;
            b_tile[at + 2u * B_STRIDE] = block.at2;
            b_tile[at + 3u * B_STRIDE] = block.at3;
        }
        // Others may still read the other half, but none reads this one: all are past the barrier before.
        workgroupBarrier();
        if fetches_a && start + DEPTH < job.end {
            next = block_of_a(job, rows, start + DEPTH + 4u * of_a.y);
        }
        if fetches_b && start + DEPTH < job.end {
            let block = block_of_b(job, cols, start + DEPTH + 4u * of_b.y);
            if fetches_one {
                next = block;
            } else {
                next_b = block;
            }
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

    let row = job.row + lane_row;
    let col = job.col + lane_col;
    store(job, row, col, add_sums(t00, s00));
    if COL_BLOCKS == 2u {
        store(job, row, col + LANE_COLS, add_sums(t01, s01));
    }
    if ROW_BLOCKS == 2u {
        store(job, row + LANE_ROWS, col, add_sums(t10, s10));
    }
    if ROW_BLOCKS == 2u && COL_BLOCKS == 2u {
        store(job, row + LANE_ROWS, col + LANE_COLS, add_sums(t11, s11));
    }
}
