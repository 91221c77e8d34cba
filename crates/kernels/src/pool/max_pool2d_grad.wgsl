// grad_x = the sum of the gradients of the windows whose maximum the pixel was, in the order of the windows.
// Twin: `grad` in max_pool2d_cpu.rs. Reads 8 bytes an element of grad_y for each pixel it covers, writes 4 an element of grad_x; 6 and 2 in 16 bits.

fn element(i: u32) {
    if i >= arrayLength(&grad_x) {
        return;
    }
    let pixel = i / params.n_channels;
    let image = pixel / params.x_size.y / params.x_size.x;
    let padded = vec2u(pixel / params.x_size.y % params.x_size.x, pixel % params.x_size.y) + params.padding;
    // The windows that cover the pixel.
    let begin = (max(padded + 1u, params.kernel_size) - params.kernel_size + params.stride - 1u) / params.stride;
    let end = min(padded / params.stride + 1u, params.y_size);
    var sum = V();
    for (var h = begin.x; h < end.x; h += 1u) {
        for (var w = begin.y; w < end.y; w += 1u) {
            let at = ((image * params.y_size.x + h) * params.y_size.y + w) * params.n_channels + i % params.n_channels;
            let tap = padded - params.stride * vec2u(h, w);
            sum += select(V(), load_x(grad_y[at]), taps[at] == U(tap.x * params.kernel_size.y + tap.y));
        }
    }
    grad_x[i] = store_x(sum);
}
