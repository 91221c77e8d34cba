// stats = the mean and 1 / sqrt(var + eps) of each group and channel, from its parts, 0 for a group of weight 0; also updates the running statistics with the mean over the groups
// that have an unbiased variance.
// Twin: `stats` in batch_norm_cpu.rs. One invocation per channel.

fn element(i: u32) {
    if i >= params.n_channels {
        return;
    }
    var sum_mean = 0.0;
    var sum_var = 0.0;
    var n_moved = 0.0;
    for (var g = 0u; g < params.n_groups; g += 1u) {
        let merged = merge_parts(i, g * params.group_parts, params.group_parts);
        let has_rows = merged.weight.x > 0.0;
        let weight = select(1.0, merged.weight.x, has_rows);
        let unbiased = weight - merged.weight.y / weight;
        let variance = merged.squares / weight;
        if has_rows && unbiased > 0.0 {
            n_moved += 1.0;
            sum_mean += merged.mean;
            sum_var += variance * (weight / unbiased);
        }
        stats[2u * g * params.n_channels + i] = merged.mean;
        stats[(2u * g + 1u) * params.n_channels + i] = select(0.0, 1.0 / sqrt(variance + params.eps), has_rows);
    }
    if n_moved > 0.0 {
        running_mean[i] = (1.0 - params.momentum) * running_mean[i] + params.momentum * (sum_mean / n_moved);
        running_var[i] = (1.0 - params.momentum) * running_var[i] + params.momentum * (sum_var / n_moved);
    }
}
