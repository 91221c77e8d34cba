// Part: detects NaN by its bits, since a driver may assume that there is no NaN.

fn is_nan(v: f32) -> bool {
    return (bitcast<u32>(v) & 0x7FFFFFFFu) > 0x7F800000u;
}
