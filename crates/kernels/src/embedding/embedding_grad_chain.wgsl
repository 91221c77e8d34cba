// grad_weight[e, c] = sum of grad_y[i, c] along the chain of rows that starts at heads[e], in order; 0 for the padding entry.
// Twin: embedding_cpu.rs. Moves 4 bytes an element of grad_y and of grad_weight.
// The rows of a chain increase, and it ends with a number beyond the last row. The loop terminates in any case, whatever the chain contains.

fn element(i: u32) {
    if i >= arrayLength(&grad_weight) {
        return;
    }
    let entry = i / params.dim;
    var sum = 0.0;
    if entry != params.padding {
        for (var row = heads[entry]; row < params.n; row = max(next[row], row + 1u)) {
            sum += grad_y[row * params.dim + i % params.dim];
        }
    }
    grad_weight[i] = sum;
}
