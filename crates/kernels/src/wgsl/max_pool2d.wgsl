// y = the largest value under each window, taps = which tap it was: the first of equal ones; a NaN wins over all before it.
// Twin: src/cpu/max_pool2d.rs. Reads what the windows cover, writes 8 bytes an element of y; neighbouring lanes have neighbouring channels.

// Pairs are (along the height, along the width).
struct Params {
    x_size: vec2u,
    y_size: vec2u,
    kernel: vec2u,
    stride: vec2u,
    padding: vec2u,
    n_channels: u32,
    pad0: u32,
    pad1: vec4u,
}

override WG: u32 = 64u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<storage, read_write> taps: array<u32>;

// By its bits, since a driver may assume that there are none.
fn is_nan(v: f32) -> bool {
    return (bitcast<u32>(v) & 0x7fffffffu) > 0x7f800000u;
}

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
    let end = vec2u(min(first + vec2i(params.kernel), vec2i(params.x_size)));
    var best = 0.0;
    var best_tap = 0xffffffffu;
    for (var h = begin.x; h < end.x; h += 1u) {
        for (var w = begin.y; w < end.y; w += 1u) {
            let v = x[((image * params.x_size.x + h) * params.x_size.y + w) * params.n_channels + i % params.n_channels];
            if best_tap == 0xffffffffu || v > best || is_nan(v) {
                best = v;
                best_tap = u32(i32(h) - first.x) * params.kernel.y + u32(i32(w) - first.y);
            }
        }
    }
    y[i] = best;
    taps[i] = best_tap;
}
