// rate[0] = table[min(state.step, n - 1)]: the learning rate of this step, from a table of all steps.
// Twin: rate_at_step_cpu.rs. `state` is (batch, step, skip, n_skipped).

fn element(i: u32) {
    if i == 0u {
        rate[0] = table[min(state[1], arrayLength(&table) - 1u)];
    }
}
