// m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g^2, p -= lr / (1 - b1^t) m / (sqrt(v / (1 - b2^t)) + eps), all parameters at once.
// Nothing where the step is skipped; t counts those that were not.
// Twin: adam_cpu.rs. Moves 28 bytes a parameter.

struct Params {
    beta1: f32,
    beta2: f32,
    ln_beta1: f32,
    ln_beta2: f32,
    eps: f32,
    coupled_decay: f32,
    decoupled_decay: f32,
    pad: f32,
}

override WG: u32 = 64u;

@group(0) @binding(0) var<uniform> hyper: Params;
@group(0) @binding(1) var<storage, read> grads: array<f32>;
@group(0) @binding(2) var<storage, read> lr_table: array<f32>;
// batch, step, skip, n_skipped.
@group(0) @binding(3) var<storage, read> state: array<u32>;
@group(0) @binding(4) var<storage, read_write> params: array<f32>;
@group(0) @binding(5) var<storage, read_write> m: array<f32>;
@group(0) @binding(6) var<storage, read_write> v: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i >= arrayLength(&params) || state[2] != 0u {
        return;
    }
    let t = f32(state[1] - state[3] + 1u);
    let lr = lr_table[min(state[0], arrayLength(&lr_table) - 1u)];
    let step_size = lr / one_minus_exp_neg(-t * hyper.ln_beta1);
    let inv_root = inverseSqrt(one_minus_exp_neg(-t * hyper.ln_beta2));
    var p = params[i];
    let g = grads[i] + hyper.coupled_decay * p;
    p -= lr * hyper.decoupled_decay * p;
    let mean = m[i] + (1.0 - hyper.beta1) * (g - m[i]);
    let square = hyper.beta2 * v[i] + (1.0 - hyper.beta2) * g * g;
    m[i] = mean;
    v[i] = square;
    params[i] = p - step_size * mean / (sqrt(square) * inv_root + hyper.eps);
}
