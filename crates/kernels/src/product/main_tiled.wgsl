// Part: the main loop of products with tiles of both operands in workgroup memory; each invocation has ROW_BLOCKS by COL_BLOCKS blocks of 4 by 4
// results. Reads a once for a tile's columns and b once for its rows.
//
// Expects the parts block.wgsl and sums.wgsl, and from the loader:
// - `Job`, what a workgroup computes, with `exists`, `row` and `col` (its first blocks), and `first` and `end` of K; `job_of(group, groups)`;
// - `a_along_k()` and `b_along_k()`, whether neighbours along K are adjacent in an operand;
// - `rows_of_a(job, row)` and `cols_of_b(job, col)`, the addresses of a block, and `block_of_a(job, rows, k)`, `block_of_b(job, cols, k)`, which are
//   0 beyond the operand.
// With BY_TILE, `SUM` may be f16 for the products of one tile, whose sums are added in f32.
//
// What bounds it, for tiles of 128 by 128 by 256 invocations (2 by 2 blocks):
// - memory: 2 * 128 * 128 operations for each 2 * 128 values read, 32 per byte of f32 and 64 of f16; a GPU with 20 TFLOP/s and 1 TB/s needs 20.
// - workgroup memory: an invocation reads 4 vec4s, 64 bytes, for 64 multiply-adds. A processor that does 128 of these and reads 128 bytes per clock
//   would need 2 clocks for 2 invocations' sums and 1 for their bytes; with 1 by 1 blocks, 32 bytes for 16, the bytes are the bound.
// - registers: 64 sums, 16 operands, 16 or 32 in flight (half as many for tiles in f16): two workgroups of 256 invocations fit if a processor
//   has 64 Ki registers.
// - latency: the next tile is fetched while this one is used. Tiles have two halves, so that one barrier per tile is enough.
// - banks: neighbouring invocations read neighbouring vec4s of b, and the same one of a. An operand that is contiguous along K is transposed in registers, four rows of
//   four; a K index takes an odd number of vec4s, so that eight invocations write to different banks for a depth of 8.
// Small results use smaller tiles, so that the GPU is filled: see tiles.rs.
//
// For operands in f16, an adapter may allow products to be added in f16 (Adapter::f16_accumulation), two with one instruction on hardware with packed arithmetic:
// over the 16 indices of a tile, whose sums are added to totals in f32 and then reset to 0 (BY_TILE, DEPTH = 16). So the rounding error grows with a
// tile's depth, by 2^-11 of the sum of |a b| for each index, and not with K; sums beyond 65504 within a tile are infinite. Instructions of an invocation with 64 results:
// - in f32, over tiles in f16: 64 multiply-adds and 16 conversions an index, 1280 for 16 of them.
// - packed: 32 multiply-adds an index, and for each tile 64 conversions, 64 additions and 32 zeros: 672 for 16, 1.9 times fewer. For 8 it would be
//   416 to 640, 1.5 times; for 32 it is 2.2 times, with twice the error and twice the workgroup memory.
// - registers: 64 totals, 32 of packed sums, 8 of operands, 16 in flight.

override INVOCATION_ROWS: u32 = 8u;
override INVOCATION_COLS: u32 = 8u;
override ROW_BLOCKS: u32 = 2u;
override COL_BLOCKS: u32 = 2u;
override DEPTH: u32 = 8u;
override BY_TILE: u32 = 0u;

// A tile's rows and columns in blocks, and the workgroup memory per K index.
override TILE_ROWS: u32 = INVOCATION_ROWS * ROW_BLOCKS;
override TILE_COLS: u32 = INVOCATION_COLS * COL_BLOCKS;
override A_STRIDE: u32 = TILE_ROWS + 1u;
override B_STRIDE: u32 = TILE_COLS + 1u;
override A_LEN: u32 = DEPTH * A_STRIDE;
override B_LEN: u32 = DEPTH * B_STRIDE;
override A_HALVES: u32 = 2u * A_LEN;
override B_HALVES: u32 = 2u * B_LEN;

// a_tile[half][k][row / 4], b_tile[half][k][col / 4].
var<workgroup> a_tile: array<TILE, A_HALVES>;
var<workgroup> b_tile: array<TILE, B_HALVES>;

// Which block of a tile an invocation fetches: its index along the rows or columns, and along K. Neighbours read adjacent memory.
fn fetched(invocation: u32, n_blocks: u32, along_k: bool) -> vec2u {
    if along_k {
        return vec2u(invocation / (DEPTH / 4u), invocation % (DEPTH / 4u));
    }
    return vec2u(invocation % n_blocks, invocation / n_blocks);
}

@compute @workgroup_size(INVOCATION_COLS, INVOCATION_ROWS)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) invocation: u32) {
    let job = job_of(group, groups);
    // Whole workgroups return here, so that the barriers below are reached by all invocations of a workgroup or by none.
    if !job.exists {
        return;
    }

    // The first invocations fetch a, the last ones b: these are different invocations if a tile has fewer blocks than there are invocations. Then each
    // has only one block in flight, not two: 16 registers fewer.
    let of_a = fetched(invocation, TILE_ROWS, a_along_k());
    let b_invocation = INVOCATION_ROWS * INVOCATION_COLS - 1u - invocation;
    let of_b = fetched(b_invocation, TILE_COLS, b_along_k());
    let fetches_a = invocation < TILE_ROWS * DEPTH / 4u;
    let fetches_b = b_invocation < TILE_COLS * DEPTH / 4u;
    let fetches_one = (TILE_ROWS + TILE_COLS) * DEPTH / 4u <= INVOCATION_ROWS * INVOCATION_COLS;
    let rows = rows_of_a(job, job.row + of_a.x);
    let cols = cols_of_b(job, job.col + of_b.x);

    let invocation_row = invocation / INVOCATION_COLS;
    let invocation_col = invocation % INVOCATION_COLS;
    var s00 = Sums();
    var s01 = Sums();
    var s10 = Sums();
    var s11 = Sums();
    // Without BY_TILE these stay 0, and the compiler removes their code.
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
        // Other invocations may still read the other half, but none reads this one: all have passed the previous barrier.
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
            let a_at = a_stage + k * A_STRIDE + invocation_row;
            let b_at = b_stage + k * B_STRIDE + invocation_col;
            let a0 = SUM(a_tile[a_at]);
            let b0 = SUM(b_tile[b_at]);
            s00 = add_product(s00, a0, b0);
            if ROW_BLOCKS == 2u {
                s10 = add_product(s10, SUM(a_tile[a_at + INVOCATION_ROWS]), b0);
            }
            if COL_BLOCKS == 2u {
                s01 = add_product(s01, a0, SUM(b_tile[b_at + INVOCATION_COLS]));
            }
            if ROW_BLOCKS == 2u && COL_BLOCKS == 2u {
                s11 = add_product(s11, SUM(a_tile[a_at + INVOCATION_ROWS]), SUM(b_tile[b_at + INVOCATION_COLS]));
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

    let row = job.row + invocation_row;
    let col = job.col + invocation_col;
    store_block(job, row, col, add_sums(t00, s00));
    if COL_BLOCKS == 2u {
        store_block(job, row, col + INVOCATION_COLS, add_sums(t01, s01));
    }
    if ROW_BLOCKS == 2u {
        store_block(job, row + INVOCATION_ROWS, col, add_sums(t10, s10));
    }
    if ROW_BLOCKS == 2u && COL_BLOCKS == 2u {
        store_block(job, row + INVOCATION_ROWS, col + INVOCATION_COLS, add_sums(t11, s11));
    }
}
