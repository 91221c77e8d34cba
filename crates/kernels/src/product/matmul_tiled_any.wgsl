// y = epilogue(op(a) b), b: [k, n], any shape: 64 x 64 results a workgroup, its operands in workgroup memory 16 places of k at a time,
// 4 x 4 results a lane.
// Twin: matmul_cpu.rs. Reads a once for 64 columns and b once for 64 rows.
// Ladder: matmul_direct.wgsl (each lane reads for itself) -> this -> matmul_tiled.wgsl (vec4 loads, larger blocks, one barrier a tile). For hardware:
// on a software adapter barriers are ruinous.
//
// Loads are scalar and neighbouring lanes read neighbouring addresses, so that any shape is coalesced and none needs another module;
// from workgroup memory each lane then reads whole vec4s. The next tile is fetched into registers while this one is used.

struct Params {
    m: u32,
    n: u32,
    k: u32,
    pad: u32,
}

const TILE = 64u;
const DEPTH = 16u;
const LANES = 256u;
// Elements of a tile of one operand that each lane fetches.
const FETCHED = 4u;
// A column of the tile of a, in vec4s, with one more so that the transposing writes fall into different banks.
const A_STRIDE = 17u;
override TRANSPOSE_A: u32 = 0u;
override EPILOGUE: u32 = 0u;
override ACTIVATION: u32 = 0u;
override ALPHA: f32 = 1.0;

// As stored: src/stored_types.rs. Results in 16 bits are two neighbours in a row, so that there is an even number of columns or one row.
alias A = f32;
alias B = f32;
alias FUSED = f32;
alias Y = f32;
fn load_a(i: u32) -> f32 { return a[i]; }
fn load_b(i: u32) -> f32 { return b[i]; }
fn load_fused(i: u32) -> f32 { return fused[i]; }
fn store_y(i: u32, v: vec2f, n: u32) { y[i] = v.x; if n > 1u { y[i + 1u] = v.y; } }

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<A>;
@group(0) @binding(2) var<storage, read> b: array<B>;
// The bias [n], or the output [m, n] whose activation is gone through.
@group(0) @binding(3) var<storage, read> fused: array<FUSED>;
@group(0) @binding(4) var<storage, read_write> y: array<Y>;

// a_tile[k][row / 4][row % 4], b_tile[k][col / 4][col % 4].
var<workgroup> a_tile: array<vec4f, 272>;
var<workgroup> b_tile: array<vec4f, 256>;

// `y`, or `v` where that is NaN: told by its bits, since `clamp` may drop it.
fn or_nan(v: vec2f, y: vec2f) -> vec2f {
    return select(y, v, (bitcast<vec2u>(v) & vec2u(0x7FFFFFFFu)) > vec2u(0x7F800000u));
}

fn act(v: vec2f) -> vec2f {
    switch ACTIVATION {
        case 1u: { return select(v, vec2f(), v < vec2f()); }
        case 2u: { return select(v, ALPHA * (exp(min(v, vec2f()) / ALPHA) - 1.0), v < vec2f()); }
        case 3u: { return or_nan(v, 1.0 / (1.0 + exp(-clamp(v, vec2f(-87.0), vec2f(87.0))))); }
        case 4u: { return or_nan(v, tanh(clamp(v, vec2f(-10.0), vec2f(10.0)))); }
        default: { return v; }
    }
}

fn slope_from_output(v: vec2f) -> vec2f {
    switch ACTIVATION {
        case 1u: { return select(vec2f(), vec2f(1.0), v > vec2f()); }
        case 2u: { return select(v / ALPHA + 1.0, vec2f(1.0), v > vec2f()); }
        case 3u: { return v * (1.0 - v); }
        case 4u: { return 1.0 - v * v; }
        default: { return vec2f(1.0); }
    }
}

// Two neighbours of a row, of which the second may be beyond its end.
fn store_two(row: u32, col: u32, products: vec2f) {
    if row >= params.m || col >= params.n {
        return;
    }
    let i = row * params.n + col;
    let next = select(0u, 1u, col + 1u < params.n);
    switch EPILOGUE {
        case 1u: { store_y(i, act(products + vec2f(load_fused(col), load_fused(col + next))), 1u + next); }
        case 2u: { store_y(i, products * slope_from_output(vec2f(load_fused(i), load_fused(i + next))), 1u + next); }
        default: { store_y(i, act(products), 1u + next); }
    }
}

fn store_row(row: u32, col: u32, products: vec4f) {
    store_two(row, col, products.xy);
    store_two(row, col + 2u, products.zw);
}

// Where element `i` of a tile of a lies: along k first as it is stored, or along the rows if it is transposed.
fn place_in_a(i: u32) -> vec2u {
    if TRANSPOSE_A == 1u {
        return vec2u(i % TILE, i / TILE);
    }
    return vec2u(i / DEPTH, i % DEPTH);
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

fn fetch_a(row: u32, k: u32, lane: u32) -> vec4f {
    let p0 = place_in_a(lane);
    let p1 = place_in_a(lane + LANES);
    let p2 = place_in_a(lane + 2u * LANES);
    let p3 = place_in_a(lane + 3u * LANES);
    return vec4f(
        value_of_a(row + p0.x, k + p0.y),
        value_of_a(row + p1.x, k + p1.y),
        value_of_a(row + p2.x, k + p2.y),
        value_of_a(row + p3.x, k + p3.y),
    );
}

fn fetch_b(k: u32, col: u32, lane: u32) -> vec4f {
    let at = vec2u(k + lane / TILE, col + lane % TILE);
    return vec4f(
        value_of_b(at.x, at.y),
        value_of_b(at.x + 4u, at.y),
        value_of_b(at.x + 8u, at.y),
        value_of_b(at.x + 12u, at.y),
    );
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let tile_row = (group.z * groups.y + group.y) * TILE;
    let tile_col = group.x * TILE;
    let lane_row = lane / 16u;
    let lane_col = lane % 16u;
    var sum0 = vec4f();
    var sum1 = vec4f();
    var sum2 = vec4f();
    var sum3 = vec4f();
    var next_a = fetch_a(tile_row, 0u, lane);
    var next_b = fetch_b(0u, tile_col, lane);
    for (var start = 0u; start < params.k; start += DEPTH) {
        for (var i = 0u; i < FETCHED; i += 1u) {
            let place = place_in_a(lane + i * LANES);
            a_tile[place.y * A_STRIDE + place.x / 4u][place.x % 4u] = next_a[i];
            let col = lane % TILE;
            b_tile[(lane / TILE + 4u * i) * 16u + col / 4u][col % 4u] = next_b[i];
        }
        workgroupBarrier();
        next_a = fetch_a(tile_row, start + DEPTH, lane);
        next_b = fetch_b(start + DEPTH, tile_col, lane);
        for (var k = 0u; k < DEPTH; k += 1u) {
            let rows = a_tile[k * A_STRIDE + lane_row];
            let cols = b_tile[k * 16u + lane_col];
            sum0 += rows.x * cols;
            sum1 += rows.y * cols;
            sum2 += rows.z * cols;
            sum3 += rows.w * cols;
        }
        workgroupBarrier();
    }
    let row = tile_row + 4u * lane_row;
    let col = tile_col + 4u * lane_col;
    store_row(row, col, sum0);
    store_row(row + 1u, col, sum1);
    store_row(row + 2u, col, sum2);
    store_row(row + 3u, col, sum3);
}
