// Part: the main loop of products of f16 on cooperative matrices (tensor cores, which on a GPU of 2020 do 8 to 16 times as many multiply-adds per clock as
// its other units): each subgroup has a block of MATRICES by MATRICES results of SIZE by SIZE, whose sums are kept in f32.
//
// Expects the parts for the size of the matrices (coop_tiles.rs), and from the loader:
// - `Job`, `job_of(group, groups)` and `store_row(job, row, col, sums)`, as main_tiled.wgsl and sums.wgsl do;
// - `matrix_of_a(job, stage, row, k)` and `matrix_of_b(job, stage, col, k)`, starting at `row` or `col` of the tile and the K index `k`;
// - if an operand is STAGED in workgroup memory: `gatherer_of(job, invocation)`, the addresses of an invocation's values; `gather(job, gatherer, start)`, its
//   values for DEPTH K indices, starting at `start`; `put(stage, gatherer, gathered)`, which stores them in the half of the memory at `stage`, 0 or HALF.
// The values of the next indices are gathered while this half is used, and are stored in the other half: one barrier for DEPTH indices.
//
// A tile has BLOCK_ROWS by BLOCK_COLS blocks, one for each subgroup. The number of subgroups may differ between workgroups: if there are fewer than blocks,
// they compute the remaining blocks in further rounds; if there are more, those without a block compute the last one again and do not store it. With 4 by 4
// matrices of 16 by 16 the sums take 128 registers of each of 32 invocations, with 2 by 2 they take 32.
//
// Invocations cannot access the elements of a matrix, so sums go through workgroup memory for the epilogue, one matrix of each subgroup at a time.
// Every invocation reaches all barriers: returning early would make control flow non-uniform, which naga rejects.

override INVOCATIONS: u32 = 128u;
override BLOCK_ROWS: u32 = 2u;
override BLOCK_COLS: u32 = 2u;
// 2 or 4.
override MATRICES: u32 = 2u;

override N_BLOCKS: u32 = BLOCK_ROWS * BLOCK_COLS;
override BLOCK_LEN: u32 = MATRICES * SIZE;
// A tile's rows and columns in units of four, as jobs count them.
override TILE_ROWS: u32 = BLOCK_ROWS * BLOCK_LEN / 4u;
override TILE_COLS: u32 = BLOCK_COLS * BLOCK_LEN / 4u;
override RESULTS_LEN: u32 = N_BLOCKS * SIZE * SIZE;

// results[block][row][col].
var<workgroup> results: array<f32, RESULTS_LEN>;

// A subgroup's block: its offset in the workgroup memory for results, and its first row and column in the result. Without a block it stores nothing.
struct Place {
    exists: bool,
    results: u32,
    row: u32,
    col: u32,
    lane: u32,
    n_lanes: u32,
}

fn finish(job: Job, place: Place, row: u32, col: u32, sum: Sum) {
    if place.exists {
        coopStoreT(sum, &results[place.results], SIZE);
    }
    workgroupBarrier();
    if place.exists {
        for (var i = place.lane; i < SIZE * SIZE / 4u; i += place.n_lanes) {
            let at = place.results + 4u * i;
            let of_row = vec4f(results[at], results[at + 1u], results[at + 2u], results[at + 3u]);
            store_row(job, place.row + row * SIZE + i / (SIZE / 4u), place.col + col * SIZE + i % (SIZE / 4u) * 4u, of_row);
        }
    }
    workgroupBarrier();
}

@compute @workgroup_size(INVOCATIONS)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(num_subgroups) n_subgroups: u32,
    @builtin(subgroup_invocation_id) lane: u32,
    @builtin(subgroup_size) n_lanes: u32,
    @builtin(local_invocation_index) invocation: u32,
) {
    let job = job_of(group, groups);
    let gatherer = gatherer_of(job, invocation);
    let end_k = select(job.first, job.end, job.exists);
    var stage = 0u;
    for (var first_block = 0u; first_block < N_BLOCKS; first_block += n_subgroups) {
        let number = first_block + subgroup;
        let block = min(number, N_BLOCKS - 1u);
        let row = block / BLOCK_COLS * BLOCK_LEN;
        let col = block % BLOCK_COLS * BLOCK_LEN;
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
        var next = gather(job, gatherer, job.first);
        for (var k = job.first; k < end_k; k += SIZE) {
            if STAGED && (k - job.first) % DEPTH == 0u {
                stage = HALF - stage;
                put(stage, gatherer, next);
                // Other invocations may still read the other half, but none reads this one: all have passed the previous barrier.
                workgroupBarrier();
                if k + DEPTH < end_k {
                    next = gather(job, gatherer, k + DEPTH);
                }
            }
            let a0 = matrix_of_a(job, stage, row, k);
            let a1 = matrix_of_a(job, stage, row + SIZE, k);
            let b0 = matrix_of_b(job, stage, col, k);
            let b1 = matrix_of_b(job, stage, col + SIZE, k);
            s00 = coopMultiplyAdd(a0, b0, s00);
            s01 = coopMultiplyAdd(a0, b1, s01);
            s10 = coopMultiplyAdd(a1, b0, s10);
            s11 = coopMultiplyAdd(a1, b1, s11);
            if MATRICES == 4u {
                let a2 = matrix_of_a(job, stage, row + 2u * SIZE, k);
                let a3 = matrix_of_a(job, stage, row + 3u * SIZE, k);
                s20 = coopMultiplyAdd(a2, b0, s20);
                s21 = coopMultiplyAdd(a2, b1, s21);
                s30 = coopMultiplyAdd(a3, b0, s30);
                s31 = coopMultiplyAdd(a3, b1, s31);
                let b2 = matrix_of_b(job, stage, col + 2u * SIZE, k);
                s02 = coopMultiplyAdd(a0, b2, s02);
                s12 = coopMultiplyAdd(a1, b2, s12);
                s22 = coopMultiplyAdd(a2, b2, s22);
                s32 = coopMultiplyAdd(a3, b2, s32);
                let b3 = matrix_of_b(job, stage, col + 3u * SIZE, k);
                s03 = coopMultiplyAdd(a0, b3, s03);
                s13 = coopMultiplyAdd(a1, b3, s13);
                s23 = coopMultiplyAdd(a2, b3, s23);
                s33 = coopMultiplyAdd(a3, b3, s33);
            }
        }

        let place = Place(job.exists && number < N_BLOCKS, number * SIZE * SIZE, 4u * job.row + row, 4u * job.col + col, lane, n_lanes);
        finish(job, place, 0u, 0u, s00);
        finish(job, place, 0u, 1u, s01);
        finish(job, place, 1u, 0u, s10);
        finish(job, place, 1u, 1u, s11);
        if MATRICES == 4u {
            finish(job, place, 0u, 2u, s02);
            finish(job, place, 0u, 3u, s03);
            finish(job, place, 1u, 2u, s12);
            finish(job, place, 1u, 3u, s13);
            finish(job, place, 2u, 0u, s20);
            finish(job, place, 2u, 1u, s21);
            finish(job, place, 2u, 2u, s22);
            finish(job, place, 2u, 3u, s23);
            finish(job, place, 3u, 0u, s30);
            finish(job, place, 3u, 1u, s31);
            finish(job, place, 3u, 2u, s32);
            finish(job, place, 3u, 3u, s33);
        }
    }
}
