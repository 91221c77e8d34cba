// p -= lr decay p + lr factor update[run, ..], one range per dispatch; does nothing if the step is skipped.
// Twin: muon_cpu.rs. Moves 12 bytes a parameter.
// `state` is (batch, step, skip, n_skipped).

fn element(i: u32) {
    if i >= params.len || state[2] != 0u {
        return;
    }
    let lr = lr_table[min(state[0], arrayLength(&lr_table) - 1u)];
    let p = values[params.start + i];
    values[params.start + i] = p - lr * params.weight_decay * p - lr * params.factor * update[params.run * params.len + i];
}
