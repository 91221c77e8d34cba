// joined[block] = the sums of batch_norm_stats.wgsl over a block of `block_parts` parts of a group: between that dispatch and batch_norm_stats_merge.wgsl, so that no chain is
// longer than the square root of the number of parts.
// Twin: `merge` in batch_norm_cpu.rs, which merges the parts in one chain. One invocation per channel and block.

fn element(i: u32) {
    if i >= params.n_groups * params.group_blocks * params.n_channels {
        return;
    }
    let channel = i % params.n_channels;
    let block = i / params.n_channels;
    let first = block % params.group_blocks * params.block_parts;
    let n_parts = min(params.block_parts, params.group_parts - first);
    let merged = merge_parts(channel, block / params.group_blocks * params.group_parts + first, n_parts);
    let at = block * (2u * params.n_channels + 2u);
    joined[at + channel] = merged.mean;
    joined[at + params.n_channels + channel] = merged.squares;
    if channel == 0u {
        joined[at + 2u * params.n_channels] = merged.weight.x;
        joined[at + 2u * params.n_channels + 1u] = merged.weight.y;
    }
}
