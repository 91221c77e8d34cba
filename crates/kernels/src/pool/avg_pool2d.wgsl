// y = the sum of what each window covers, over its pixels: those in the padding too if `padded`, else those in the image.
// Twin: avg_pool2d_cpu.rs. Reads what the windows cover, writes 4 bytes an element of y, 2 in 16 bits; neighbouring invocations have neighbouring channels.

// Pairs are (along the height, along the width).
struct Params {
    x_size: vec2u,
    y_size: vec2u,
    kernel_size: vec2u,
    stride: vec2u,
    padding: vec2u,
    n_channels: u32,
    padded: u32,
    pad: vec4u,
}

override WG: u32 = 64u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<X>;
@group(0) @binding(2) var<storage, read_write> y: array<X>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
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
