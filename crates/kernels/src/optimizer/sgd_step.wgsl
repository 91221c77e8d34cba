// Part: the step of SGD for parameter i, with the factor of its learning rate and its weight decay.
// Expects the arguments of the kernel, its parameters as `values`. `state` is (batch, step, skip, n_skipped).

fn sgd_step(i: u32, rate_factor: f32, weight_decay: f32) {
    if state[2] != 0u {
        return;
    }
    let lr = rate_factor * lr_table[min(state[0], arrayLength(&lr_table) - 1u)];
    let g = grads[i] + weight_decay * values[i];
    if params.form == 2u {
        let descent = -lr * g;
        let velocity = params.momentum * momentum[i] + descent;
        momentum[i] = velocity;
        values[i] += descent + params.momentum * velocity;
        return;
    }
    let u = params.momentum * momentum[i] + g;
    momentum[i] = u;
    values[i] -= lr * select(u, g + params.momentum * u, params.form == 1u);
}
