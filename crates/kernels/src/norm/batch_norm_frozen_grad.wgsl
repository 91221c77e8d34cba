// grad_x = grad_y weight inv_std, channel by channel.
// Twin: `frozen` in batch_norm_grad_cpu.rs. Moves 8 bytes an element, 4 in 16 bits.

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
@group(0) @binding(2) var<storage, read> stats: array<V>;
@group(0) @binding(3) var<storage, read> weight: array<V>;
@group(0) @binding(4) var<storage, read_write> grad_x: array<X>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i >= arrayLength(&grad_x) {
        return;
    }
    let channel = i % params.n_channels;
    grad_x[i] = store_x(load_x(grad_y[i]) * (stats[params.n_channels + channel] * weight[channel]));
}
