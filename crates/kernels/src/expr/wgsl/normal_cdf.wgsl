// The distribution function of the standard normal distribution: twin `normal_cdf` in vector.rs.
fn normal_cdf(v: V) -> V {
    return (error_function(v * V(0.70710678118654752)) + 1.0) * 0.5;
}
