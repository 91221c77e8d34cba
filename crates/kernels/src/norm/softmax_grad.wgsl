// grad_x = y (grad_y - sum_k grad_y[k] y[k]), row by row; with LOG, grad_x = grad_y - exp(y) sum_k grad_y[k].
// Twin: softmax_cpu.rs. Moves 12 bytes an element, if the second reading comes from a cache.
// Ladder: row_a_lane (no barrier, for narrow rows and software adapters) -> row_a_group (coalesced).

struct Params {
    n_rows: u32,
    n_cols: u32,
    pad0: u32,
    pad1: u32,
}

override WG: u32 = 64u;
override LOG: u32 = 0u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> grad_y: array<f32>;
@group(0) @binding(2) var<storage, read> y: array<f32>;
@group(0) @binding(3) var<storage, read_write> grad_x: array<f32>;

var<workgroup> partials: array<f32, WG>;

fn scan(row: u32, first: u32, stride: u32) -> f32 {
    var sum = 0.0;
    for (var col = first; col < params.n_cols; col += stride) {
        let i = row * params.n_cols + col;
        sum += grad_y[i] * select(y[i], 1.0, LOG == 1u);
    }
    return sum;
}

fn store(row: u32, first: u32, stride: u32, sum: f32) {
    for (var col = first; col < params.n_cols; col += stride) {
        let i = row * params.n_cols + col;
        if LOG == 1u {
            grad_x[i] = grad_y[i] - exp(y[i]) * sum;
        } else {
            grad_x[i] = y[i] * (grad_y[i] - sum);
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
            partials[lane] += partials[lane + reach];
        }
        workgroupBarrier();
    }
    store(row, lane, WG, partials[0]);
}
