// y[i, c] = (table[rows[i] - first_row, c] - mean[c]) * inv_std[c] for the rows that the table holds; for others 0 if first_row is 0.
// Twin: gather_rows_cpu.rs. Moves 8 bytes an element, 6 where y is stored in 16 bits, 5 from a table of bytes.

fn element(i: u32) {
    if i >= arrayLength(&y) {
        return;
    }
    let col = i % params.n_cols;
    // A row before the window wraps to one beyond it.
    let row = rows[i / params.n_cols] - params.first_row;
    if row < params.n_table_rows {
        y[i] = store_x((value_at(row * params.n_cols + col) - mean[col]) * inv_std[col]);
    } else if params.first_row == 0u {
        y[i] = store_x(V());
    }
}
