// Part: a convolution as an implicit product, y = epilogue(patches(x) weight), and with GRAD the gradient in its input, grad_x = epilogue(patches(grad_y)
// weight): the indices of a workgroup's block. Pairs are (along the height, along the width). Twins: conv2d_cpu.rs, conv2d_grad_input_cpu.rs.
//
// K is the taps and, for each tap, the channels in groups of four, so that four neighbours belong to one tap; those beyond the last channel are 0.

override GRAD: u32 = 0u;

// The result pixels of a phase and what they read: pixel `place` is result pixel `at + spacing * place`, and its tap `tap`,
// tap `first_tap + tap_spacing * tap` of the weights, reads source pixel `start + pixel_step * place + tap_step * tap`.
struct Walk {
    n: vec2u,
    at: vec2u,
    spacing: vec2u,
    n_taps: vec2u,
    first_tap: vec2u,
    tap_spacing: vec2u,
    start: vec2i,
    pixel_step: vec2i,
    tap_step: i32,
}

fn walk_of(phase: u32) -> Walk {
    var walk: Walk;
    if GRAD == 0u {
        walk.n = params.result_size;
        walk.at = vec2u(0u);
        walk.spacing = vec2u(1u);
        walk.n_taps = params.kernel_size;
        walk.first_tap = vec2u(0u);
        walk.tap_spacing = vec2u(1u);
        walk.start = -vec2i(params.padding);
        walk.pixel_step = vec2i(params.stride);
        walk.tap_step = 1;
        return walk;
    }
    walk.at = vec2u(phase / params.stride.y, phase % params.stride.y);
    walk.n = (max(params.result_size, walk.at) - walk.at + params.stride - 1u) / params.stride;
    walk.spacing = params.stride;
    walk.first_tap = (walk.at + params.padding) % params.stride;
    walk.n_taps = (max(params.kernel_size, walk.first_tap) - walk.first_tap + params.stride - 1u) / params.stride;
    walk.tap_spacing = params.stride;
    walk.start = vec2i((walk.at + params.padding) / params.stride);
    walk.pixel_step = vec2i(1);
    walk.tap_step = -1;
    return walk;
}

// The image of result pixel `i` of a phase, and its position in the walk.
fn place_of(walk: Walk, i: u32) -> vec3u {
    return vec3u(i / (walk.n.x * walk.n.y), i / walk.n.y % walk.n.x, i % walk.n.y);
}

// The number of K indices of a tap.
fn tap_len() -> u32 {
    return (params.n_channels + 3u) / 4u * 4u;
}

// Blocks of 4 by 4, starting at `row` and `col`, over the K indices from `first` to `end`.
struct Job {
    exists: bool,
    row: u32,
    col: u32,
    first: u32,
    end: u32,
    n_pixels: u32,
    walk: Walk,
}

fn job_of(group: vec3u, groups: vec3u) -> Job {
    let row_group = group.z * groups.y + group.y;
    let walk = walk_of(row_group / params.n_row_groups);
    let row = row_group % params.n_row_groups * TILE_ROWS;
    let n_pixels = params.n_images * walk.n.x * walk.n.y;
    let exists = row_group / params.n_row_groups < params.n_phases && 4u * row < n_pixels;
    return Job(exists, row, group.x * TILE_COLS, 0u, walk.n_taps.x * walk.n_taps.y * tap_len(), n_pixels, walk);
}

fn store_row(job: Job, row: u32, col: u32, sums: vec4f) {
    if row >= job.n_pixels {
        return;
    }
    var at = row;
    if params.n_phases > 1u {
        let place = place_of(job.walk, row);
        let pixel = job.walk.at + job.walk.spacing * place.yz;
        at = (place.x * params.result_size.x + pixel.x) * params.result_size.y + pixel.y;
    }
    store_four(at * params.n_cols, col, params.n_cols, sums);
}

// What four result pixels read: their images, and the source pixels of their first taps. Pixels beyond the last one read nothing.
struct Sources {
    image: vec4u,
    y: vec4i,
    x: vec4i,
}

// The result pixels starting at `row`, each `spacing` after the previous one.
fn sources_of(job: Job, row: u32, spacing: u32) -> Sources {
    var sources: Sources;
    for (var i = 0u; i < 4u; i += 1u) {
        let place = place_of(job.walk, row + i * spacing);
        let first = job.walk.start + job.walk.pixel_step * vec2i(place.yz);
        sources.image[i] = place.x;
        sources.y[i] = select(-1 - i32(params.kernel_size.x), first.x, place.x < params.n_images);
        sources.x[i] = first.y;
    }
    return sources;
}

// The distance of tap `tap` of a walk from the first, in source pixels, and its index among the taps of the weights.
fn offset_of(walk: Walk, tap: u32) -> vec2i {
    return walk.tap_step * vec2i(vec2u(tap / walk.n_taps.y, tap % walk.n_taps.y));
}

fn weight_tap_of(walk: Walk, tap: u32) -> u32 {
    let at = walk.first_tap + walk.tap_spacing * vec2u(tap / walk.n_taps.y, tap % walk.n_taps.y);
    return at.x * params.kernel_size.y + at.y;
}
