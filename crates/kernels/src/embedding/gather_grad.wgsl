// grad_x[o, j, i] = sum of grad_y[o, k, i] over the k with index[o, k, i] = j, or index[k] = j, in order.
// Twin: gather_cpu.rs. An invocation reads all n indices of its line, which is fast for few indices, such as labels or the columns of an image.

fn element(i: u32) {
    if i >= arrayLength(&grad_x) {
        return;
    }
    let own = i / params.n_inner % params.n_x;
    let start = i / params.n_inner / params.n_x * params.n * params.n_inner + i % params.n_inner;
    var sum = 0.0;
    for (var k = 0u; k < params.n; k += 1u) {
        let at = start + k * params.n_inner;
        if named(at) == own {
            sum += grad_y[at];
        }
    }
    grad_x[i] = sum;
}
