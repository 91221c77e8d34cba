//! Expressions: values on the CPU compared with `f64`, derivatives with PyTorch's rules and finite differences, simplification
//! with the bits of the original.

use brisk_kernels::expr::{Activation, Evaluator, Expr, Operand};

use crate::random::Random;

fn x() -> Expr {
    Expr::input(0)
}

/// `expr` for each of `values` of input 0, by the vectorised evaluation.
fn run(expr: &Expr, values: &[f32]) -> Vec<f32> {
    let mut y = vec![f32::NAN; values.len()];
    Evaluator::new(std::slice::from_ref(expr)).run(&[Operand::Slice(values)], &mut [&mut y]);
    y
}

/// Floats of every exponent and sign within `low..=high`, with those limits.
fn floats_between(low: f32, high: f32) -> Vec<f32> {
    let mut random = Random::new(7);
    let mut floats = vec![low, high];
    while floats.len() < 300_000 {
        let any = f32::from_bits(random.next() as u32);
        let uniform = low + (high - low) * (0.5 * random.float() + 0.5);
        floats.extend([any, uniform].into_iter().filter(|v| (low..=high).contains(v)));
    }
    floats
}

/// The distance in units in the last place of `expected` rounded to f32.
fn ulps(found: f32, expected: f64) -> f64 {
    let rounded = expected as f32;
    if found == rounded || (found.is_nan() && rounded.is_nan()) {
        return 0.0;
    }
    let spacing = (f64::from(rounded.abs().next_up()) - f64::from(rounded.abs())).abs();
    (f64::from(found) - expected).abs() / spacing
}

/// The allowed error of a function, in units in the last place.
pub(crate) struct Accuracy {
    pub(crate) expr: Expr,
    exact: fn(f64) -> f64,
    low: f32,
    high: f32,
    twin: f64,
    pub(crate) gpu: f64,
}

/// The bounds that the module's documentation states, with the ranges for which they hold.
pub(crate) fn accuracies() -> Vec<Accuracy> {
    let max = f32::MAX;
    let row = |expr: Expr, exact: fn(f64) -> f64, [low, high]: [f32; 2], [twin, gpu]: [f64; 2]| Accuracy {
        expr,
        exact,
        low,
        high,
        twin,
        gpu,
    };
    vec![
        row(x().exp(), f64::exp, [-110.0, 95.0], [1.0, 4.0]),
        row(x().expm1(), f64::exp_m1, [-110.0, 88.72], [2.0, 6.0]),
        row(x().log(), f64::ln, [0.0, max], [1.0, 4.0]),
        row(x().log(), f64::ln, [0.5, 2.0], [1.0, 4.0]),
        row(x().log1p(), f64::ln_1p, [-1.0, max], [2.0, 6.0]),
        row(x().log1p(), f64::ln_1p, [-0.5, 2.0], [2.0, 6.0]),
        row(x().sqrt(), f64::sqrt, [0.0, max], [0.5, 2.5]),
        row(x().rsqrt(), |x| 1.0 / x.sqrt(), [0.0, max], [1.5, 5.0]),
        row(x().recip(), |x| 1.0 / x, [-max, max], [0.5, 2.5]),
        row(x().tanh(), f64::tanh, [-12.0, 12.0], [2.5, 6.0]),
        // Below -88 the inner sum is infinite, and the result 0 rather than subnormal.
        row(x().sigmoid(), |x| 1.0 / (1.0 + (-x).exp()), [-87.0, 90.0], [2.5, 6.0]),
        row(x().erf(), libm::erf, [-6.0, 6.0], [2.0, 6.0]),
        row(x().floor(), f64::floor, [-max, max], [0.0, 0.0]),
        row(x().floor(), f64::floor, [-9.0, 9.0], [0.0, 0.0]),
        row(x().powf(1.7), |x| x.powf(f64::from(1.7_f32)), [0.1, 10.0], [1.0, 8.0]),
        row(x().powf(1.7), |x| x.powf(f64::from(1.7_f32)), [0.0, max], [1.0, 160.0]),
        row(x().sin(), f64::sin, [-100.0, 100.0], [2.0, f64::INFINITY]),
        row(x().cos(), f64::cos, [-100.0, 100.0], [2.0, f64::INFINITY]),
        row(x().sin(), f64::sin, [-max, max], [2.0, f64::INFINITY]),
        row(x().cos(), f64::cos, [-max, max], [2.0, f64::INFINITY]),
    ]
}

impl Accuracy {
    pub(crate) fn values(&self) -> Vec<f32> {
        floats_between(self.low, self.high)
    }

    /// What is wrong with `found` for `values`.
    pub(crate) fn beyond(&self, bound: f64, values: &[f32], found: &[f32]) -> Option<String> {
        let exact = |x: f32| (self.exact)(f64::from(x));
        let errors = values.iter().zip(found).map(|(&x, &y)| (ulps(y, exact(x)), x, y));
        let (error, x, y) = errors.max_by(|a, b| a.0.total_cmp(&b.0))?;
        let message = || format!("{}: {error:.3} ulp at {x:e}, where it is {y:e} and should be {:e}", self.expr, exact(x));
        (error > bound || error.is_nan()).then(message)
    }

    /// Whether a GPU may flush `x`, or the result for it, to zero.
    pub(crate) fn is_subnormal(&self, x: f32) -> bool {
        let y = (self.exact)(f64::from(x)) as f32;
        x.is_subnormal() || y.is_subnormal()
    }
}

#[test]
fn errors_are_within_the_stated_bounds() {
    let beyond = accuracies().into_iter().filter_map(|of| {
        let values = of.values();
        of.beyond(of.twin, &values, &run(&of.expr, &values))
    });
    assert_eq!(beyond.collect::<Vec<_>>(), [""; 0]);
}

#[track_caller]
fn check_bits(expr: &Expr, cases: &[(f32, f32)]) {
    for &(x, expected) in cases {
        for found in [expr.evaluate(&[x]), run(expr, &[x])[0]] {
            let same = found.to_bits() == expected.to_bits() || (found.is_nan() && expected.is_nan());
            assert!(same, "{expr} at {x:e} is {found:e}, expected {expected:e}");
        }
    }
}

const NAN: f32 = f32::NAN;
const INF: f32 = f32::INFINITY;

#[test]
fn special_values_are_those_of_pytorch() {
    check_bits(&x().exp(), &[(NAN, NAN), (INF, INF), (-INF, 0.0), (0.0, 1.0), (-0.0, 1.0), (88.8, INF), (-104.0, 0.0)]);
    check_bits(&x().exp(), &[(-103.0, f32::from_bits(1))]);
    check_bits(&x().expm1(), &[(NAN, NAN), (INF, INF), (-INF, -1.0), (0.0, 0.0), (-0.0, -0.0), (1e-40, 1e-40)]);
    check_bits(&x().log(), &[(NAN, NAN), (INF, INF), (-INF, NAN), (0.0, -INF), (-0.0, -INF), (-1.0, NAN), (1.0, 0.0)]);
    check_bits(&x().log1p(), &[(NAN, NAN), (INF, INF), (-INF, NAN), (0.0, 0.0), (-0.0, -0.0), (-1.0, -INF), (-2.0, NAN)]);
    check_bits(&x().sqrt(), &[(NAN, NAN), (INF, INF), (-INF, NAN), (-0.0, -0.0), (-1.0, NAN)]);
    check_bits(&x().rsqrt(), &[(NAN, NAN), (INF, 0.0), (0.0, INF), (-1.0, NAN)]);
    check_bits(&x().recip(), &[(NAN, NAN), (INF, 0.0), (-INF, -0.0), (0.0, INF), (-0.0, -INF)]);
    check_bits(&x().tanh(), &[(NAN, NAN), (INF, 1.0), (-INF, -1.0), (0.0, 0.0), (-0.0, -0.0), (1e-40, 1e-40)]);
    check_bits(&x().sigmoid(), &[(NAN, NAN), (INF, 1.0), (-INF, 0.0), (0.0, 0.5), (-0.0, 0.5)]);
    check_bits(&x().erf(), &[(NAN, NAN), (INF, 1.0), (-INF, -1.0), (0.0, 0.0), (-0.0, -0.0)]);
    check_bits(&x().sin(), &[(NAN, NAN), (INF, NAN), (-INF, NAN), (0.0, 0.0), (-0.0, -0.0), (1e-40, 1e-40)]);
    check_bits(&x().cos(), &[(NAN, NAN), (INF, NAN), (0.0, 1.0), (-0.0, 1.0)]);
    check_bits(
        &x().floor(),
        &[(NAN, NAN), (INF, INF), (-INF, -INF), (-0.0, -0.0), (-0.5, -1.0), (0.5, 0.0), (2.0, 2.0), (-1e-40, -1.0)],
    );
    check_bits(&x().is_finite(), &[(NAN, 0.0), (INF, 0.0), (-INF, 0.0), (-0.0, 1.0), (f32::MAX, 1.0), (1e-40, 1.0)]);
    check_bits(&x().abs(), &[(-0.0, 0.0), (-INF, INF), (NAN, NAN)]);
    check_bits(&x().sign(), &[(NAN, 0.0), (INF, 1.0), (-INF, -1.0), (-0.0, 0.0), (1e-40, 1.0)]);
    check_bits(&x().max(1.0), &[(NAN, NAN), (INF, INF), (-INF, 1.0)]);
    check_bits(&Expr::constant(1.0).min(x()), &[(NAN, NAN), (INF, 1.0), (-INF, -INF)]);
    check_bits(&x().clamp(-1.0, 2.0), &[(NAN, NAN), (INF, 2.0), (-INF, -1.0), (2.0, 2.0)]);
    check_bits(&x().clamp(2.0, -1.0), &[(NAN, NAN), (INF, -1.0), (-INF, -1.0), (0.5, -1.0), (3.0, -1.0)]);
    check_bits(&x().relu(), &[(NAN, NAN), (INF, INF), (-INF, 0.0), (1e-40, 1e-40)]);
    check_bits(&x().lt(1.0), &[(NAN, 0.0), (1.0, 0.0), (0.5, 1.0)]);
    check_bits(&x().ge(1.0), &[(NAN, 0.0), (1.0, 1.0), (0.5, 0.0)]);
    check_bits(&x().eq(0.0), &[(NAN, 0.0), (-0.0, 1.0)]);
    check_bits(&x().ne(x()), &[(NAN, 1.0), (INF, 0.0)]);
    check_bits(&x().select(1.0, 2.0), &[(NAN, 1.0), (-0.0, 2.0), (-3.0, 1.0)]);
    check_bits(&x().powi(0), &[(NAN, 1.0)]);
    check_bits(&x().powi(-3), &[(2.0, 0.125), (0.0, INF), (-0.0, -INF)]);
    check_bits(&x().powi(-2), &[(NAN, NAN), (INF, 0.0), (-INF, 0.0), (0.0, INF), (-0.0, INF), (1e-40, INF), (1e30, 0.0)]);
    check_bits(&x().clamp(NAN, 2.0), &[(-5.0, NAN), (9.0, NAN)]);
    check_bits(&x().clamp(0.0, NAN), &[(-5.0, NAN), (9.0, NAN)]);
    check_bits(&x().powf(2.5), &[(-1.0, NAN), (0.0, 0.0), (4.0, 32.0), (INF, INF)]);
    check_bits(&Expr::constant(2.0).powf(x()), &[(3.0, 8.0), (NAN, NAN), (-INF, 0.0)]);
    check_bits(&x().softplus(), &[(NAN, NAN), (INF, INF), (-INF, 0.0), (25.0, 25.0)]);
    check_bits(&x().gelu(), &[(NAN, NAN), (INF, INF), (0.0, 0.0)]);
    check_bits(&x().leaky_relu(0.5), &[(NAN, NAN), (-INF, -INF), (-3.0, -1.5)]);
}

#[test]
fn simplification_changes_no_bit() {
    // Removed, since they change nothing.
    for same in
        [x() * 1.0, 1.0 * x(), x() / 1.0, x() - 0.0, x() + -0.0, -(-x()), x().powi(1), x().max(x()), x().eq(x()).select(x(), x())]
    {
        assert_eq!(same, x());
    }
    // Kept, since they change the sign of a zero, or turn an infinity into NaN.
    for kept in [x() + 0.0, 0.0 - x(), x() * 0.0, x() - x(), x() / x()] {
        assert_eq!(kept.n_ops(), 1, "{kept}");
    }
    check_bits(&(x() + 0.0), &[(-0.0, 0.0)]);
    check_bits(&(x() * 0.0), &[(INF, NAN), (-1.0, -0.0)]);
    assert_eq!((x() / 4.0).to_string(), "x0 * 0.25", "exact");
    assert_eq!((x() / 3.0).to_string(), "x0 / 3", "inexact");
    assert_eq!((x() / 1e-45).to_string(), format!("x0 / {}", 1e-45_f32), "its reciprocal overflows");
    assert_eq!((x() + -Expr::input(1)).to_string(), "x0 - x1");
    assert_eq!((Expr::constant(2.0) * 3.0 + x()).to_string(), "6 + x0");
    let square = (x() + 1.0) * (1.0 + x());
    assert_eq!(square.n_ops(), 2, "the sum is there once: {square}");
    assert_eq!(square.to_string(), "t0 * t0 where t0 = x0 + 1");
    assert_ne!(Expr::constant(0.0), Expr::constant(-0.0), "by bits");
    assert_eq!(Expr::constant(NAN), Expr::constant(NAN), "by bits");
}

#[test]
fn formulas_have_the_brackets_they_need() {
    let y = Expr::input(1);
    for (expr, expected) in [
        (x() - (&y - 1.0), "x0 - (x1 - 1)"),
        (x() - &y - 1.0, "x0 - x1 - 1"),
        ((x() + &y) * 2.0, "(x0 + x1) * 2"),
        (-(x() + &y), "-(x0 + x1)"),
        (x() / (&y * 3.0), "x0 / (x1 * 3)"),
        (x().lt(&y + 1.0).select(0.5, x().max(&y)), "select(x0 < x1 + 1, 0.5, max(x0, x1))"),
    ] {
        assert_eq!(expr.to_string(), expected);
        assert_eq!(format!("{expr:?}"), format!("Expr({expected})"));
    }
}

#[track_caller]
fn check_slope(expr: &Expr, cases: &[(f32, f32)]) {
    let slope = expr.derivative(0);
    for &(x, expected) in cases {
        let found = slope.evaluate(&[x]);
        let holds = found == expected || (found - expected).abs() <= 1e-6 || (found.is_nan() && expected.is_nan());
        assert!(holds, "the slope of {expr} at {x} is {found}, expected {expected}: {slope}");
    }
}

#[test]
fn slopes_at_kinks_and_ties_are_those_of_pytorch() {
    check_slope(&x().relu(), &[(0.0, 0.0), (-0.0, 0.0), (1e-30, 1.0), (-1.0, 0.0)]);
    check_slope(&x().abs(), &[(0.0, 0.0), (-2.0, -1.0), (2.0, 1.0)]);
    check_slope(&x().sign(), &[(0.0, 0.0), (3.0, 0.0)]);
    check_slope(&x().floor(), &[(1.0, 0.0)]);
    check_slope(&x().is_finite(), &[(1.0, 0.0), (INF, 0.0)]);
    check_slope(&x().max(1.0), &[(1.0, 0.5), (2.0, 1.0), (0.0, 0.0), (NAN, 1.0)]);
    check_slope(&x().min(1.0), &[(1.0, 0.5), (2.0, 0.0), (0.0, 1.0)]);
    check_slope(&Expr::constant(1.0).max(x()), &[(1.0, 0.5), (2.0, 1.0), (0.0, 0.0)]);
    check_slope(&x().clamp(-1.0, 1.0), &[(-1.0, 0.0), (1.0, 0.0), (0.5, 1.0), (1.5, 0.0), (-1.5, 0.0)]);
    check_slope(&x().leaky_relu(0.1), &[(0.0, 0.1), (1.0, 1.0), (-1.0, 0.1)]);
    check_slope(&x().elu(2.0), &[(0.0, 2.0), (1.0, 1.0), (NAN, 1.0), (-INF, 0.0)]);
    check_slope(&x().sqrt(), &[(0.0, INF), (4.0, 0.25)]);
    check_slope(&x().powf(0.0), &[(0.0, 0.0)]);
    check_slope(&x().powf(1.5), &[(0.0, 0.0), (4.0, 3.0)]);
    check_slope(&Expr::constant(0.0).powf(x()), &[(1.0, 0.0), (0.0, 0.0)]);
    check_slope(&x().softplus(), &[(0.0, 0.5), (30.0, 1.0), (-200.0, 0.0), (100.0, 1.0)]);
    check_slope(&(x().lt(0.0) * x()), &[(0.0, 0.0), (-1.0, 1.0)]);
    check_slope(&x().gt(0.0).select(x().log(), 0.0), &[(0.0, 0.0), (-1.0, 0.0), (2.0, 0.5)]);
    check_slope(&Expr::constant(3.0), &[(1.0, 0.0)]);
    assert_eq!((Expr::input(1) * 2.0).derivative(0), Expr::constant(0.0));
}

/// PyTorch's gradients.
#[test]
fn slopes_of_negative_powers_are_finite_where_they_fit() {
    let poles = [(0.0, -INF), (INF, 0.0), (1e20, 0.0), (1e-45, -INF), (NAN, NAN)];
    let cases: [(i32, [(f32, f32); 3]); 4] = [
        (-1, [(1e-3, -999_999.9), (1e-7, -1e14), (-2.0, -0.25)]),
        (-2, [(1e-3, -2e9), (1e-10, -2e30), (-2.0, 0.25)]),
        (-3, [(1e-3, -3e12), (1e-7, -3e28), (-2.0, -0.1875)]),
        (-8, [(1e-3, -8e27), (0.5, -4096.0), (-2.0, 0.015_625)]),
    ];
    for (n, values) in cases {
        let slope = x().powi(n).derivative(0);
        for (x, expected) in values.into_iter().chain(poles).chain([(-0.0, if n % 2 == 0 { INF } else { -INF })]) {
            let found = slope.evaluate(&[x]);
            let holds = found == expected || (found - expected).abs() <= 1e-6 * expected.abs() || (found.is_nan() && x.is_nan());
            // The square of the reciprocal is a subnormal number.
            assert!(holds || (n, x) == (-1, 1e20), "the slope of x^{n} at {x:e} is {found:e}, expected {expected:e}");
        }
    }
}

#[test]
fn slopes_equal_finite_differences() {
    let y = Expr::input(1);
    let exprs = [
        x().exp() * &y,
        x().expm1() - x().log1p(),
        (x() * x() + 1.0).log() / (&y * &y + 0.5),
        (x() * x() + 0.5).sqrt() + (x() * x() + 0.5).rsqrt(),
        (x() * 0.3 + 2.0).recip() * x().tanh(),
        x().sigmoid() * x().erf(),
        x().sin() - x().cos() * &y,
        x().powi(5) * 0.1 + (x().abs() + 0.5).powf(&y),
        x().gelu() + x().gelu_tanh() + x().silu() + x().softplus() + x().celu(0.7) + x().elu(1.3),
        (x() * x()).max(&y - 3.0) * (x() * 2.0).max(&y + 3.0) - (x() * x()).min(&y + 3.0) * (x() * 2.0).min(&y - 3.0),
    ];
    let mut random = Random::new(3);
    for expr in &exprs {
        let slopes = [expr.derivative(0), expr.derivative(1)];
        for _ in 0..50 {
            let at = [0.9 * random.float() + 0.05, 0.9 * random.float()];
            for (input, slope) in slopes.iter().enumerate() {
                let step = 1e-2;
                let [above, below] = [step, -step].map(|step| {
                    let mut moved = at;
                    moved[input] += step;
                    f64::from(expr.evaluate(&moved))
                });
                let difference = (above - below) / (2.0 * f64::from(step));
                let found = f64::from(slope.evaluate(&at));
                // The error of the difference is the square of the step, plus the effect of a kink at 0 between its ends.
                assert!(
                    (found - difference).abs() < 5e-3 + 5e-3 * difference.abs() || at[0].abs() < 2e-2,
                    "{expr} by x{input} at {at:?}: {found}, {difference}"
                );
            }
        }
    }
}

#[test]
fn slopes_from_the_output_equal_those_from_the_input() {
    let mut random = Random::new(5);
    let activations = [
        Activation::identity(),
        Activation::relu(),
        Activation::leaky_relu(0.2),
        Activation::celu(0.7),
        Activation::tanh(),
        Activation::sigmoid(),
    ];
    for activation in activations {
        let from_output = activation.from_output.clone().expect("it has one");
        for x in random.wide_floats(200).into_iter().chain([0.0, -0.0]) {
            let slope = activation.slope().evaluate(&[x]);
            let found = from_output.evaluate(&[activation.forward.evaluate(&[x])]);
            assert!((slope - found).abs() < 1e-6, "{activation:?} at {x}: {slope} from the input, {found} from the output");
        }
    }
    for activation in [
        Activation::elu(1.5),
        Activation::selu(),
        Activation::gelu(),
        Activation::silu(),
        Activation::softplus(),
        Activation::leaky_relu(-0.1),
    ] {
        assert_eq!(activation.from_output, None, "{activation:?}");
    }
}

#[test]
fn vectors_of_any_length_have_the_bits_of_single_elements() {
    let y = Expr::input(1);
    let chain =
        ((x() * 2.0 + &y).tanh().max(x()) - y.lt(x()).select(x().exp(), &y)) / (x().abs() + 0.1) + x().lt(0.3) + x().powf(&y);
    let mut random = Random::new(11);
    for n in [1, 2, 15, 16, 17, 255, 256, 257, 1024, 3000] {
        let (a, b) = (random.wide_floats(n), random.wide_floats(n));
        let mut found = vec![0.0; n];
        Evaluator::new(std::slice::from_ref(&chain)).run(&[Operand::Slice(&a), Operand::Slice(&b)], &mut [&mut found]);
        let mut same = vec![0.0; n];
        Evaluator::new(std::slice::from_ref(&chain)).run(&[Operand::Slice(&a), Operand::Splat(b[0])], &mut [&mut same]);
        for i in 0..n {
            assert_eq!(found[i].to_bits(), chain.evaluate(&[a[i], b[i]]).to_bits(), "element {i} of {n}");
            assert_eq!(same[i].to_bits(), chain.evaluate(&[a[i], b[0]]).to_bits(), "element {i} of {n}, one value for all");
        }
    }
}

#[test]
fn fusing_changes_no_bit() {
    let mut random = Random::new(13);
    let a = random.wide_floats(2000);
    let steps = [x().gelu(), x() * 3.0 + 0.1, x().sigmoid(), x().log(), x() - 0.0, x().max(-0.5)];
    let mut values = a.clone();
    let mut fused = x();
    for step in &steps {
        values = run(step, &values);
        fused = step.substitute(&[fused]);
    }
    let found = run(&fused, &a);
    assert!(found.iter().zip(&values).all(|(a, b)| a.to_bits() == b.to_bits()), "{fused}");
}

/// The derivative of GELU is evaluated as a single operation. When GELU is evaluated with it, the two share `Φ(x)`, and the
/// derivative is computed step by step.
#[test]
fn the_derivative_of_gelu_has_the_bits_of_its_formula() {
    let slope = x().gelu().derivative(0);
    let mut values = floats_between(-20.0, 20.0);
    values.extend([f32::INFINITY, f32::NEG_INFINITY, NAN, -0.0, f32::MAX]);
    let mut outputs = vec![vec![NAN; values.len()]; 2];
    let mut slices: Vec<&mut [f32]> = outputs.iter_mut().map(|output| &mut output[..]).collect();
    Evaluator::new(&[slope.clone(), x().gelu()]).run(&[Operand::Slice(&values)], &mut slices);
    for ((x, found), expected) in values.iter().zip(run(&slope, &values)).zip(&outputs[0]) {
        assert!(
            found.to_bits() == expected.to_bits() || (found.is_nan() && expected.is_nan()),
            "{found} at {x}, expected {expected}"
        );
    }
}

#[test]
fn several_outputs_share_what_they_have_in_common() {
    let e = x().exp();
    let exprs = [&e + 1.0, e.clone(), e.clone(), x(), Expr::constant(2.0), x().lt(1.0), x().lt(1.0).select(&e, 0.0), x().lt(1.0)];
    let a: Vec<f32> = (0..40).map(|i| i as f32 * 0.1 - 2.0).collect();
    let mut outputs = vec![vec![NAN; a.len()]; exprs.len()];
    let mut slices: Vec<&mut [f32]> = outputs.iter_mut().map(|output| &mut output[..]).collect();
    Evaluator::new(&exprs).run(&[Operand::Slice(&a)], &mut slices);
    for (expr, output) in exprs.iter().zip(&outputs) {
        assert_eq!(*output, run(expr, &a), "{expr}");
    }
}

#[test]
fn an_output_may_take_the_place_of_its_input() {
    let expr = (x() + Expr::input(1)).tanh() * x();
    let mut random = Random::new(17);
    let (before, bias) = (random.wide_floats(2500), random.wide_floats(2500));
    let mut y = before.clone();
    Evaluator::new(std::slice::from_ref(&expr)).run_in_place(&mut y, &[Operand::Slice(&bias)]);
    let mut expected = vec![0.0; 2500];
    Evaluator::new(&[expr]).run(&[Operand::Slice(&before), Operand::Slice(&bias)], &mut [&mut expected]);
    assert_eq!(y, expected);
}

#[test]
fn inputs_are_counted() {
    let expr = Expr::input(3) + 1.0;
    assert_eq!((expr.n_inputs(), expr.reads(3), expr.reads(0)), (4, true, false));
    assert_eq!(Expr::constant(1.0).n_inputs(), 0);
}

/// The loops of the CPU evaluation differ by which operands are a single value.
#[test]
fn any_operands_may_be_one_value() {
    const N: usize = 100;
    let [a, b, c, d] = [0, 1, 2, 3].map(Expr::input);
    let choices = [a.lt(&b), a.le(&b), a.eq(&b)].map(|condition| condition.select(&c, &d));
    let mut random = Random::new(12);
    // Small whole numbers, so that many are equal.
    let values = [(); 4].map(|()| random.wide_floats(N).into_iter().map(|x| (x % 3.0).round()).collect::<Vec<_>>());
    for expr in [a.exp(), a.floor(), &a + &b, &a / &b, a.max(&b)].into_iter().chain(choices) {
        for pattern in 0..1 << expr.n_inputs() {
            let is_one_value = |k: usize| pattern >> k & 1 == 1;
            let operand = |k: usize| if is_one_value(k) { Operand::Splat(values[k][0]) } else { Operand::Slice(&values[k]) };
            let operands: Vec<_> = (0..expr.n_inputs()).map(operand).collect();
            let mut y = [f32::NAN; N];
            Evaluator::new(std::slice::from_ref(&expr)).run(&operands, &mut [&mut y]);
            for (i, y) in y.into_iter().enumerate() {
                let x: Vec<f32> = (0..expr.n_inputs()).map(|k| values[k][if is_one_value(k) { 0 } else { i }]).collect();
                assert_eq!(y.to_bits(), expr.evaluate(&x).to_bits(), "{expr} of {x:?}, single values {pattern:b}");
            }
        }
    }
}
