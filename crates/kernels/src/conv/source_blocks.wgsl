// Part: source pixels, four channels at a time. Expects `fetch_source` of the stored types.

// Four channels of a pixel of an image, starting at `channel`; 0 in the padding and beyond the last channel.
fn channels_at(image: u32, pixel: vec2i, channel: u32) -> TILE {
    let size = vec2i(params.source_size);
    let exists = all(pixel >= vec2i(0)) && all(pixel < size);
    let at = ((image * params.source_size.x + u32(pixel.x)) * params.source_size.y + u32(pixel.y)) * params.n_channels + channel;
    return TILE(fetch_source(at, select(0u, params.n_channels - channel, exists)));
}
