// sum_grad_y, sum_grad_y_x = the parts of each group, added in order.
// Twin: `sums` in batch_norm_grad_cpu.rs. One invocation a group and channel.

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
@group(0) @binding(1) var<storage, read> parts: array<f32>;
@group(0) @binding(2) var<storage, read_write> sum_grad_y: array<f32>;
@group(0) @binding(3) var<storage, read_write> sum_grad_y_x: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i >= params.n_groups * params.n_channels {
        return;
    }
    let channel = i % params.n_channels;
    let first = i / params.n_channels * params.group_parts;
    var sums = vec2f();
    for (var part = first; part < first + params.group_parts; part += 1u) {
        sums += vec2f(parts[2u * part * params.n_channels + channel], parts[(2u * part + 1u) * params.n_channels + channel]);
    }
    sum_grad_y[i] = sums.x;
    sum_grad_y_x[i] = sums.y;
}
