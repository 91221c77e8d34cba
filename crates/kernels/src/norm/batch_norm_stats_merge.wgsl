// stats = the mean and 1 / sqrt(var + eps) of each group and channel, from the parts in order (Chan, Golub & LeVeque 1983); and a step of the running
// statistics, by the mean over the groups.
// Twin: `merge` in batch_norm_cpu.rs. One invocation a channel.

fn element(i: u32) {
    if i >= params.n_channels {
        return;
    }
    var sum_mean = 0.0;
    var sum_var = 0.0;
    for (var g = 0u; g < params.n_groups; g += 1u) {
        var mean = 0.0;
        var squares = 0.0;
        var before = 0u;
        for (var part = g * params.group_parts; part < (g + 1u) * params.group_parts; part += 1u) {
            let n = min(params.part_rows, params.group_rows - before);
            let share = f32(n) / f32(before + n);
            let off = parts[2u * part * params.n_channels + i] - mean;
            mean += off * share;
            squares += parts[(2u * part + 1u) * params.n_channels + i] + off * off * (share * f32(before));
            before += n;
        }
        let variance = squares / f32(params.group_rows);
        sum_mean += mean;
        sum_var += variance;
        stats[2u * g * params.n_channels + i] = mean;
        stats[(2u * g + 1u) * params.n_channels + i] = 1.0 / sqrt(variance + params.eps);
    }
    let n_groups = f32(params.n_groups);
    let m = f32(params.group_rows);
    running_mean[i] = (1.0 - params.momentum) * running_mean[i] + params.momentum * (sum_mean / n_groups);
    running_var[i] = (1.0 - params.momentum) * running_var[i] + params.momentum * (sum_var / n_groups * (m / (m - 1.0)));
}
