// One pass of a reduction: y[o, c] = op over j of x[o, j width + c], each of the n_outer runs of x cut into lines of `width`, the last
// of them short. With width = parts n_inner that leaves `parts` partial results of each; the last pass has width = n_inner.
// Twin: reduce_cpu.rs. Moves 4 bytes an element of x, 2 in 16 bits.
// Ladder: one invocation a result (serial, strided) -> one a result and run of elements that lie `parts` apart, so that neighbouring invocations read
// neighbouring elements, in passes; no barrier in either.

struct Params {
    // Elements of y.
    n_results: u32,
    // Elements of a run of x.
    n_run: u32,
    width: u32,
    // Elements that make a result when all passes are done.
    n: u32,
}

override WG: u32 = 64u;
// 0 sum, 1 mean, 2 max, 3 min, 4 norm, 5 non-finite.
override OP: u32 = 0u;
override FIRST: u32 = 0u;
override LAST: u32 = 0u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<X>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

fn element(v: f32) -> f32 {
    if FIRST == 1u && OP == 4u {
        return v * v;
    }
    if FIRST == 1u && OP == 5u {
        return select(0.0, 1.0, (bitcast<u32>(v) & 0x7F800000u) == 0x7F800000u);
    }
    return v;
}

fn join(a: f32, b: f32) -> f32 {
    switch OP {
        case 2u: { return select(a, b, b > a || is_nan(b)); }
        case 3u: { return select(a, b, b < a || is_nan(b)); }
        case 5u: { return max(a, b); }
        default: { return a + b; }
    }
}

fn finish(v: f32) -> f32 {
    if LAST == 1u && OP == 1u {
        return v / f32(params.n);
    }
    if LAST == 1u && OP == 4u {
        return sqrt(v);
    }
    return v;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * WG + lane;
    if i >= params.n_results {
        return;
    }
    let start = i / params.width * params.n_run;
    var at = i % params.width;
    var sum = element(load_x(start + at));
    // Before the sum, which could wrap.
    while params.n_run - at > params.width {
        at += params.width;
        sum = join(sum, element(load_x(start + at)));
    }
    y[i] = finish(sum);
}
