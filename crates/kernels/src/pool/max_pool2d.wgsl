// y = the maximum of each window, taps = its tap: the first of equal values; a NaN wins over all values before it.
// Twin: max_pool2d_cpu.rs. Reads the pixels that the windows cover, writes 8 bytes an element of y, 6 in 16 bits; neighbouring invocations have neighbouring channels.

fn element(i: u32) {
    if i >= arrayLength(&y) {
        return;
    }
    let place = place_of(i, params.y_size);
    let first = vec2i(params.stride * place.yz) - vec2i(params.padding);
    let covered = covered_from(first);
    var best = V();
    var best_tap = U(0xffffffffu);
    for (var h = covered.begin.x; h < covered.end.x; h += 1u) {
        for (var w = covered.begin.y; w < covered.end.y; w += 1u) {
            let v = load_x(x[element_at(place.x, h, w, params.x_size, i)]);
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
