// Part: cooperative matrices of the patches of a convolution, which are gathered, and of its weights, which are loaded in place. Channels on both
// sides are multiples of SIZE. Expects the parts conv2d_job.wgsl and source_matrices.wgsl.
//
// What bounds it, for 2 by 2 subgroups of 2 by 2 matrices of 16 by 16: for each K index a subgroup reads 32 values from workgroup memory and 32 from
// the nearest cache for 2 * 32 * 32 operations, 16 per byte; a gathered value is used in 2 * 64 operations, and is read from the source once for each
// tap of its window, after the first time from a cache. 4 by 4 matrices would double these numbers, but not all of their sums fit in registers.

// K indices in workgroup memory: four groups of eight for each invocation.
override DEPTH: u32 = 8u * INVOCATIONS / TILE_ROWS;
// The stride from one pixel to the next, with 16 bytes of padding so that rows of a matrix start in different banks.
override STRIDE: u32 = DEPTH + 8u;
override HALF: u32 = 4u * TILE_ROWS * STRIDE;

// Four pixels, eight K indices starting at `k`, and their position in a half.
struct Gatherer {
    sources: Sources,
    k: u32,
    at: u32,
}

// Neighbouring invocations gather adjacent values.
fn gatherer_of(job: Job, invocation: u32) -> Gatherer {
    let row = invocation / (DEPTH / 8u);
    let k = 8u * (invocation % (DEPTH / 8u));
    return Gatherer(sources_of(job, 4u * job.row + row, TILE_ROWS), k, row * STRIDE + k);
}

fn gather(job: Job, gatherer: Gatherer, start: u32) -> Gathered {
    let k = start + gatherer.k;
    if k >= job.end {
        return Gathered();
    }
    let offset = offset_of(job.walk, k / params.n_channels);
    let channel = k % params.n_channels;
    let sources = gatherer.sources;
    return Gathered(
        channels_at(sources.image.x, vec2i(sources.y.x, sources.x.x) + offset, channel),
        channels_at(sources.image.y, vec2i(sources.y.y, sources.x.y) + offset, channel),
        channels_at(sources.image.z, vec2i(sources.y.z, sources.x.z) + offset, channel),
        channels_at(sources.image.w, vec2i(sources.y.w, sources.x.w) + offset, channel),
    );
}

fn matrix_of_a(job: Job, stage: u32, row: u32, k: u32) -> OfA {
    return coopLoadT<OfA>(&patches[(stage + row * STRIDE + k % DEPTH) / WIDTH], STRIDE / WIDTH);
}

// Columns beyond the last one are clamped.
fn matrix_of_b(job: Job, stage: u32, col: u32, k: u32) -> OfB {
    let first = min(4u * job.col + col, params.n_cols - SIZE);
    let n_taps = params.kernel_size.x * params.kernel_size.y;
    if GRAD == 0u {
        let stride = n_taps * params.n_channels;
        return coopLoad<OfB>(&weight[first * stride + k], stride);
    }
    let tap = weight_tap_of(job.walk, k / params.n_channels);
    let stride = n_taps * params.n_cols;
    return coopLoadT<OfB>(&weight[k % params.n_channels * stride + tap * params.n_cols + first], stride);
}
