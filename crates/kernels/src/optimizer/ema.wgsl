// average = decay average + (1 - decay) params after every `every`th step; params after the first of those.
// Nothing where the step is skipped, which does not count.
// Twin: ema_cpu.rs. Moves 12 bytes a parameter.
// `state` is (batch, step, skip, n_skipped).

fn element(i: u32) {
    let n_steps = state[1] - state[3] + 1u;
    if i >= arrayLength(&average) || n_steps % params.every != 0u || state[2] != 0u {
        return;
    }
    if n_steps == params.every {
        average[i] = values[i];
    } else {
        average[i] = params.decay * average[i] + (1.0 - params.decay) * values[i];
    }
}
