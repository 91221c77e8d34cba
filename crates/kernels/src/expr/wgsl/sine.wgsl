// sin(v); beyond 12,000 as the driver computes it.
fn sine(v: V) -> V {
    let y = select(sin(v), sine_of_quadrant(v, I(0)), is_within_sine_range(v));
    return select(sine_of_specials(v, y), v, v == V(0.0));
}
