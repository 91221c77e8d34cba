// parts[part] = the mean of each channel over the rows of a part, and the sum of squared deviations from it: the first of two dispatches.
// Twin: `stats` in batch_norm_cpu.rs. Moves 4 bytes an element, 2 in 16 bits, twice; the second time they are in cache.
// One invocation per channel and part, with neighbours along the channels; no barrier.

fn element(i: u32) {
    if i >= params.n_groups * params.group_parts * params.n_channels {
        return;
    }
    let channel = i % params.n_channels;
    let part = i / params.n_channels;
    let first = part % params.group_parts * params.part_rows;
    let end = min(first + params.part_rows, params.group_rows);
    let start = part / params.group_parts * params.group_rows;
    var sum = 0.0;
    for (var row = first; row < end; row += 1u) {
        sum += load_x((start + row) * params.n_channels + channel);
    }
    let mean = sum / f32(end - first);
    var squares = 0.0;
    for (var row = first; row < end; row += 1u) {
        let off = load_x((start + row) * params.n_channels + channel) - mean;
        squares += off * off;
    }
    parts[2u * part * params.n_channels + channel] = mean;
    parts[(2u * part + 1u) * params.n_channels + channel] = squares;
}
