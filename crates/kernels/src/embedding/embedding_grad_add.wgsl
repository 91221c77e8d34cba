// grad_weight[e, c] = sum of parts[p, e, c] over the runs p, in order: the second half of embedding_grad_parts.wgsl.
// Twin: embedding_cpu.rs.

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

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> parts: array<f32>;
@group(0) @binding(2) var<storage, read_write> grad_weight: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    let n = arrayLength(&grad_weight);
    if i >= n {
        return;
    }
    var sum = 0.0;
    for (var part = 0u; part < params.n_parts; part += 1u) {
        sum += parts[part * n + i];
    }
    grad_weight[i] = sum;
}
