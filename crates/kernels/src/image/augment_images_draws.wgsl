// The draws for image i, by id and epoch: top and left of the crop in the image, whether it is mirrored, top and left of the cutout in the crop,
// factor and summand of its values.
// Twin: ImageAugmentation::draws in augmentation.rs. Writes 32 bytes an image.

// A random word as a number below `n`.
fn below(word: u32, n: u32) -> u32 { return multiply(word, n).y; }

// A random word as a number from -1 to 1.
fn centred(word: u32) -> f32 { return f32(word >> 8u) * (2.0 / 16777216.0) - 1.0; }

fn element(i: u32) {
    if i >= params.n {
        return;
    }
    let seed = vec2u(params.key_low, params.key_high);
    let id = ids[i];
    let epoch = order[5];
    let first = philox(vec4u(id, epoch, 0u, 0u), seed);
    let second = philox(vec4u(id, epoch, 1u, 0u), seed);
    var is_flipped = 0u;
    if params.flip == 1u {
        is_flipped = first.z >> 31u;
    } else if params.flip == 2u {
        is_flipped = (philox(vec4u(id, 0u, 2u, 0u), seed).x >> 31u) ^ (epoch & 1u);
    }
    let factor = 1.0 + params.contrast * centred(second.z);
    let at = 8u * i;
    draws[at] = below(first.x, params.n_tops) - params.pad;
    draws[at + 1u] = below(first.y, params.n_lefts) - params.pad;
    draws[at + 2u] = is_flipped;
    draws[at + 3u] = below(first.w, params.n_cutout_tops);
    draws[at + 4u] = below(second.x, params.n_cutout_lefts);
    draws[at + 5u] = bitcast<u32>(factor);
    draws[at + 6u] = bitcast<u32>(params.brightness * centred(second.y) * factor);
    draws[at + 7u] = 0u;
}
