// parts[part] = the mean of each channel over the rows of a part, the sums of squared deviations from it, then the sum of the weights of its rows and that of their squares: the
// first of two or three dispatches.
// Twin: `stats_of_parts` in batch_norm_cpu.rs. Moves 4 bytes an element, 2 in 16 bits, twice; the second time they are in cache.
// One invocation per channel and part, with neighbours along the channels; no barrier. Expects `weight` and `total_weight`.

fn element(i: u32) {
    if i >= params.n_groups * params.group_parts * params.n_channels {
        return;
    }
    let channel = i % params.n_channels;
    let part = i / params.n_channels;
    let start = part / params.group_parts * params.group_rows;
    let first = start + part % params.group_parts * params.part_rows;
    let end = min(first + params.part_rows, start + params.group_rows);
    let total = total_weight(first, end);
    var sum = 0.0;
    for (var row = first; row < end; row += 1u) {
        sum += weight(row) * load_x(row * params.n_channels + channel);
    }
    let mean = select(0.0, sum / total.x, total.x > 0.0);
    var squares = 0.0;
    for (var row = first; row < end; row += 1u) {
        let off = load_x(row * params.n_channels + channel) - mean;
        squares += weight(row) * (off * off);
    }
    let at = part * (2u * params.n_channels + 2u);
    parts[at + channel] = mean;
    parts[at + params.n_channels + channel] = squares;
    if channel == 0u {
        parts[at + 2u * params.n_channels] = total.x;
        parts[at + 2u * params.n_channels + 1u] = total.y;
    }
}
