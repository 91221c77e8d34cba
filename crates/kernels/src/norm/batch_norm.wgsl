// y = act((x - mean) inv_std weight + bias), channel by channel, with the statistics of the row's group.
// Twin: `run` in batch_norm_cpu.rs. Moves 8 bytes an element, 4 in 16 bits.

fn element(i: u32) {
    if i >= arrayLength(&y) {
        return;
    }
    let channel = i % params.n_channels;
    let at = 2u * (i / params.n_channels / params.group_rows) * params.n_channels + channel;
    y[i] = store_x(act((load_x(x[i]) - stats[at]) * (stats[at + params.n_channels] * weight[channel]) + bias[channel]));
}
