pub(crate) fn run(x: &[f32], state: &[u32], y: &mut [f32]) {
    let start = (state[0] as usize).saturating_mul(x.len()).min(y.len());
    let end = (start + x.len()).min(y.len());
    y[start..end].copy_from_slice(&x[..end - start]);
}
