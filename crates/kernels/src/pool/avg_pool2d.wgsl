// y = the sum over each window, divided by its number of pixels: including those in the padding if `padded`, else only those in the image.
// Twin: avg_pool2d_cpu.rs. Reads the pixels that the windows cover, writes 4 bytes an element of y, 2 in 16 bits; neighbouring invocations have neighbouring channels.

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
    var sum = V();
    for (var h = begin.x; h < end.x; h += 1u) {
        for (var w = begin.y; w < end.y; w += 1u) {
            sum += load_x(x[((image * params.x_size.x + h) * params.x_size.y + w) * params.n_channels + i % params.n_channels]);
        }
    }
    var counted = end - begin;
    if params.padded == 1u {
        counted = min(params.kernel_size, params.x_size + 2u * params.padding - params.stride * place);
    }
    y[i] = store_x(sum / f32(counted.x * counted.y));
}
