// g += decay p, u = mu u + g, p -= lr (g + mu u) with Nesterov, p -= lr u without; all parameters at once.
// Nothing where the step is skipped.
// Twin: sgd_cpu.rs. Moves 20 bytes a parameter.

struct Params {
    momentum: f32,
    weight_decay: f32,
    nesterov: f32,
    pad: f32,
}

override WG: u32 = 64u;

@group(0) @binding(0) var<uniform> hyper: Params;
@group(0) @binding(1) var<storage, read> grads: array<f32>;
@group(0) @binding(2) var<storage, read> lr_table: array<f32>;
// batch, step, skip, n_skipped.
@group(0) @binding(3) var<storage, read> state: array<u32>;
@group(0) @binding(4) var<storage, read_write> params: array<f32>;
@group(0) @binding(5) var<storage, read_write> momentum: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i >= arrayLength(&params) || state[2] != 0u {
        return;
    }
    let lr = lr_table[min(state[0], arrayLength(&lr_table) - 1u)];
    let g = grads[i] + hyper.weight_decay * params[i];
    let u = hyper.momentum * momentum[i] + g;
    momentum[i] = u;
    params[i] -= lr * select(u, g + hyper.momentum * u, hyper.nesterov == 1.0);
}
