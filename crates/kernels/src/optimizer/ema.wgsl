// average = decay average + (1 - decay) params on step `first_step` and every `every`-th step after it.
// If `copies` is not 0, average = params up to `first_step`. Does nothing if the step is skipped; skipped steps do not count.
// Twin: ema_cpu.rs. Moves 12 bytes a parameter.
// `state` is (batch, step, skip, n_skipped).

fn element(i: u32) {
    let n_steps = state[1] - state[3] + 1u;
    if i >= arrayLength(&average) || state[2] != 0u {
        return;
    }
    if n_steps <= params.first_step && params.copies != 0u {
        average[i] = values[i];
    } else if n_steps >= params.first_step && (n_steps - params.first_step) % params.every == 0u {
        average[i] = params.decay * average[i] + (1.0 - params.decay) * values[i];
    }
}
