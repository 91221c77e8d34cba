// grad_x = s (g - mean g - h mean (g h)) along each row, with g = grad_y weight, h = (x - mean x) s, (mean x, s) = stats[r].
// Twin: layer_norm_cpu.rs. Moves 12 bytes an element, if the second reading comes from a cache.
// Ladder: row_a_lane (no barrier, for narrow rows and software adapters) -> row_a_group (coalesced).

struct Params {
    n_rows: u32,
    n_cols: u32,
    eps: f32,
    pad: u32,
}

override WG: u32 = 64u;
override HAS_WEIGHT: u32 = 0u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> grad_y: array<f32>;
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read> weight: array<f32>;
@group(0) @binding(4) var<storage, read> stats: array<f32>;
@group(0) @binding(5) var<storage, read_write> grad_x: array<f32>;

var<workgroup> partials: array<vec2f, WG>;

// (g, h) of one element.
fn value(row: u32, col: u32) -> vec2f {
    let i = row * params.n_cols + col;
    var g = grad_y[i];
    if HAS_WEIGHT == 1u {
        g *= weight[col];
    }
    return vec2f(g, (x[i] - stats[2u * row]) * stats[2u * row + 1u]);
}

// (sum of g, sum of g h).
fn scan(row: u32, first: u32, stride: u32) -> vec2f {
    var sums = vec2f();
    for (var col = first; col < params.n_cols; col += stride) {
        let v = value(row, col);
        sums += vec2f(v.x, v.x * v.y);
    }
    return sums;
}

fn store(row: u32, sums: vec2f, first: u32, stride: u32) {
    let means = sums / f32(params.n_cols);
    for (var col = first; col < params.n_cols; col += stride) {
        let v = value(row, col);
        grad_x[row * params.n_cols + col] = stats[2u * row + 1u] * (v.x - means.x - v.y * means.y);
    }
}

@compute @workgroup_size(WG)
fn row_a_lane(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let row = (group.y * groups.x + group.x) * WG + lane;
    if row < params.n_rows {
        store(row, scan(row, 0u, 1u), 0u, 1u);
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
            partials[lane] += partials[lane + reach];
        }
        workgroupBarrier();
    }
    store(row, partials[0], lane, WG);
}
