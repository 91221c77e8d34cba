// parts[p, o, u, v, c] = sum over the result pixels (b, i, j) of part p of grad_y[b, i, j, o] x[b, i stride - padding + u dilation, j stride - padding + v dilation, c0 + c], where
// c0 is the first input channel of o's group. A part has `part_rows` rows of pixels; the parts are then added in order.
// Twin: grouped_conv2d_grad_weight_cpu.rs. Bound by the cache: two values are read for each product.

fn element(i: u32) {
    if i >= arrayLength(&parts) {
        return;
    }
    let n_taps = params.kernel_size.x * params.kernel_size.y;
    let tap = i / params.group_channels % n_taps;
    let o = i / params.group_channels / n_taps % params.n_out;
    let first_row = i / params.group_channels / n_taps / params.n_out * params.part_rows;
    let end_row = min(first_row + params.part_rows, params.n_images * params.y_size.x);
    let channel = o / params.group_out * params.group_channels + i % params.group_channels;
    let offset = vec2i(params.dilation * vec2u(tap / params.kernel_size.y, tap % params.kernel_size.y)) - vec2i(params.padding);
    var sum = 0.0;
    for (var row = first_row; row < end_row; row += 1u) {
        // Indices of pixels before the image wrap to ones beyond it.
        let h = params.stride.x * (row % params.y_size.x) + u32(offset.x);
        if h < params.x_size.x {
            let of_x = (row / params.y_size.x * params.x_size.x + h) * params.x_size.y;
            for (var col = 0u; col < params.y_size.y; col += 1u) {
                let w = params.stride.y * col + u32(offset.y);
                if w < params.x_size.y {
                    let grad = load_grad_y((row * params.y_size.y + col) * params.n_out + o);
                    sum += grad * load_x((of_x + w) * params.n_channels + channel);
                }
            }
        }
    }
    parts[i] = sum;
}
