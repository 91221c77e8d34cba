// y[i, c] = table[rows[i] - first_row, c] for the rows that the table holds; for others 0 if first_row is 0.
// Twin: gather_categories_cpu.rs. Moves 8 bytes an element.

fn element(i: u32) {
    if i >= arrayLength(&y) {
        return;
    }
    // A row before the window wraps to one beyond it.
    let row = rows[i / params.n_cols] - params.first_row;
    if row < params.n_table_rows {
        y[i] = table[row * params.n_cols + i % params.n_cols];
    } else if params.first_row == 0u {
        y[i] = 0u;
    }
}
