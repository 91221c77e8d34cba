// grad_weight[e, c] = sum of grad_y[i, c] along the chain of rows that starts at heads[e], in order; 0 for the padding entry.
// Twin: embedding_cpu.rs. Moves 4 bytes an element of grad_y and of grad_weight.

struct Params {
    n: u32,
    n_entries: u32,
    dim: u32,
    n_index_cols: u32,
    index_col: u32,
    padding: u32,
    n_parts: u32,
    pad: u32,
}

override WG: u32 = 64u;
const NONE = 0xFFFFFFFFu;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> grad_y: array<f32>;
@group(0) @binding(2) var<storage, read> heads: array<u32>;
@group(0) @binding(3) var<storage, read> next: array<u32>;
@group(0) @binding(4) var<storage, read_write> grad_weight: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i >= arrayLength(&grad_weight) {
        return;
    }
    let entry = i / params.dim;
    var sum = 0.0;
    if entry != params.padding {
        for (var row = heads[entry]; row != NONE; row = next[row]) {
            sum += grad_y[row * params.dim + i % params.dim];
        }
    }
    grad_weight[i] = sum;
}
