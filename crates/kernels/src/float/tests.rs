use super::*;

#[track_caller]
fn check(name: &str, ours: impl Fn(f32) -> f32, truth: impl Fn(f64) -> f64, relative: f64, absolute: f64) {
    for i in -20_000..=20_000 {
        let x = i as f32 * 0.004_9;
        let (got, want) = (f64::from(ours(x)), truth(f64::from(x)));
        assert!((got - want).abs() <= absolute + relative * want.abs(), "{name}({x}) = {got}, expected {want}");
    }
}

#[test]
fn elementary_functions_are_close() {
    check("exp", |x| exp(x * 0.8), |x| f64::from(rounded(x) * 0.8).exp(), 4e-7, 1.2e-38);
}

#[test]
fn exp_keeps_the_special_values() {
    assert_eq!(exp(f32::NEG_INFINITY), 0.0, "exp(-inf)");
    assert_eq!(exp(f32::INFINITY), f32::INFINITY, "exp(inf)");
    assert!(exp(f32::NAN).is_nan(), "exp(nan)");
    assert_eq!(exp(0.0), 1.0, "exp(0)");
}
