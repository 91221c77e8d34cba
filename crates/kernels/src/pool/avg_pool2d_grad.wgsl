// grad_x = the pixel's share of the gradients of the windows that cover it, added in the order of the windows.
// Twin: `grad` in avg_pool2d_cpu.rs. Reads an element of grad_y for each pixel it covers, writes 4 bytes an element of grad_x; 2 in 16 bits.

// The number of pixels that a window counts.
fn n_counted(place: vec2u) -> f32 {
    let begin = params.stride * place;
    if params.padded == 1u {
        let counted = min(params.kernel_size, params.x_size + 2u * params.padding - begin);
        return f32(counted.x * counted.y);
    }
    let covered = min(begin + params.kernel_size, params.x_size + params.padding) - max(begin, params.padding);
    return f32(covered.x * covered.y);
}

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
            sum += load_x(grad_y[at]) / n_counted(vec2u(h, w));
        }
    }
    grad_x[i] = store_x(sum);
}
