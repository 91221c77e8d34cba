// parts[p, e, c] = sum of grad_y[i, c] over the rows i of block p whose entry is e, 64 rows per block. Then embedding_grad_add.wgsl.
// Twin: embedding_cpu.rs. For few entries: each of them reads all codes.

const PART_ROWS = 64u;

fn element(i: u32) {
    if i >= arrayLength(&parts) {
        return;
    }
    let col = i % params.dim;
    let entry = i / params.dim % params.n_entries;
    let first = i / params.dim / params.n_entries * PART_ROWS;
    let end = min(first + PART_ROWS, params.n);
    var sum = 0.0;
    if entry != params.padding {
        for (var row = first; row < end; row += 1u) {
            if entry_of(row) == entry {
                sum += grad_y[row * params.dim + col];
            }
        }
    }
    parts[i] = sum;
}
