// Part: the columns of a gradient of weights, of which the last ones of a tile may not exist. Expects `params`.

// Four columns of the weights: the first one's channel, and the pixel that their tap reads for result pixel (0, 0); those beyond the last read none.
struct Column {
    channel: u32,
    first: vec2i,
    exists: bool,
}

fn column_of(col: u32) -> Column {
    let tap = col / params.n_channels;
    let pixel = vec2i(vec2u(tap / params.kernel_size.y, tap % params.kernel_size.y)) - vec2i(params.padding);
    return Column(col % params.n_channels, pixel, tap < params.kernel_size.x * params.kernel_size.y);
}
