// y[row, first + col] = x[row, col]: copies one of the matrices that are concatenated in y.
// Twin: concat_columns_cpu.rs. Moves 8 bytes an element, 4 in 16 bits.

fn element(i: u32) {
    if i < arrayLength(&x) {
        y[i / params.width * params.n_cols + params.first + i % params.width] = store_x(load_x(x[i]));
    }
}
