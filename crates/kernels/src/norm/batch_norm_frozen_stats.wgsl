// stats = running_mean and 1 / sqrt(running_var + eps).
// Twin: `frozen_stats` in batch_norm_cpu.rs. Moves 16 bytes a channel.

struct Params {
    n_channels: u32,
    eps: f32,
    pad: vec2u,
}

override WG: u32 = 64u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> running_mean: array<f32>;
@group(0) @binding(2) var<storage, read> running_var: array<f32>;
@group(0) @binding(3) var<storage, read_write> stats: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i < params.n_channels {
        stats[i] = running_mean[i];
        stats[params.n_channels + i] = 1.0 / sqrt(running_var[i] + params.eps);
    }
}
