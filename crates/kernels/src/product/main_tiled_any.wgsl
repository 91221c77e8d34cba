// Part: the main loop of products of any shape by tiles of 64 by 64 results in workgroup memory, 16 indices of K at a time, 4 by 4 results an
// invocation.
//
// Expects of the part that loads and stores:
// - `Job`, what a workgroup computes, with `exists`, `row` and `col` (its first results), and `first` and `end` of K; `job_of(group, groups)`;
// - `a_along_k()` and `b_along_k()`, whether neighbours along K lie side by side in an operand;
// - `rows_of_a(job, rows)` and `cols_of_b(job, cols)`, what four elements need to be found, and `four_of_a(job, rows, ks)`, `four_of_b(job, cols, ks)`,
//   which give 0 beyond the operand; along K all four have one index of K, otherwise all are of one row or column;
// - `store(job, row, col, sums)`, four results of a row, some of which may lie beyond the end.
//
// Loads are scalar, and neighbouring invocations read neighbouring addresses, so that any shape is coalesced. From workgroup memory each invocation
// reads whole vec4s. The next tile is fetched into registers while this one is used.

const TILE = 64u;
const DEPTH = 16u;
const LANES = 256u;
// A column of the tile of a, in vec4s, with one more so that transposing writes go to different banks.
const A_STRIDE = 17u;
const B_STRIDE = 16u;

// a_tile[k][row / 4][row % 4], b_tile[k][col / 4][col % 4].
var<workgroup> a_tile: array<vec4f, 272>;
var<workgroup> b_tile: array<vec4f, 256>;

// Where the element `i` of the four that an invocation fetches lies in a tile: its row or column, and its index of K.
fn place_of_fetched(lane: u32, i: u32, along_k: bool) -> vec2u {
    if along_k {
        return vec2u(lane / DEPTH + 16u * i, lane % DEPTH);
    }
    return vec2u(lane % TILE, lane / TILE + 4u * i);
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let job = job_of(group, groups);
    // Whole workgroups leave here, so that the barriers below are reached by all invocations of one or by none.
    if !job.exists {
        return;
    }
    var row_of = vec4u();
    var col_of = vec4u();
    var a_k = vec4u();
    var b_k = vec4u();
    for (var i = 0u; i < 4u; i += 1u) {
        let of_a = place_of_fetched(lane, i, a_along_k());
        let of_b = place_of_fetched(lane, i, b_along_k());
        row_of[i] = of_a.x;
        a_k[i] = of_a.y;
        col_of[i] = of_b.x;
        b_k[i] = of_b.y;
    }
    let rows = rows_of_a(job, job.row + row_of);
    let cols = cols_of_b(job, job.col + col_of);
    let lane_row = lane / 16u;
    let lane_col = lane % 16u;
    var sum0 = vec4f();
    var sum1 = vec4f();
    var sum2 = vec4f();
    var sum3 = vec4f();
    var next_a = four_of_a(job, rows, job.first + a_k);
    var next_b = four_of_b(job, cols, job.first + b_k);
    for (var start = job.first; start < job.end; start += DEPTH) {
        for (var i = 0u; i < 4u; i += 1u) {
            a_tile[a_k[i] * A_STRIDE + row_of[i] / 4u][row_of[i] % 4u] = next_a[i];
            b_tile[b_k[i] * B_STRIDE + col_of[i] / 4u][col_of[i] % 4u] = next_b[i];
        }
        workgroupBarrier();
        next_a = four_of_a(job, rows, start + DEPTH + a_k);
        next_b = four_of_b(job, cols, start + DEPTH + b_k);
        for (var k = 0u; k < DEPTH; k += 1u) {
            let of_rows = a_tile[k * A_STRIDE + lane_row];
            let of_cols = b_tile[k * B_STRIDE + lane_col];
            sum0 += of_rows.x * of_cols;
            sum1 += of_rows.y * of_cols;
            sum2 += of_rows.z * of_cols;
            sum3 += of_rows.w * of_cols;
        }
        workgroupBarrier();
    }
    let row = job.row + 4u * lane_row;
    let col = job.col + 4u * lane_col;
    store(job, row, col, sum0);
    store(job, row + 1u, col, sum1);
    store(job, row + 2u, col, sum2);
    store(job, row + 3u, col, sum3);
}
