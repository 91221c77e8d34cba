// grad_x = the sum of the gradients of the windows whose maximum the pixel was, in the order of the windows.
// Twin: `grad` in max_pool2d_cpu.rs. Reads 8 bytes an element of grad_y for each pixel it covers, writes 4 an element of grad_x; 6 and 2 in 16 bits.

fn element(i: u32) {
    if i >= arrayLength(&grad_x) {
        return;
    }
    let place = place_of(i, params.x_size);
    let padded = place.yz + params.padding;
    let windows = covering(padded);
    var sum = V();
    for (var h = windows.begin.x; h < windows.end.x; h += 1u) {
        for (var w = windows.begin.y; w < windows.end.y; w += 1u) {
            let at = element_at(place.x, h, w, params.y_size, i);
            let tap = padded - params.stride * vec2u(h, w);
            sum += select(V(), load_x(grad_y[at]), taps[at] == U(tap.x * params.kernel_size.y + tap.y));
        }
    }
    grad_x[i] = store_x(sum);
}
