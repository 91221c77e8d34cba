// parts[p, e, c] = sum of grad_y[i, c] over the rows i of run p whose entry is e, 64 rows a run. Then embedding_grad_add.wgsl.
// Twin: embedding_cpu.rs. For few entries: each of them reads all codes.

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
const PART_ROWS = 64u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> grad_y: array<f32>;
@group(0) @binding(2) var<storage, read> index: array<u32>;
@group(0) @binding(3) var<storage, read_write> parts: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i >= arrayLength(&parts) {
        return;
    }
    let col = i % params.dim;
    let entry = i / params.dim % params.n_entries;
    let first = i / params.dim / params.n_entries * PART_ROWS;
    let end = min(first + PART_ROWS, params.n);
    var sum = 0.0;
    if entry != params.padding {
        for (var row = first; row < end; row += 1u) {
            if entry_of(row) == entry {
                sum += grad_y[row * params.dim + col];
            }
        }
    }
    parts[i] = sum;
}
