// y[b, i, j, o] = epilogue(sum over u, v, c of x[b, i stride - padding + u dilation, j stride - padding + v dilation, c0 + c] weight[o, u, v, c]), where c0 is the first
// input channel of o's group.
// Twin: grouped_conv2d_cpu.rs. An invocation computes two channels of a pixel, since two 16-bit values share a word. Bound by the cache: two values are read for each product.

fn sum_of(image: u32, first: vec2i, o: u32) -> f32 {
    let channel = o / params.group_out * params.group_channels;
    let n_taps = params.kernel_size.x * params.kernel_size.y;
    var sum = 0.0;
    for (var tap = 0u; tap < n_taps; tap += 1u) {
        // Indices of pixels before the image wrap to ones beyond it.
        let at = vec2u(first + vec2i(params.dilation * vec2u(tap / params.kernel_size.y, tap % params.kernel_size.y)));
        if all(at < params.x_size) {
            let of_x = ((image * params.x_size.x + at.x) * params.x_size.y + at.y) * params.n_channels + channel;
            let of_weight = (o * n_taps + tap) * params.group_channels;
            for (var c = 0u; c < params.group_channels; c += 1u) {
                sum += load_x(of_x + c) * load_weight(of_weight + c);
            }
        }
    }
    return sum;
}

fn element(i: u32) {
    let n_pairs = (params.n_out + 1u) / 2u;
    let pixel = i / n_pairs;
    let image = pixel / params.y_size.y / params.y_size.x;
    if image >= params.n_images {
        return;
    }
    let place = vec2u(pixel / params.y_size.y % params.y_size.x, pixel % params.y_size.y);
    let first = vec2i(params.stride * place) - vec2i(params.padding);
    let o = 2u * (i % n_pairs);
    let sums = vec2f(sum_of(image, first, o), sum_of(image, first, min(o + 1u, params.n_out - 1u)));
    store_two(pixel * params.n_out, o, params.n_out, sums);
}
