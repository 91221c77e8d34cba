// The step of adam.wgsl with a rate and a decay of its own for each 64 parameters; where the factor of the rate is below 0, none.
// Twin: parameter_groups_cpu.rs. Moves 28 bytes a parameter. A workgroup is of one group, so its invocations agree.

struct Params {
    beta1: f32,
    beta2: f32,
    ln_beta1: f32,
    ln_beta2: f32,
    eps: f32,
    is_decoupled: f32,
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
@group(0) @binding(6) var<storage, read_write> m: array<f32>;
@group(0) @binding(7) var<storage, read_write> v: array<f32>;

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
    let t = f32(state[1] - state[3] + 1u);
    let lr = own.x * lr_table[min(state[0], arrayLength(&lr_table) - 1u)];
    let step_size = lr / one_minus_exp_neg(-t * hyper.ln_beta1);
    let inv_root = inverseSqrt(one_minus_exp_neg(-t * hyper.ln_beta2));
    var p = params[i];
    let g = grads[i] + select(own.y, 0.0, hyper.is_decoupled == 1.0) * p;
    p -= lr * select(0.0, own.y, hyper.is_decoupled == 1.0) * p;
    let mean = m[i] + (1.0 - hyper.beta1) * (g - m[i]);
    let square = hyper.beta2 * v[i] + (1.0 - hyper.beta2) * g * g;
    m[i] = mean;
    v[i] = square;
    params[i] = p - step_size * mean / (sqrt(square) * inv_root + hyper.eps);
}
