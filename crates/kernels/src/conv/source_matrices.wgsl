// Part: f16 source pixels that are gathered into workgroup memory, from which cooperative matrices load them: they are not evenly spaced in the source, because of row
// ends and padding. Expects `PATCH`, `WIDTH` and `put_four` of the part for the size of the matrices, and from the loader `STRIDE`, the stride of its lines in
// workgroup memory, and `HALF`, the length of one half.
//
// An invocation always gathers eight channels, 16 bytes, at four positions, which are a quarter of a half apart.

const STAGED = true;
override PATCHES_LEN: u32 = 2u * HALF / WIDTH;

// patches[half][line][place].
var<workgroup> patches: array<PATCH, PATCHES_LEN>;

struct EightChannels {
    low: vec4<f16>,
    high: vec4<f16>,
}

struct Gathered {
    of_0: EightChannels,
    of_1: EightChannels,
    of_2: EightChannels,
    of_3: EightChannels,
}

// The channels of a pixel of an image, starting at `channel`; 0 in the padding.
fn channels_at(image: u32, pixel: vec2i, channel: u32) -> EightChannels {
    let size = vec2i(params.source_size);
    if any(pixel < vec2i(0)) || any(pixel >= size) {
        return EightChannels();
    }
    let of_image = (image * params.source_size.x + u32(pixel.x)) * params.source_size.y + u32(pixel.y);
    let four = (of_image * params.n_channels + channel) / 4u;
    return EightChannels(source[four], source[four + 1u]);
}

fn put_eight(at: u32, channels: EightChannels) {
    put_four(at, channels.low);
    put_four(at + 4u, channels.high);
}

fn put(stage: u32, gatherer: Gatherer, gathered: Gathered) {
    let at = stage + gatherer.at;
    put_eight(at, gathered.of_0);
    put_eight(at + HALF / 4u, gathered.of_1);
    put_eight(at + HALF / 2u, gathered.of_2);
    put_eight(at + HALF / 4u * 3u, gathered.of_3);
}
