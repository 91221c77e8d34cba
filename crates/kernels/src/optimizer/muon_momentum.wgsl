// b += (1 - mu) (g - b), update[run, ..] = g + mu (b - g) with Nesterov, b without; a run a dispatch. b stays where the step is skipped.
// Twin: muon_cpu.rs. Moves 16 bytes a parameter.

struct Params {
    start: u32,
    run: u32,
    len: u32,
    momentum: f32,
}

override WG: u32 = 64u;
override NESTEROV: u32 = 0u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> grads: array<f32>;
// batch, step, skip, n_skipped.
@group(0) @binding(2) var<storage, read> state: array<u32>;
@group(0) @binding(3) var<storage, read_write> momentum: array<f32>;
@group(0) @binding(4) var<storage, read_write> update: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i >= params.len {
        return;
    }
    let g = grads[params.start + i];
    var b = momentum[params.start + i];
    b += (1.0 - params.momentum) * (g - b);
    if state[2] == 0u {
        momentum[params.start + i] = b;
    }
    update[params.run * params.len + i] = select(b, g + params.momentum * (b - g), NESTEROV == 1u);
}
