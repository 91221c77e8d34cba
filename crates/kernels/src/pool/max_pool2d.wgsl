// y = the maximum of each window, taps = its tap: the first of equal values; a NaN wins over all values before it.
// Twin: max_pool2d_cpu.rs. Reads the pixels that the windows cover, writes 8 bytes an element of y, 6 in 16 bits; neighbouring invocations have neighbouring channels.

fn element(i: u32) {
    if i >= arrayLength(&y) {
        return;
    }
    let pixel = i / params.n_channels;
    let image = pixel / params.y_size.y / params.y_size.x;
    let place = vec2u(pixel / params.y_size.y % params.y_size.x, pixel % params.y_size.y);
    let first = vec2i(params.stride * place) - vec2i(params.padding);
    let begin = vec2u(max(first, vec2i(0)));
    let end = vec2u(min(first + vec2i(params.kernel_size), vec2i(params.x_size)));
    var best = V();
    var best_tap = U(0xffffffffu);
    for (var h = begin.x; h < end.x; h += 1u) {
        for (var w = begin.y; w < end.y; w += 1u) {
            let v = load_x(x[((image * params.x_size.x + h) * params.x_size.y + w) * params.n_channels + i % params.n_channels]);
            let tap = U(u32(i32(h) - first.x) * params.kernel_size.y + u32(i32(w) - first.y));
            // Detects NaN by its bits, since a driver may assume that there is none.
            let is_nan = (bitcast<U>(v) & U(0x7fffffffu)) > U(0x7f800000u);
            let wins = (best_tap == U(0xffffffffu)) | (v > best) | is_nan;
            best = select(best, v, wins);
            best_tap = select(best_tap, tap, wins);
        }
    }
    y[i] = store_x(best);
    taps[i] = best_tap;
}
