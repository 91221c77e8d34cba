// y[o, i] = the first k with the maximum x[o, k, i]; NaN is greater than all numbers.
// Twin: arg_max_cpu.rs. Moves 4 bytes an element, 2 in 16 bits.
// Ladder: series_an_invocation (no barrier) -> series_a_workgroup, for long series: each invocation reads every 64th element, then a tree.

const WG = 64u;

// The maximum that an invocation has found, and its index.
var<workgroup> maxima: array<f32, WG>;
var<workgroup> places: array<u32, WG>;

// Whether `a` at index `i` comes before `b` at index `j`.
fn wins(a: f32, i: u32, b: f32, j: u32) -> bool {
    if is_nan(a) || is_nan(b) {
        return is_nan(a) && (!is_nan(b) || i < j);
    }
    return a > b || (a == b && i < j);
}

// The maximum of every `stride`-th element of a series, starting at element `first`.
fn search(series: u32, first: u32, stride: u32) -> u32 {
    let start = series / params.n_inner * params.n * params.n_inner + series % params.n_inner;
    var at = first;
    var maximum = load_x(start + at * params.n_inner);
    // Compared before adding, since the sum could wrap.
    for (var k = first; params.n - k > stride; ) {
        k += stride;
        let v = load_x(start + k * params.n_inner);
        if wins(v, k, maximum, at) {
            maximum = v;
            at = k;
        }
    }
    return at;
}

@compute @workgroup_size(WG)
fn series_an_invocation(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) invocation: u32) {
    let series = (group.y * groups.x + group.x) * WG + invocation;
    if series >= params.n_series {
        return;
    }
    y[series] = search(series, 0u, 1u);
}

// A series has at least as many elements as a workgroup has invocations.
@compute @workgroup_size(WG)
fn series_a_workgroup(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) invocation: u32) {
    let series = group.y * groups.x + group.x;
    if series >= params.n_series {
        return;
    }
    let found = search(series, invocation, WG);
    maxima[invocation] = load_x((series / params.n_inner * params.n + found) * params.n_inner + series % params.n_inner);
    places[invocation] = found;
    workgroupBarrier();
    for (var reach = WG / 2u; reach > 0u; reach /= 2u) {
        if invocation < reach && wins(maxima[invocation + reach], places[invocation + reach], maxima[invocation], places[invocation]) {
            maxima[invocation] = maxima[invocation + reach];
            places[invocation] = places[invocation + reach];
        }
        workgroupBarrier();
    }
    if invocation == 0u {
        y[series] = places[0];
    }
}
