// b += (1 - mu) (g - b), update[run, ..] = g + mu (b - g) with Nesterov, b without; one range per dispatch. b does not change if the step is skipped.
// Twin: muon_cpu.rs. Moves 16 bytes a parameter.
// `state` is (batch, step, skip, n_skipped).

override NESTEROV: u32 = 0u;

fn element(i: u32) {
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
