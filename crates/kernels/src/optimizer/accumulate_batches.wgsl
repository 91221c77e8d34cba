// total = g in the first batch of a group, sum + g else; g = total / every in the last, else sum = total, state.skip = 2.
// Twin: accumulate_batches_cpu.rs. Moves 12 bytes a gradient.
// `state` is (batch, step, skip, n_skipped).

fn element(i: u32) {
    if i >= arrayLength(&grads) {
        return;
    }
    let at = state[0] % params.every;
    let is_last = at + 1u == params.every || state[0] + 1u == params.n_batches;
    var total = grads[i];
    if at > 0u {
        total += sum[i];
    }
    if is_last {
        grads[i] = total * params.inverse;
        return;
    }
    sum[i] = total;
    if i == 0u {
        state[2] = 2u;
    }
}
