// y = the largest value under each window, taps = which tap it was: the first of equal ones; a NaN wins over all before it.
// Twin: max_pool2d_cpu.rs. Reads what the windows cover, writes 8 bytes an element of y, 6 in 16 bits; neighbouring invocations have neighbouring channels.

// Pairs are (along the height, along the width).
struct Params {
    x_size: vec2u,
    y_size: vec2u,
    kernel_size: vec2u,
    stride: vec2u,
    padding: vec2u,
    n_channels: u32,
    pad0: u32,
    pad1: vec4u,
}

override WG: u32 = 64u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<X>;
@group(0) @binding(2) var<storage, read_write> y: array<X>;
@group(0) @binding(3) var<storage, read_write> taps: array<U>;

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
    var best = V();
    var best_tap = U(0xffffffffu);
    for (var h = begin.x; h < end.x; h += 1u) {
        for (var w = begin.y; w < end.y; w += 1u) {
            let v = load_x(x[((image * params.x_size.x + h) * params.x_size.y + w) * params.n_channels + i % params.n_channels]);
            let tap = U(u32(i32(h) - first.x) * params.kernel_size.y + u32(i32(w) - first.y));
            // NaN by its bits, since a driver may assume that there is none.
            let is_nan = (bitcast<U>(v) & U(0x7fffffffu)) > U(0x7f800000u);
            let wins = (best_tap == U(0xffffffffu)) | (v > best) | is_nan;
            best = select(best, v, wins);
            best_tap = select(best_tap, tap, wins);
        }
    }
    y[i] = store_x(best);
    taps[i] = best_tap;
}
