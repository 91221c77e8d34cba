// Part: cooperative matrices of the operands of a gradient of weights: the patches are gathered, grad_y is a matrix and loaded in place. Channels
// on both sides are multiples of SIZE, and there are at least SIZE result pixels. Expects the parts conv2d_grad_weight_job.wgsl and source_matrices.wgsl. The bounds are
// those of conv2d_matrices.wgsl.
//
// Parts consist of whole matrices of pixels. If the batch ends within one, its last SIZE pixels are used, and those that have already been summed are 0 in the patches.

// Pixels in workgroup memory: four groups of eight columns for each invocation.
override DEPTH: u32 = 8u * INVOCATIONS / TILE_COLS;
// The stride from one pixel to the next, with 16 bytes of padding so that rows of a matrix start in different banks.
override STRIDE: u32 = 4u * TILE_COLS + 8u;
override HALF: u32 = DEPTH * STRIDE;

// Eight columns, the first of four pixels, and their position in a half.
struct Gatherer {
    column: Column,
    k: u32,
    at: u32,
}

// Neighbouring invocations gather adjacent values.
fn gatherer_of(job: Job, invocation: u32) -> Gatherer {
    let k = invocation / (TILE_COLS / 2u);
    let col = 8u * (invocation % (TILE_COLS / 2u));
    return Gatherer(column_of(4u * job.col + col), k, k * STRIDE + col);
}

// The values that eight columns read for index `i` of the pixels; 0 for those that are not summed.
fn values_at(column: Column, i: u32) -> EightChannels {
    let first = i / SIZE * SIZE;
    let at = i - (max(first + SIZE, n_pixels()) - n_pixels());
    if first >= n_pixels() || at < first || !column.exists {
        return EightChannels();
    }
    return channels_at(image_of(at), source_pixel_of(column, at), column.channel);
}

fn gather(job: Job, gatherer: Gatherer, start: u32) -> Gathered {
    let i = start + gatherer.k;
    return Gathered(
        values_at(gatherer.column, i),
        values_at(gatherer.column, i + DEPTH / 4u),
        values_at(gatherer.column, i + DEPTH / 4u * 2u),
        values_at(gatherer.column, i + DEPTH / 4u * 3u),
    );
}

// Indices beyond the last output or the last pixel are clamped.
fn matrix_of_a(job: Job, stage: u32, row: u32, k: u32) -> OfA {
    let pixel = min(k, n_pixels() - SIZE);
    return coopLoad<OfA>(&grad_y[pixel * params.n_out + min(4u * job.row + row, params.n_out - SIZE)], params.n_out);
}

fn matrix_of_b(job: Job, stage: u32, col: u32, k: u32) -> OfB {
    return coopLoadT<OfB>(&patches[(stage + (k - job.first) % DEPTH * STRIDE + col) / WIDTH], STRIDE / WIDTH);
}
