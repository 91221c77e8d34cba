// grad_weight[e, c] = sum of parts[p, e, c] over the blocks p of rows, in order: the second half of embedding_grad_parts.wgsl.
// Twin: embedding_cpu.rs.

fn element(i: u32) {
    let n = arrayLength(&grad_weight);
    if i >= n {
        return;
    }
    var sum = 0.0;
    for (var part = 0u; part < params.n_parts; part += 1u) {
        sum += parts[part * n + i];
    }
    grad_weight[i] = sum;
}
