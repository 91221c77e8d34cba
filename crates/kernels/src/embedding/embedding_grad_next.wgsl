// next[i] = the first row after i with the same entry, or none: the chains that embedding_grad_chain.wgsl follows.
// Twin: embedding_cpu.rs. Reads codes until one is the same.

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
@group(0) @binding(1) var<storage, read> index: array<u32>;
@group(0) @binding(2) var<storage, read_write> next: array<u32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i >= params.n {
        return;
    }
    let entry = entry_of(i);
    var row = i + 1u;
    while row < params.n && entry_of(row) != entry {
        row += 1u;
    }
    next[i] = select(NONE, row, row < params.n);
}
