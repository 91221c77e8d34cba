// y[i, c] = weight[index[i, index_col], c]; a code beyond the table is read as 0.
// Twin: embedding_cpu.rs. Moves 8 bytes an element.

struct Params {
    n_entries: u32,
    dim: u32,
    n_index_cols: u32,
    index_col: u32,
}

override WG: u32 = 64u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> weight: array<f32>;
@group(0) @binding(2) var<storage, read> index: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i >= arrayLength(&y) {
        return;
    }
    let code = index[i / params.dim * params.n_index_cols + params.index_col];
    let entry = select(0u, code, code < params.n_entries);
    y[i] = weight[entry * params.dim + i % params.dim];
}
