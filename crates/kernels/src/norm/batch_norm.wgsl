// y = act((x - mean) inv_std weight + bias), channel by channel, with the statistics of the row's group.
// Twin: `run` in batch_norm_cpu.rs. Moves 8 bytes an element, 4 in 16 bits.

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
@group(0) @binding(1) var<storage, read> x: array<X>;
@group(0) @binding(2) var<storage, read> stats: array<V>;
@group(0) @binding(3) var<storage, read> weight: array<V>;
@group(0) @binding(4) var<storage, read> bias: array<V>;
@group(0) @binding(5) var<storage, read_write> y: array<X>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i >= arrayLength(&y) {
        return;
    }
    let channel = i % params.n_channels;
    let at = 2u * (i / params.n_channels / params.group_rows) * params.n_channels + channel;
    y[i] = store_x(act((load_x(x[i]) - stats[at]) * (stats[at + params.n_channels] * weight[channel]) + bias[channel]));
}
