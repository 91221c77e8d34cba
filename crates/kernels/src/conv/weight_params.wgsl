// Part: the sizes of a gradient of weights.

// Pairs are (along the height, along the width).
struct Params {
    x_size: vec2u,
    y_size: vec2u,
    kernel_size: vec2u,
    stride: vec2u,
    padding: vec2u,
    n_images: u32,
    n_channels: u32,
    n_out: u32,
    // Rows of result pixels of a run.
    part_rows: u32,
    pad: vec2u,
}
