// a^b: NaN for a finite negative a, unless b is an integer; 1 for b = 0 and for a = 1, even if the other is NaN.
fn power(a: V, b: V) -> V {
    // The logarithm of 1 times an infinite exponent would be NaN.
    let y = select(exponential(b * logarithm(abs(a))), V(1.0), equal(abs(a), V(1.0)));
    let halved = 0.5 * b;
    let is_odd = floor(halved) != halved;
    let is_integer = floor(b) == b;
    let is_finite = (bitcast<U>(a) & U(0x7fffffffu)) < U(0x7f800000u);
    let of_negative = select(select(y, -y, is_odd & is_integer), from_bits(0x7fc00000u), is_finite & !is_integer);
    let of_any = select(y, of_negative, less(a, V(0.0)));
    let number = select(of_any, a + b, is_nan(a) | is_nan(b));
    return select(number, V(1.0), equal(b, V(0.0)) | equal(a, V(1.0)));
}
