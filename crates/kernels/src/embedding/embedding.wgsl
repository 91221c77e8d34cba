// y[i, c] = weight[index[i, index_col], c]; a code beyond the table is read as 0.
// Twin: embedding_cpu.rs. Moves 8 bytes an element.

fn element(i: u32) {
    if i >= arrayLength(&y) {
        return;
    }
    y[i] = weight[entry_of(i / params.dim) * params.dim + i % params.dim];
}
