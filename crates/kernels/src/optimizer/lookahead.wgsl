// Slow weights: copies of the weights before the first step; then, after every `every`-th step, slow = d slow + (1 - d) weights and weights = slow,
// with d from a table. Skipped steps change nothing and do not count. After the last step of the run, number `end`, weights = slow.
// Twin: lookahead_cpu.rs. Moves 16 bytes a weight in steps that change something.
// `state` is (batch, step, skip, n_skipped).

fn element(i: u32) {
    let n_done = state[1] - state[3];
    if i >= arrayLength(&slow) {
        return;
    }
    if params.is_start == 1u {
        if n_done == 0u {
            slow[i] = values[i];
        }
        return;
    }
    let n_steps = n_done + 1u;
    if state[2] == 0u && n_steps % params.every == 0u {
        let d = decays[min(n_steps / params.every - 1u, arrayLength(&decays) - 1u)];
        let v = d * slow[i] + (1.0 - d) * values[i];
        slow[i] = v;
        values[i] = v;
    }
    if state[1] + 1u == params.end {
        values[i] = slow[i];
    }
}
