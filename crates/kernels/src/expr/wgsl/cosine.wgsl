// cos(v); beyond 12,000 as the driver computes it.
fn cosine(v: V) -> V {
    return sine_of_specials(v, select(cos(v), sine_of_quadrant(v, I(1)), is_within_sine_range(v)));
}
