// NaN if either is.
fn minimum(a: V, b: V) -> V {
    return select(select(min(a, b), a, is_nan(a)), b, is_nan(b));
}
