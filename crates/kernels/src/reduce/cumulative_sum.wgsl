// y[o, k, i] = sum of x[o, j, i] over j <= k, or over j >= k with REVERSE.
// Twin: cumulative_sum_cpu.rs. Moves 8 bytes an element, 6 with x in 16 bits.
// Ladder: series_an_invocation (no barrier; neighbouring invocations read neighbouring elements if n_inner is large) -> series_a_workgroup, for long
// series: 256 elements at a time, 4 per invocation, then the sums of all invocations are scanned in 6 steps.

const WG = 64u;
override REVERSE: u32 = 0u;
// The number of elements that an invocation adds at a time.
const RUN = 4u;

var<workgroup> sums: array<f32, WG>;

// The index of element number `k` of a series, counted from the end at which sums start.
fn place(series: u32, k: u32) -> u32 {
    let row = select(k, params.n - 1u - k, REVERSE == 1u);
    return (series / params.n_inner * params.n + row) * params.n_inner + series % params.n_inner;
}

@compute @workgroup_size(WG)
fn series_an_invocation(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) invocation: u32) {
    let series = (group.y * groups.x + group.x) * WG + invocation;
    if series >= params.n_series {
        return;
    }
    var sum = 0.0;
    for (var k = 0u; k < params.n; k += 1u) {
        let at = place(series, k);
        sum += load_x(at);
        y[at] = sum;
    }
}

@compute @workgroup_size(WG)
fn series_a_workgroup(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) invocation: u32) {
    let series = group.y * groups.x + group.x;
    if series >= params.n_series {
        return;
    }
    var before = 0.0;
    // Counts chunks, since the index of the next one could wrap.
    for (var chunk = 0u; chunk <= (params.n - 1u) / (WG * RUN); chunk += 1u) {
        let first = chunk * WG * RUN + invocation * RUN;
        let n = select(0u, min(RUN, params.n - first), first < params.n);
        var sum = 0.0;
        for (var i = 0u; i < n; i += 1u) {
            sum += load_x(place(series, first + i));
        }
        sums[invocation] = sum;
        workgroupBarrier();
        for (var reach = 1u; reach < WG; reach *= 2u) {
            var left = 0.0;
            if invocation >= reach {
                left = sums[invocation - reach];
            }
            workgroupBarrier();
            sums[invocation] += left;
            workgroupBarrier();
        }
        sum = before;
        if invocation > 0u {
            sum += sums[invocation - 1u];
        }
        for (var i = 0u; i < n; i += 1u) {
            let at = place(series, first + i);
            sum += load_x(at);
            y[at] = sum;
        }
        before += sums[WG - 1u];
        workgroupBarrier();
    }
}
