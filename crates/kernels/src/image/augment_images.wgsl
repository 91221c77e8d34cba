// y[i, r, c, ch] = ((table[rows[i], s] - mean[s]) inv_std[s]) factor + summand, with s the pixel that the crop shows at (r, c); 0 in the cutout and
// beyond a border of zeros. Images that are not in this window of the table become 0 if it is the first one, and are left unchanged otherwise.
// Twin: augment_images_cpu.rs. Moves 5 bytes a value from a table of bytes.
// Two values per invocation, which share a word if y is stored in 16 bits.

// The position in the image that `at`, which may be outside, maps to by reflection.
fn reflected(at: i32, n: i32) -> i32 {
    let from_start = abs(at);
    return min(from_start, 2 * (n - 1) - from_start);
}

fn value(i: u32) -> f32 {
    let channel = i % params.n_channels;
    let pixel = i / params.n_channels;
    let across = pixel % params.crop_width;
    let down = (pixel / params.crop_width) % params.crop_height;
    let image = pixel / (params.crop_width * params.crop_height);
    let at = 8u * image;
    let corner = vec2u(down - draws[at + 3u], across - draws[at + 4u]);
    if all(corner < vec2u(params.cutout)) {
        return 0.0;
    }
    let shown = select(across, params.crop_width - 1u - across, draws[at + 2u] == 1u);
    let size = vec2i(i32(params.height), i32(params.width));
    var source = vec2i(i32(down + draws[at]), i32(shown + draws[at + 1u]));
    if params.is_reflected == 1u {
        source = vec2i(reflected(source.x, size.x), reflected(source.y, size.y));
    }
    if any(source < vec2i()) || any(source >= size) {
        return 0.0;
    }
    let place = u32(source.x * size.y + source.y) * params.n_channels + channel;
    let n_cols = params.height * params.width * params.n_channels;
    let row = rows[image] - params.first_row;
    let v = (value_at(row * n_cols + place) - mean[place]) * inv_std[place];
    return v * bitcast<f32>(draws[at + 5u]) + bitcast<f32>(draws[at + 6u]);
}

// Whether the image of value i is in this window. An index before it wraps to one beyond it.
fn is_here(i: u32) -> bool {
    return rows[i / (params.n_channels * params.crop_width * params.crop_height)] - params.first_row < params.n_table_rows;
}

fn element(at: u32) {
    let i = 2u * at;
    if at > (params.n - 1u) / 2u {
        return;
    }
    let last = min(i + 1u, params.n - 1u);
    let here = vec2<bool>(is_here(i), is_here(last));
    var v = vec2f();
    if here.x {
        v.x = value(i);
    }
    if here.y {
        v.y = value(last);
    }
    if params.first_row == 0u || all(here) {
        store_y(i, v, params.n - i);
        return;
    }
    // Only in f32 may a pair span two images.
    if here.x {
        store_y(i, v, 1u);
    }
    if here.y {
        store_y(last, vec2f(v.y), 1u);
    }
}
