// False where either is NaN, also on drivers that assume there is none.
fn less(a: V, b: V) -> Mask {
    return (a < b) & !(is_nan(a) | is_nan(b));
}
