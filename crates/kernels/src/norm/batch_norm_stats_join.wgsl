// joined[block] = the mean of each channel over a block of `block_parts` parts of a group, and the sum of squared deviations from it: between the dispatches of
// batch_norm_stats.wgsl and batch_norm_stats_merge.wgsl, so that no chain is longer than the square root of the number of parts.
// Twin: `merge` in batch_norm_cpu.rs, which merges the parts in one chain. One invocation per channel and block.

fn element(i: u32) {
    if i >= params.n_groups * params.group_blocks * params.n_channels {
        return;
    }
    let channel = i % params.n_channels;
    let block = i / params.n_channels;
    let first = block % params.group_blocks * params.block_parts;
    let n_parts = min(params.block_parts, params.group_parts - first);
    let rows = min(n_parts * params.part_rows, params.group_rows - first * params.part_rows);
    let merged = merge_parts(channel, block / params.group_blocks * params.group_parts + first, n_parts, rows);
    joined[2u * block * params.n_channels + channel] = merged.mean;
    joined[(2u * block + 1u) * params.n_channels + channel] = merged.squares;
}
