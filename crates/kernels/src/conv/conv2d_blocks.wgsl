// Part: blocks of the patches and the weights of a convolution. Expects the parts block.wgsl, conv2d_job.wgsl and source_blocks.wgsl, and `lines_of_weight` of
// the stored types. The weights are [n_cols, kernel height, kernel width, n_channels], with GRAD [n_channels, kernel height, kernel width, n_cols].
//
// An invocation always fetches the same four pixels, and computes their addresses once. Neighbouring pixels read the same source pixels, so most of the values
// for the taps of a window are already in a cache.

fn a_along_k() -> bool { return true; }
fn b_along_k() -> bool { return GRAD == 0u; }

alias RowsOfA = Sources;
alias ColsOfB = u32;
fn rows_of_a(job: Job, block: u32) -> RowsOfA { return sources_of(job, 4u * block, 1u); }
fn cols_of_b(job: Job, block: u32) -> ColsOfB { return 4u * block; }

fn block_of_a(job: Job, sources: RowsOfA, k: u32) -> Block {
    if k >= job.end {
        return Block();
    }
    let offset = offset_of(job.walk, k / tap_len());
    let channel = k % tap_len();
    return transposed(Block(
        channels_at(sources.image.x, vec2i(sources.y.x, sources.x.x) + offset, channel),
        channels_at(sources.image.y, vec2i(sources.y.y, sources.x.y) + offset, channel),
        channels_at(sources.image.z, vec2i(sources.y.z, sources.x.z) + offset, channel),
        channels_at(sources.image.w, vec2i(sources.y.w, sources.x.w) + offset, channel),
    ));
}

fn block_of_b(job: Job, col: ColsOfB, k: u32) -> Block {
    if k >= job.end {
        return Block();
    }
    let tap = k / tap_len();
    let channel = k % tap_len();
    let n_taps = params.kernel_size.x * params.kernel_size.y;
    let n_cols = max(params.n_cols, col) - col;
    let depth = params.n_channels - channel;
    if GRAD == 0u {
        let stride = n_taps * params.n_channels;
        return transposed(lines_of_weight(col * stride + tap * params.n_channels + channel, stride, n_cols, depth));
    }
    let stride = n_taps * params.n_cols;
    return lines_of_weight(channel * stride + weight_tap_of(job.walk, tap) * params.n_cols + col, stride, depth, n_cols);
}
