// The step of sgd.wgsl with a rate and a decay of its own for each 64 parameters; where the factor of the rate is below 0, none.
// Twin: parameter_groups_cpu.rs. Moves 20 bytes a parameter. A workgroup is of one group, so its invocations agree.

struct Params {
    momentum: f32,
    nesterov: f32,
    pad0: f32,
    pad1: f32,
}

const GROUP_LEN = 64u;

@group(0) @binding(0) var<uniform> hyper: Params;
// What the rate is multiplied by, and the decay.
@group(0) @binding(1) var<storage, read> groups_of: array<vec2f>;
@group(0) @binding(2) var<storage, read> grads: array<f32>;
@group(0) @binding(3) var<storage, read> lr_table: array<f32>;
// batch, step, skip, n_skipped.
@group(0) @binding(4) var<storage, read> state: array<u32>;
@group(0) @binding(5) var<storage, read_write> params: array<f32>;
@group(0) @binding(6) var<storage, read_write> momentum: array<f32>;

@compute @workgroup_size(GROUP_LEN)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * GROUP_LEN + lane;
    if i >= arrayLength(&params) || state[2] != 0u {
        return;
    }
    let own = groups_of[i / GROUP_LEN];
    if own.x < 0.0 {
        return;
    }
    let lr = own.x * lr_table[min(state[0], arrayLength(&lr_table) - 1u)];
    let g = grads[i] + own.y * params[i];
    let u = hyper.momentum * momentum[i] + g;
    momentum[i] = u;
    params[i] -= lr * select(u, g + hyper.momentum * u, hyper.nesterov == 1.0);
}
