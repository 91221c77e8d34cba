// Whether each number is NaN: by its bits, since a compiler may assume that there is no NaN.
fn is_nan(v: V) -> Mask {
    return (bitcast<U>(v) & U(0x7fffffffu)) > U(0x7f800000u);
}
