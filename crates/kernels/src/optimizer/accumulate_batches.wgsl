// total = g in the first batch of a group, sum + g else; g = total / every in the last, else sum = total, state.skip = 2.
// Twin: accumulate_batches_cpu.rs. Moves 12 bytes a gradient.

struct Params {
    every: u32,
    n_batches: u32,
    inverse: f32,
    pad: u32,
}

override WG: u32 = 64u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> grads: array<f32>;
@group(0) @binding(2) var<storage, read_write> sum: array<f32>;
// batch, step, skip, n_skipped.
@group(0) @binding(3) var<storage, read_write> state: array<u32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i >= arrayLength(&grads) {
        return;
    }
    let at = state[0] % params.every;
    let is_last = at + 1u == params.every || state[0] + 1u == params.n_batches;
    var total = grads[i];
    if at > 0u {
        total += sum[i];
    }
    if is_last {
        grads[i] = total * params.inverse;
        return;
    }
    sum[i] = total;
    if i == 0u {
        state[2] = 2u;
    }
}
