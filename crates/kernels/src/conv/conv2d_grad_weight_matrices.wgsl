// Part: cooperative matrices of the operands of a gradient of weights: what the windows cover is gathered, grad_y is a matrix and loaded from where it is stored. Channels
// on both sides are multiples of SIZE, and there are SIZE result pixels at least. Expects the parts conv2d_grad_weight_job.wgsl and source_matrices.wgsl. Bounded as
// conv2d_matrices.wgsl.
//
// Parts are of whole matrices of pixels. Where the batch ends within one, its last SIZE pixels are taken, and those that have been summed are 0 among the patches.

// Pixels in workgroup memory: four times eight columns for each invocation.
override DEPTH: u32 = 8u * LANES / TILE_COLS;
// From a pixel to the next, 16 bytes further so that rows of a matrix begin in different banks.
override STRIDE: u32 = 4u * TILE_COLS + 8u;
override HALF: u32 = DEPTH * STRIDE;

// Eight columns, the first of four pixels, and where in a half they go.
struct Gatherer {
    column: Column,
    k: u32,
    at: u32,
}

// Neighbouring invocations gather adjacent values.
fn gatherer_of(job: Job, lane: u32) -> Gatherer {
    let k = lane / (TILE_COLS / 2u);
    let col = 8u * (lane % (TILE_COLS / 2u));
    return Gatherer(column_of(4u * job.col + col), k, k * STRIDE + col);
}

// What eight columns read for place `i` of the pixels, 0 for those that are not summed.
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

// One beyond the last output is the last one, one beyond the last pixel too.
fn matrix_of_a(job: Job, stage: u32, row: u32, k: u32) -> OfA {
    let pixel = min(k, n_pixels() - SIZE);
    return coopLoad<OfA>(&grad_y[pixel * params.n_out + min(4u * job.row + row, params.n_out - SIZE)], params.n_out);
}

fn matrix_of_b(job: Job, stage: u32, col: u32, k: u32) -> OfB {
    return coopLoadT<OfB>(&patches[(stage + (k - job.first) % DEPTH * STRIDE + col) / WIDTH], STRIDE / WIDTH);
}
