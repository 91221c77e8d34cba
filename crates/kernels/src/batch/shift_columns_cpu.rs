use crate::batch::shift_columns::ShiftColumns;
use crate::storage::element::Element;

pub(crate) fn run<T: Element>(kernel: &ShiftColumns, x: &[T], y: &mut [T]) {
    let ShiftColumns { n_x_cols, n_y_cols, shift, .. } = *kernel;
    // The position of each matrix's first column in the other.
    let (from, to) = (shift.max(0).unsigned_abs(), shift.min(0).unsigned_abs());
    let n = n_x_cols.saturating_sub(from).min(n_y_cols.saturating_sub(to));
    for (y, x) in y.chunks_exact_mut(n_y_cols).zip(x.chunks_exact(n_x_cols)) {
        y.fill(T::narrow(0.0));
        if n > 0 {
            y[to..to + n].copy_from_slice(&x[from..from + n]);
        }
    }
}
