// parts[part] = the sums of grad_y and of grad_y (x - mean) inv_std over the rows of a part: the first of two dispatches.
// Twin: `sums` in batch_norm_grad_cpu.rs. Moves 8 bytes an element, 4 in 16 bits.
// One invocation a channel and part, neighbours along the channels; no barrier.

struct Params {
    n_rows: u32,
    n_channels: u32,
    n_groups: u32,
    group_rows: u32,
    part_rows: u32,
    group_parts: u32,
    eps: f32,
    momentum: f32,
}

override WG: u32 = 64u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> grad_y: array<GRAD_Y>;
@group(0) @binding(2) var<storage, read> x: array<X>;
@group(0) @binding(3) var<storage, read> stats: array<f32>;
@group(0) @binding(4) var<storage, read_write> parts: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i >= params.n_groups * params.group_parts * params.n_channels {
        return;
    }
    let channel = i % params.n_channels;
    let part = i / params.n_channels;
    let first = part % params.group_parts * params.part_rows;
    let end = min(first + params.part_rows, params.group_rows);
    let start = part / params.group_parts * params.group_rows;
    let at = 2u * (part / params.group_parts) * params.n_channels + channel;
    let mean = stats[at];
    var sum_grad_y = 0.0;
    var sum_grad_y_x = 0.0;
    for (var row = first; row < end; row += 1u) {
        let j = (start + row) * params.n_channels + channel;
        let d = load_grad_y(j);
        sum_grad_y += d;
        sum_grad_y_x += d * (load_x(j) - mean);
    }
    parts[2u * part * params.n_channels + channel] = sum_grad_y;
    parts[(2u * part + 1u) * params.n_channels + channel] = sum_grad_y_x * stats[at + params.n_channels];
}
