// stats = running_mean and 1 / sqrt(running_var + eps).
// Twin: `frozen_stats` in batch_norm_cpu.rs. Moves 16 bytes a channel.

fn element(i: u32) {
    if i < params.n_channels {
        stats[i] = running_mean[i];
        stats[params.n_channels + i] = 1.0 / sqrt(running_var[i] + params.eps);
    }
}
