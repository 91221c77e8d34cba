// y[r,c] = exp(x[r,c] - m) / s with m = max_k x[r,k], s = sum_k exp(x[r,k] - m); with LOG, y[r,c] = x[r,c] - m - log(s).
// Twin: softmax_cpu.rs. Moves 8 bytes an element, if the second reading of x comes from a cache.
// Ladder: row_a_lane (no barrier, for narrow rows and software adapters) -> row_a_group (coalesced). Both take m and s in one reading: when
// the maximum grows, the sum so far is scaled down.

struct Params {
    n_rows: u32,
    n_cols: u32,
    pad0: u32,
    pad1: u32,
}

override WG: u32 = 64u;
override LOG: u32 = 0u;
// A maximum before the first value; not minus infinity, whose difference from itself would be NaN.
const LOWEST = -3.4028234e38;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

var<workgroup> partials: array<vec2f, WG>;

// (m, s) of every `step`th value of a row, from `first` on.
fn scan(row: u32, first: u32, stride: u32) -> vec2f {
    var sums = vec2f(LOWEST, 0.0);
    for (var col = first; col < params.n_cols; col += stride) {
        sums = join(sums, vec2f(x[row * params.n_cols + col], 1.0));
    }
    return sums;
}

fn store(row: u32, first: u32, stride: u32, sums: vec2f) {
    for (var col = first; col < params.n_cols; col += stride) {
        let i = row * params.n_cols + col;
        if LOG == 1u {
            y[i] = x[i] - sums.x - log(sums.y);
        } else {
            y[i] = exp(x[i] - sums.x) / sums.y;
        }
    }
}

@compute @workgroup_size(WG)
fn row_a_group(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let row = group.y * groups.x + group.x;
    if row >= params.n_rows {
        return;
    }
    partials[lane] = scan(row, lane, WG);
    workgroupBarrier();
    for (var reach = WG / 2u; reach > 0u; reach /= 2u) {
        if lane < reach {
            partials[lane] = join(partials[lane], partials[lane + reach]);
        }
        workgroupBarrier();
    }
    store(row, lane, WG, partials[0]);
}
