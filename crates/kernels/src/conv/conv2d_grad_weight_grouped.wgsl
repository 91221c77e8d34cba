// parts[p, o, u, v, c] = sum over the result pixels (b, i, j) of part p of grad_y[b, i, j, o] source[b, i stride - padding + u dilation, j stride - padding + v dilation, c0 + c], where
// c0 is the first input channel of o's group. A part has `part_rows` rows of pixels; the parts are then added in order.
// Twin: grouped_cpu.rs. Bound by the cache: two values are read for each product.

fn element(i: u32) {
    if i >= arrayLength(&parts) {
        return;
    }
    let n_taps = params.kernel_size.x * params.kernel_size.y;
    let tap = i / params.group_source % n_taps;
    let o = i / params.group_source / n_taps % params.n_result;
    let first_row = i / params.group_source / n_taps / params.n_result * params.part_rows;
    let end_row = min(first_row + params.part_rows, params.n_images * params.result_size.x);
    let channel = o / params.group_result * params.group_source + i % params.group_source;
    let offset = vec2i(params.dilation * vec2u(tap / params.kernel_size.y, tap % params.kernel_size.y)) - vec2i(params.padding);
    var sum = 0.0;
    for (var row = first_row; row < end_row; row += 1u) {
        // Indices of pixels before the image wrap to ones beyond it.
        let h = params.stride.x * (row % params.result_size.x) + u32(offset.x);
        if h < params.source_size.x {
            let of_source = (row / params.result_size.x * params.source_size.x + h) * params.source_size.y;
            for (var col = 0u; col < params.result_size.y; col += 1u) {
                let w = params.stride.y * col + u32(offset.y);
                if w < params.source_size.y {
                    let grad = load_grad_y((row * params.result_size.y + col) * params.n_result + o);
                    sum += grad * load_source((of_source + w) * params.n_source + channel);
                }
            }
        }
    }
    parts[i] = sum;
}
