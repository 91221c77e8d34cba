// stats = the mean and 1 / sqrt(var + eps) of each group and channel, from its parts; also updates the running statistics with the mean over the groups.
// Twin: `merge` in batch_norm_cpu.rs. One invocation per channel.

fn element(i: u32) {
    if i >= params.n_channels {
        return;
    }
    var sum_mean = 0.0;
    var sum_var = 0.0;
    for (var g = 0u; g < params.n_groups; g += 1u) {
        let merged = merge_parts(i, g * params.group_parts, params.group_parts, params.group_rows);
        let variance = merged.squares / f32(params.group_rows);
        sum_mean += merged.mean;
        sum_var += variance;
        stats[2u * g * params.n_channels + i] = merged.mean;
        stats[(2u * g + 1u) * params.n_channels + i] = 1.0 / sqrt(variance + params.eps);
    }
    let n_groups = f32(params.n_groups);
    let m = f32(params.group_rows);
    running_mean[i] = (1.0 - params.momentum) * running_mean[i] + params.momentum * (sum_mean / n_groups);
    running_var[i] = (1.0 - params.momentum) * running_var[i] + params.momentum * (sum_var / n_groups * (m / (m - 1.0)));
}
