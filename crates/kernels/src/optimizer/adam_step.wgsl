// Part: the step of Adam for parameter i, with the factor of its learning rate and its weight decay; t counts the steps that were not skipped.
// Expects the arguments of the kernel, its parameters as `values`, and exp_neg.wgsl. `state` is (batch, step, skip, n_skipped).

fn adam_step(i: u32, rate_factor: f32, coupled_decay: f32, decoupled_decay: f32) {
    if state[2] != 0u {
        return;
    }
    let t = f32(state[1] - state[3] + 1u);
    let lr = rate_factor * lr_table[min(state[0], arrayLength(&lr_table) - 1u)];
    let step_size = lr / one_minus_exp_neg(-t * params.ln_beta1);
    let inv_root = inverseSqrt(one_minus_exp_neg(-t * params.ln_beta2));
    var p = values[i];
    let g = grads[i] + coupled_decay * p;
    p -= lr * decoupled_decay * p;
    let mean = m[i] + (1.0 - params.beta1) * (g - m[i]);
    let square = params.beta2 * v[i] + (1.0 - params.beta2) * g * g;
    m[i] = mean;
    v[i] = square;
    values[i] = p - step_size * mean / (sqrt(square) * inv_root + params.eps);
}
