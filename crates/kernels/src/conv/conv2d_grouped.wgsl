// y[b, i, j, o] = epilogue(sum over u, v, c of source[b, i stride - padding + u dilation, j stride - padding + v dilation, c0 + c] weight[o, u, v, c]), where c0 is the first
// input channel of o's group. With GRAD, the gradient in the input: y[b, h, w, c] = epilogue(sum over u, v, o of source[b, i, j, o] weight[o, u, v, c - c0]) over the windows
// (i, j) whose tap (u, v) is on the pixel (h, w) and the output channels o of c's group, whose first input channel is c0.
// Twin: grouped_cpu.rs. An invocation computes two channels of a pixel, since two 16-bit values share a word. Bound by the cache: two values are read for each product.

override GRAD: u32 = 0u;

// The source pixel that a tap reads for the result pixel `place`; one beyond the image if there is none. Indices of pixels before the image wrap to ones beyond it.
fn source_of(place: vec2u, tap: u32) -> vec2u {
    let offset = params.dilation * vec2u(tap / params.kernel_size.y, tap % params.kernel_size.y);
    if GRAD == 0u {
        return params.stride * place + offset - params.padding;
    }
    let padded = place + params.padding;
    let at = (padded - offset) / params.stride;
    return select(params.source_size, at, all(offset <= padded) && all(at * params.stride + offset == padded));
}

fn sum_of(image: u32, place: vec2u, channel: u32) -> f32 {
    let n_taps = params.kernel_size.x * params.kernel_size.y;
    let first = channel / params.group_result * params.group_source;
    // From the weight of one channel of the source to that of the next.
    let weight_step = select(1u, n_taps * params.group_result, GRAD == 1u);
    var sum = 0.0;
    for (var tap = 0u; tap < n_taps; tap += 1u) {
        let at = source_of(place, tap);
        if all(at < params.source_size) {
            let of_source = ((image * params.source_size.x + at.x) * params.source_size.y + at.y) * params.n_source + first;
            var of_weight = (channel * n_taps + tap) * params.group_source;
            if GRAD == 1u {
                of_weight = (first * n_taps + tap) * params.group_result + channel % params.group_result;
            }
            for (var i = 0u; i < params.group_source; i += 1u) {
                sum += load_source(of_source + i) * load_weight(of_weight + i * weight_step);
            }
        }
    }
    return sum;
}

fn element(i: u32) {
    let n_pairs = (params.n_result + 1u) / 2u;
    let pixel = i / n_pairs;
    let image = pixel / params.result_size.y / params.result_size.x;
    if image >= params.n_images {
        return;
    }
    let place = vec2u(pixel / params.result_size.y % params.result_size.x, pixel % params.result_size.y);
    let channel = 2u * (i % n_pairs);
    let sums = vec2f(sum_of(image, place, channel), sum_of(image, place, min(channel + 1u, params.n_result - 1u)));
    store_two(pixel * params.n_result, channel, params.n_result, sums);
}
