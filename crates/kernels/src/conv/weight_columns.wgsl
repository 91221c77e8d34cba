// Part: the columns of a gradient of weights. Expects `params`.

// A column of the weights: its channel, and the pixel that its tap reads for result pixel (0, 0).
struct Column {
    channel: u32,
    first: vec2i,
}

fn column_of(col: u32) -> Column {
    let tap = col / params.n_channels;
    let pixel = vec2i(vec2u(tap / params.kernel_size.y, tap % params.kernel_size.y)) - vec2i(params.padding);
    return Column(col % params.n_channels, pixel);
}
