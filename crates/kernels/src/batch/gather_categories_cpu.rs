use crate::batch::gather_categories::GatherCategories;
use crate::sizes::in_u32;

pub(crate) fn run(kernel: &GatherCategories, table: &[u32], rows: &[u32], y: &mut [u32]) {
    let GatherCategories { first_row, n_table_rows, n_cols, .. } = *kernel;
    for (y, &row) in y.chunks_exact_mut(n_cols).zip(rows) {
        let row = row.wrapping_sub(in_u32(first_row)) as usize;
        if row < n_table_rows {
            y.copy_from_slice(&table[row * n_cols..][..n_cols]);
        } else if first_row == 0 {
            y.fill(0);
        }
    }
}
