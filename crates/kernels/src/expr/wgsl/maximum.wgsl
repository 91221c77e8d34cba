// NaN if either is.
fn maximum(a: V, b: V) -> V {
    return select(select(max(a, b), a, is_nan(a)), b, is_nan(b));
}
