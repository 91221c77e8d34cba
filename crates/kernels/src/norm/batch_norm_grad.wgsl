// grad_x = weight inv_std (grad_y - (sum_grad_y + (x - mean) inv_std sum_grad_y_x) / m), m being the rows of a group.
// Twin: `run` in batch_norm_grad_cpu.rs. Moves 12 bytes an element, 6 in 16 bits.

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
@group(0) @binding(1) var<storage, read> grad_y: array<X>;
@group(0) @binding(2) var<storage, read> x: array<X>;
@group(0) @binding(3) var<storage, read> stats: array<V>;
@group(0) @binding(4) var<storage, read> weight: array<V>;
@group(0) @binding(5) var<storage, read> sum_grad_y: array<V>;
@group(0) @binding(6) var<storage, read> sum_grad_y_x: array<V>;
@group(0) @binding(7) var<storage, read_write> grad_x: array<X>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i >= arrayLength(&grad_x) {
        return;
    }
    let channel = i % params.n_channels;
    let g = i / params.n_channels / params.group_rows;
    let mean = stats[2u * g * params.n_channels + channel];
    let inv_std = stats[(2u * g + 1u) * params.n_channels + channel];
    let of_group = g * params.n_channels + channel;
    let of_batch = (sum_grad_y[of_group] + (load_x(x[i]) - mean) * inv_std * sum_grad_y_x[of_group]) / f32(params.group_rows);
    grad_x[i] = store_x(inv_std * weight[channel] * (load_x(grad_y[i]) - of_batch));
}
