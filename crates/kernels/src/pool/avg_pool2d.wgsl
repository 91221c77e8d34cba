// y = the sum over each window, divided by its number of pixels: including those in the padding if `padded`, else only those in the image.
// Twin: avg_pool2d_cpu.rs. Reads the pixels that the windows cover, writes 4 bytes an element of y, 2 in 16 bits; neighbouring invocations have neighbouring channels.

fn element(i: u32) {
    if i >= arrayLength(&y) {
        return;
    }
    let place = place_of(i, params.y_size);
    let first = vec2i(params.stride * place.yz) - vec2i(params.padding);
    let covered = covered_from(first);
    var sum = V();
    for (var h = covered.begin.x; h < covered.end.x; h += 1u) {
        for (var w = covered.begin.y; w < covered.end.y; w += 1u) {
            sum += load_x(x[element_at(place.x, h, w, params.x_size, i)]);
        }
    }
    var counted = covered.end - covered.begin;
    if params.padded == 1u {
        counted = min(params.kernel_size, params.x_size + 2u * params.padding - params.stride * place.yz);
    }
    y[i] = store_x(sum / f32(counted.x * counted.y));
}
