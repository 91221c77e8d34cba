pub(crate) fn run<T: Copy>(n_cols: usize, first: usize, width: usize, x: &[T], y: &mut [T]) {
    for (y, x) in y.chunks_exact_mut(n_cols).zip(x.chunks_exact(width)) {
        y[first..first + width].copy_from_slice(x);
    }
}
