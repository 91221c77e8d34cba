use brisk_kernels::expr::Expr;
use brisk_kernels::{Activation, Epilogue, Kernel as _, Map, Matmul, Transpose};

use crate::close::{DEFAULT, GRADIENT, Tolerance, assert_close};
use crate::random::Random;
use crate::run::*;

fn all() -> [Activation; 11] {
    [
        Activation::elu(0.7),
        Activation::relu(),
        Activation::celu(1.0),
        Activation::celu(0.3),
        Activation::selu(),
        Activation::gelu(),
        Activation::gelu_tanh(),
        Activation::silu(),
        Activation::mish(),
        Activation::sigmoid(),
        Activation::tanh(),
    ]
}

#[track_caller]
fn check(activation: Activation, x: &[f32], expected: &[f32]) {
    let found = twin_floats(&Map::flat(x.len(), activation.forward.clone()), &[words(x)]);
    assert_close(&format!("{activation:?}"), &found, expected, DEFAULT);
}

#[test]
fn twins_equal_hand_worked_numbers() {
    check(Activation::identity(), &[-2.0, 0.0, 3.0], &[-2.0, 0.0, 3.0]);
    check(Activation::relu(), &[-2.0, 0.0, 3.0], &[0.0, 0.0, 3.0]);
    // exp(-1) - 1, and 0.5 (exp(-4) - 1).
    check(Activation::celu(1.0), &[-1.0, 0.0, 3.0], &[-0.632_120_56, 0.0, 3.0]);
    check(Activation::celu(0.5), &[-2.0, 1.0], &[-0.490_842_2, 1.0]);
    // 1.0507 · 1.6733 (exp(-1) - 1).
    check(Activation::selu(), &[-1.0, 0.0, 2.0], &[-1.111_330_7, 0.0, 2.101_402]);
    check(Activation::sigmoid(), &[0.0, 1.0, -1.0], &[0.5, 0.731_058_6, 0.268_941_43]);
    check(Activation::tanh(), &[0.0, 1.0, -0.5], &[0.0, 0.761_594_2, -0.462_117_16]);
    check(Activation::silu(), &[0.0, 1.0, -1.0], &[0.0, 0.731_058_6, -0.268_941_43]);
    // tanh(log(1 + e)), and -tanh(log(1 + 1/e)).
    check(Activation::mish(), &[0.0, 1.0, -1.0], &[0.0, 0.865_098_4, -0.303_401_47]);
    // 1 Φ(1), -1 Φ(-1); the tanh approximation differs from the fourth digit on.
    check(Activation::gelu(), &[0.0, 1.0, -1.0], &[0.0, 0.841_344_8, -0.158_655_26]);
    check(Activation::gelu_tanh(), &[0.0, 1.0, -1.0], &[0.0, 0.841_192, -0.158_808_01]);
}

#[test]
fn nan_passes_through() {
    // A quiet and a signalling NaN, of both signs.
    let x = words(&[f32::NAN, -f32::NAN, f32::from_bits(0x7F80_0001), f32::from_bits(0xFF80_0001), 1.0]);
    for activation in all() {
        let kernel = Map::flat(5, activation.forward.clone());
        let y = twin_floats(&kernel, std::slice::from_ref(&x));
        assert!(y[..4].iter().all(|y| y.is_nan()), "{activation:?}(NaN) = {y:?}");
        assert!(y[4].is_finite(), "{activation:?}(1) = {}", y[4]);
        gpu_equals_twin(&kernel, std::slice::from_ref(&x));
        gpu_equals_twin(&Map::flat(5, activation.grad()), &[words(&[1.0; 5]), x.clone()]);
    }
}

#[test]
fn large_arguments_stay_finite() {
    for activation in all() {
        let x = [-1e4, -200.0, -90.0, 90.0, 200.0, 1e4];
        let y = twin_floats(&Map::flat(x.len(), activation.forward.clone()), &[words(&x)]);
        let grad_x = twin_floats(&Map::flat(x.len(), activation.grad()), &[words(&[1.0; 6]), words(&x)]);
        assert!(y.iter().chain(&grad_x).all(|y| y.is_finite()), "{activation:?}: {y:?}, {grad_x:?}");
    }
}

#[test]
fn slopes_far_below_0_keep_their_digits() {
    let x = [-1.0_f32, -10.0, -15.0, -20.0, -80.0];
    for (activation, slope_at_0) in [(Activation::elu(1.0), 1.0), (Activation::selu(), 1.758_099_3)] {
        let slopes: Vec<f32> = x.map(|x| (f64::from(x).exp() * slope_at_0) as f32).into();
        let kernel = Map::flat(x.len(), activation.grad());
        let found = twin_floats(&kernel, &[words(&[1.0; 5]), words(&x)]);
        let holds = found.iter().zip(&slopes).all(|(found, expected)| (found - expected).abs() <= 1e-6 * expected);
        assert!(holds, "{activation:?}: {found:?}, expected {slopes:?}");
        gpu_equals_twin_within(&kernel, &[words(&[1.0; 5]), words(&x)], Tolerance { absolute: 0.0, relative: 2e-5 });
        assert_eq!(activation.grad_from_output(), None, "the output has no such digits");
    }
}

#[test]
fn gradients_equal_finite_differences() {
    let mut random = Random::new(1);
    let n = 257;
    // Away from the kinks at 0.
    let x: Vec<f32> = random.floats(n).iter().map(|x| x * 3.0 + 0.05 * x.signum()).collect();
    let (grad_y, direction) = (random.floats(n), random.floats(n));
    for activation in all() {
        let loss = |x: &[f32]| dot(&grad_y, &twin_floats(&Map::flat(n, activation.forward.clone()), &[words(x)]));
        let expected = slope_along(&x, &direction, 0.01, loss);
        let grad_x = twin_floats(&Map::flat(n, activation.grad()), &[words(&grad_y), words(&x)]);
        assert!(GRADIENT.holds(dot(&grad_x, &direction), expected), "{activation:?}: {} != {expected}", dot(&grad_x, &direction));
        if let Some(grad) = activation.grad_from_output() {
            let y = twin_floats(&Map::flat(n, activation.forward.clone()), &[words(&x)]);
            let from_output = twin_floats(&Map::flat(n, grad), &[words(&grad_y), words(&y)]);
            // 1 - y² loses digits where y is close to 1.
            assert_close(&format!("{activation:?}"), &from_output, &grad_x, Tolerance { absolute: 5e-6, relative: 1e-4 });
        }
    }
}

#[test]
fn gpu_equals_twins() {
    let mut random = Random::new(2);
    // `exp` on a GPU may be off by 3 + 2 |x| ulp, and a CELU with a small alpha divides x by it.
    let loose = Tolerance { absolute: 4e-6, relative: 2e-5 };
    for activation in all() {
        for n in [1, 63, 64, 65, 1001] {
            let (x, grad_y) = (words(&random.wide_floats(n)), words(&random.floats(n)));
            gpu_equals_twin_within(&Map::flat(n, activation.forward.clone()), std::slice::from_ref(&x), loose);
            gpu_equals_twin_within(&Map::flat(n, activation.grad()), &[grad_y.clone(), x.clone()], loose);
            if let Some(grad) = activation.grad_from_output() {
                let y = run_twin(&Map::flat(n, activation.forward.clone()), &[x]).remove(0);
                gpu_equals_twin_within(&Map::flat(n, grad), &[grad_y, y], loose);
            }
        }
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    let mut random = Random::new(3);
    let n = 40_001;
    let x = words(&random.wide_floats(n));
    same_bits_on_any_pool(&Map::unary(n, |x| x.gelu()), std::slice::from_ref(&x));
    same_bits_on_any_pool(&Map::flat(n, Activation::celu(0.3).grad()), &[x.clone(), x]);
}

#[test]
fn epilogues_have_the_bits_of_maps() {
    let mut random = Random::new(4);
    let n = 700;
    // A product with a 1 x 1 identity equals its operand.
    let (x, y, one) = (random.wide_floats(n), random.floats(n), words(&[1.0]));
    for activation in all() {
        let product = |epilogue| Matmul { n_batch: 1, m: n, n: 1, k: 1, transpose: Transpose::None, epilogue };
        let found = twin_floats(&product(Epilogue::activation(&activation)), &[words(&x), one.clone()]);
        let expected = twin_floats(&Map::flat(n, activation.forward.clone()), &[words(&x)]);
        assert_eq!(words(&found), words(&expected), "{activation:?}");
        let bias = words(&[0.5]);
        let found = twin_floats(&product(Epilogue::bias(&activation)), &[words(&x), one.clone(), bias.clone()]);
        let biased = Map::new(activation.forward.substitute(&[Expr::input(0) + Expr::input(1)]), &[&[n], &[1]]);
        let expected = twin_floats(&biased.expect("they broadcast"), &[words(&x), bias]);
        assert_eq!(words(&found), words(&expected), "{activation:?}, biased");
        for grad in [Some(activation.grad()), activation.grad_from_output()].into_iter().flatten() {
            let found = twin_floats(&product(Epilogue::with_matrix(grad.clone())), &[words(&x), one.clone(), words(&y)]);
            let expected = twin_floats(&Map::flat(n, grad), &[words(&x), words(&y)]);
            assert_eq!(words(&found), words(&expected), "{activation:?}, backward");
        }
    }
}

#[test]
fn epilogues_refuse_inputs_that_do_not_match_the_expression() {
    let refused = |epilogue| {
        Matmul { n_batch: 1, m: 1, n: 1, k: 1, transpose: Transpose::None, epilogue }
            .check()
            .expect_err("inputs differ")
            .to_string()
    };
    let expected = "an expression of the sum, x0, and of all further inputs";
    let sum = Expr::input(0) + Expr::input(1);
    assert_eq!(
        refused(Epilogue::map(sum)),
        format!("matmul: the epilogue `x0 + x1` (number of inputs: 1) is not supported, expected {expected}")
    );
    let unread = refused(Epilogue::with_row(Expr::input(0).exp()));
    assert_eq!(unread, format!("matmul: the epilogue `exp(x0)` (number of inputs: 2) is not supported, expected {expected}"));
}
