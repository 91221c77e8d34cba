// dx = weight inv_std (dy - (sum_dy + (x - mean) inv_std sum_dy_x) / m), m being the rows of a group.
// Twin: `run` in src/cpu/batch_norm_grad.rs. Moves 12 bytes an element.

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
@group(0) @binding(1) var<storage, read> dy: array<f32>;
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read> stats: array<f32>;
@group(0) @binding(4) var<storage, read> weight: array<f32>;
@group(0) @binding(5) var<storage, read> sum_dy: array<f32>;
@group(0) @binding(6) var<storage, read> sum_dy_x: array<f32>;
@group(0) @binding(7) var<storage, read_write> dx: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i >= arrayLength(&dx) {
        return;
    }
    let channel = i % params.n_channels;
    let g = i / params.n_channels / params.group_rows;
    let mean = stats[2u * g * params.n_channels + channel];
    let inv_std = stats[(2u * g + 1u) * params.n_channels + channel];
    let of_group = g * params.n_channels + channel;
    let of_batch = (sum_dy[of_group] + (x[i] - mean) * inv_std * sum_dy_x[of_group]) / f32(params.group_rows);
    dx[i] = inv_std * weight[channel] * (dy[i] - of_batch);
}
