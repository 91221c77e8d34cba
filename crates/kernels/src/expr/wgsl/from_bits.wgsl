// The number with these bits. A function, because WGSL refuses constant expressions that are infinite or NaN.
fn from_bits(bits: u32) -> V {
    return V(bitcast<f32>(bits));
}
