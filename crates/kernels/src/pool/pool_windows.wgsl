// Part: the pixels that a window covers, and the windows that cover a pixel, of pooling. Pairs are (along the height, along the width).

// The pixel or window that element `i` of images of `size` belongs to: its image, and its position.
fn place_of(i: u32, size: vec2u) -> vec3u {
    let pixel = i / params.n_channels;
    return vec3u(pixel / size.y / size.x, pixel / size.y % size.x, pixel % size.y);
}

// The element at (h, w) of an image, in the channel of element `i`.
fn element_at(image: u32, h: u32, w: u32, size: vec2u, i: u32) -> u32 {
    return ((image * size.x + h) * size.y + w) * params.n_channels + i % params.n_channels;
}

// Positions from `begin` to before `end`.
struct Area {
    begin: vec2u,
    end: vec2u,
}

// The pixels that a window covers; `first` is its first one, which may be in the padding.
fn covered_from(first: vec2i) -> Area {
    return Area(vec2u(max(first, vec2i(0))), vec2u(min(first + vec2i(params.kernel_size), vec2i(params.x_size))));
}

// The windows that cover the pixel `padded`, counted from the beginning of the padding.
fn covering(padded: vec2u) -> Area {
    let begin = (max(padded + 1u, params.kernel_size) - params.kernel_size + params.stride - 1u) / params.stride;
    return Area(begin, min(padded / params.stride + 1u, params.y_size));
}
