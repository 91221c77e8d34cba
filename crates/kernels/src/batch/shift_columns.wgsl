// y[row, col] = x[row, col + shift], 0 where x has no such column.
// Twin: shift_columns_cpu.rs. Moves 8 bytes an element, 4 in 16 bits.

fn element(i: u32) {
    if i >= arrayLength(&y) {
        return;
    }
    // A column before the first wraps to one beyond the last.
    let col = i % params.n_y_cols + params.shift;
    var value = V();
    if col < params.n_x_cols {
        value = load_x(x[i / params.n_y_cols * params.n_x_cols + col]);
    }
    y[i] = store_x(value);
}
