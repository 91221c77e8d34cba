// Part: parts[part, o, u, v, c] = sum of grad_y[b, i, j, o] source[b, i sy - py + u, j sx - px + v, c] over a part of the result pixels: the indices of a workgroup's
// block. Rows are outputs o, columns are (u, v, c), with c in groups of four, so that four neighbours belong to one tap; those beyond the last channel do not exist. K is
// the pixels: there are few results and many pixels, so the parts fill the GPU. Their sums are then added in order. Pairs are (along the height, along the
// width). Twin: conv2d_grad_weight_cpu.rs.

// The number of columns of a tap.
fn tap_len() -> u32 {
    return (params.n_channels + 3u) / 4u * 4u;
}

// Blocks of 4 by 4, starting at `row` and `col`, over the result pixels from `first` to `end`. A part may be beyond the last pixel: its sums are 0.
struct Job {
    exists: bool,
    row: u32,
    col: u32,
    first: u32,
    end: u32,
    part: u32,
}

fn n_pixels() -> u32 {
    return params.n_images * params.result_size.x * params.result_size.y;
}

fn job_of(group: vec3u, groups: vec3u) -> Job {
    let first = min(group.z * params.part_pixels, n_pixels());
    return Job(true, group.y * TILE_ROWS, group.x * TILE_COLS, first, min(first + params.part_pixels, n_pixels()), group.z);
}

fn store_row(job: Job, row: u32, col: u32, sums: vec4f) {
    let n_taps = params.kernel_size.x * params.kernel_size.y;
    let tap = col / tap_len();
    if row < params.n_out && tap < n_taps {
        let start = ((job.part * params.n_out + row) * n_taps + tap) * params.n_channels;
        store_four(start, col % tap_len(), params.n_channels, sums);
    }
}

// Neighbouring columns of one tap: the channel of the first, and the source pixel that they read for result pixel (0, 0).
struct Column {
    exists: bool,
    channel: u32,
    first: vec2i,
}

fn column_of(col: u32) -> Column {
    let tap = col / tap_len();
    let pixel = vec2i(vec2u(tap / params.kernel_size.y, tap % params.kernel_size.y)) - vec2i(params.padding);
    return Column(tap < params.kernel_size.x * params.kernel_size.y, col % tap_len(), pixel);
}

// The image of result pixel `i`, and the source pixel that a column reads for it.
fn image_of(i: u32) -> u32 {
    return i / params.result_size.y / params.result_size.x;
}

fn source_pixel_of(column: Column, i: u32) -> vec2i {
    let pixel = vec2u(i / params.result_size.y % params.result_size.x, i % params.result_size.y);
    return column.first + vec2i(params.stride * pixel);
}
