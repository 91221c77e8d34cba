// average = decay average + (1 - decay) params after every `every`th step; params after the first of those.
// Nothing where the step is skipped, which does not count.
// Twin: ema_cpu.rs. Moves 12 bytes a parameter.

struct Params {
    decay: f32,
    every: u32,
    pad0: u32,
    pad1: u32,
}

override WG: u32 = 64u;

@group(0) @binding(0) var<uniform> hyper: Params;
@group(0) @binding(1) var<storage, read> params: array<f32>;
// batch, step, skip, n_skipped.
@group(0) @binding(2) var<storage, read> state: array<u32>;
@group(0) @binding(3) var<storage, read_write> average: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    let n_steps = state[1] - state[3] + 1u;
    if i >= arrayLength(&average) || n_steps % hyper.every != 0u || state[2] != 0u {
        return;
    }
    if n_steps == hyper.every {
        average[i] = params[i];
    } else {
        average[i] = hyper.decay * average[i] + (1.0 - hyper.decay) * params[i];
    }
}
