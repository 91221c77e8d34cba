// grad_x[b, h, w, c] = epilogue(sum over u, v, o of grad_y[b, i, j, o] weight[o, u, v, c - c0]) over the windows (i, j) whose tap (u, v) is on the pixel (h, w) and the output
// channels o of c's group, whose first input channel is c0.
// Twin: grouped_conv2d_grad_input_cpu.rs. An invocation computes two channels of a pixel, since two 16-bit values share a word. Bound by the cache: two values are read for each
// product.

fn sum_of(image: u32, padded: vec2u, channel: u32) -> f32 {
    let group = channel / params.group_channels;
    let n_taps = params.kernel_size.x * params.kernel_size.y;
    var sum = 0.0;
    for (var tap = 0u; tap < n_taps; tap += 1u) {
        let offset = params.dilation * vec2u(tap / params.kernel_size.y, tap % params.kernel_size.y);
        let at = (padded - offset) / params.stride;
        if all(offset <= padded) && all(at * params.stride + offset == padded) && all(at < params.y_size) {
            let of_grad = ((image * params.y_size.x + at.x) * params.y_size.y + at.y) * params.n_out;
            for (var o = group * params.group_out; o < (group + 1u) * params.group_out; o += 1u) {
                sum += load_grad_y(of_grad + o) * load_weight((o * n_taps + tap) * params.group_channels + channel % params.group_channels);
            }
        }
    }
    return sum;
}

fn element(i: u32) {
    let n_pairs = (params.n_channels + 1u) / 2u;
    let pixel = i / n_pairs;
    let image = pixel / params.x_size.y / params.x_size.x;
    if image >= params.n_images {
        return;
    }
    let padded = vec2u(pixel / params.x_size.y % params.x_size.x, pixel % params.x_size.y) + params.padding;
    let channel = 2u * (i % n_pairs);
    let sums = vec2f(sum_of(image, padded, channel), sum_of(image, padded, min(channel + 1u, params.n_channels - 1u)));
    store_two(pixel * params.n_channels, channel, params.n_channels, sums);
}
