// Part: the function for Adam's bias correction.

// 1 - exp(-x) for x >= 0, by its series where the difference would cancel.
fn one_minus_exp_neg(x: f32) -> f32 {
    let series = x * (1.0 - x * (0.5 - x * (0.16666667 - x * (0.041666668 - x * 0.008333334))));
    return select(1.0 - exp(-min(x, 87.0)), series, x < 0.2);
}
