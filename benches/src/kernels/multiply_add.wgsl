// Multiply-adds on numbers that stay in registers: the maximum arithmetic rate of the adapter. Each invocation has four vectors, so that none waits for
// its own result. Twin: `MultiplyAdd` in limits.rs.

override N_STEPS: u32 = 1024;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let factor = 0.5 * x[lane];
    var a = x[lane];
    var b = a + 1.0;
    var c = a + 2.0;
    var d = a + 3.0;
    for (var step = 0u; step < N_STEPS; step++) {
        a = fma(a, factor, factor);
        b = fma(b, factor, factor);
        c = fma(c, factor, factor);
        d = fma(d, factor, factor);
    }
    y[group.x * 64 + lane] = a + b + c + d;
}
