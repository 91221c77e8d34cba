use brisk_kernels::{Activate, Activation, ActivationGrad, OutputGrad};

use crate::close::{DEFAULT, GRADIENT, Tolerance, assert_close};
use crate::random::Random;
use crate::run::*;

const ALL: [Activation; 9] = [
    Activation::Identity,
    Activation::Relu,
    Activation::Celu { alpha: 1.0 },
    Activation::Celu { alpha: 0.3 },
    Activation::Gelu,
    Activation::GeluTanh,
    Activation::Silu,
    Activation::Sigmoid,
    Activation::Tanh,
];

#[track_caller]
fn check(activation: Activation, x: &[f32], expected: &[f32]) {
    let found = twin_floats(&Activate { n: x.len(), activation }, &[words(x)]);
    assert_close(&format!("{activation:?}"), &found, expected, DEFAULT);
}

#[test]
fn twins_equal_hand_worked_numbers() {
    check(Activation::Identity, &[-2.0, 0.0, 3.0], &[-2.0, 0.0, 3.0]);
    check(Activation::Relu, &[-2.0, 0.0, 3.0], &[0.0, 0.0, 3.0]);
    // exp(-1) - 1, and 0.5 (exp(-4) - 1).
    check(Activation::Celu { alpha: 1.0 }, &[-1.0, 0.0, 3.0], &[-0.632_120_56, 0.0, 3.0]);
    check(Activation::Celu { alpha: 0.5 }, &[-2.0, 1.0], &[-0.490_842_2, 1.0]);
    check(Activation::Sigmoid, &[0.0, 1.0, -1.0], &[0.5, 0.731_058_6, 0.268_941_43]);
    check(Activation::Tanh, &[0.0, 1.0, -0.5], &[0.0, 0.761_594_2, -0.462_117_16]);
    check(Activation::Silu, &[0.0, 1.0, -1.0], &[0.0, 0.731_058_6, -0.268_941_43]);
    // 1 Φ(1), -1 Φ(-1); the tanh form differs from the fourth digit on.
    check(Activation::Gelu, &[0.0, 1.0, -1.0], &[0.0, 0.841_344_8, -0.158_655_26]);
    check(Activation::GeluTanh, &[0.0, 1.0, -1.0], &[0.0, 0.841_192, -0.158_808_01]);
}

#[test]
fn nan_passes_through() {
    // A quiet and a signalling one, of both signs.
    let x = words(&[f32::NAN, -f32::NAN, f32::from_bits(0x7F80_0001), f32::from_bits(0xFF80_0001), 1.0]);
    for activation in ALL {
        let kernel = Activate { n: 5, activation };
        let y = twin_floats(&kernel, std::slice::from_ref(&x));
        assert!(y[..4].iter().all(|y| y.is_nan()), "{activation:?}(NaN) = {y:?}");
        assert!(y[4].is_finite(), "{activation:?}(1) = {}", y[4]);
        gpu_equals_twin(&kernel, std::slice::from_ref(&x));
        gpu_equals_twin(&ActivationGrad { n: 5, activation }, &[words(&[1.0; 5]), x.clone()]);
    }
}

#[test]
fn large_arguments_stay_finite() {
    for activation in ALL {
        let x = [-1e4, -200.0, -90.0, 90.0, 200.0, 1e4];
        let y = twin_floats(&Activate { n: x.len(), activation }, &[words(&x)]);
        let grad_x = twin_floats(&ActivationGrad { n: x.len(), activation }, &[words(&[1.0; 6]), words(&x)]);
        assert!(y.iter().chain(&grad_x).all(|y| y.is_finite()), "{activation:?}: {y:?}, {grad_x:?}");
    }
}

#[test]
fn gradients_equal_finite_differences() {
    let mut random = Random::new(1);
    let n = 257;
    // Away from the kinks at 0.
    let x: Vec<f32> = random.floats(n).iter().map(|x| x * 3.0 + 0.05 * x.signum()).collect();
    let (grad_y, direction) = (random.floats(n), random.floats(n));
    for activation in ALL {
        let loss = |x: &[f32]| dot(&grad_y, &twin_floats(&Activate { n, activation }, &[words(x)]));
        let expected = slope_along(&x, &direction, 0.01, loss);
        let grad_x = twin_floats(&ActivationGrad { n, activation }, &[words(&grad_y), words(&x)]);
        assert!(GRADIENT.holds(dot(&grad_x, &direction), expected), "{activation:?}: {} != {expected}", dot(&grad_x, &direction));
        if activation.has_grad_from_output() {
            let y = twin_floats(&Activate { n, activation }, &[words(&x)]);
            let from_output = twin_floats(&OutputGrad { n, activation }, &[words(&grad_y), words(&y)]);
            // 1 - y² loses digits where y is close to 1.
            assert_close(&format!("{activation:?}"), &from_output, &grad_x, Tolerance { absolute: 5e-6, relative: 1e-4 });
        }
    }
}

#[test]
fn gpu_equals_twins() {
    let mut random = Random::new(2);
    // `exp` on a GPU is allowed an error of 3 + 2 |x| ulp, which a CELU of small alpha divides by it.
    let loose = Tolerance { absolute: 4e-6, relative: 2e-5 };
    for activation in ALL {
        for n in [1, 63, 64, 65, 1001] {
            let (x, grad_y) = (words(&random.wide_floats(n)), words(&random.floats(n)));
            gpu_equals_twin_within(&Activate { n, activation }, std::slice::from_ref(&x), loose);
            gpu_equals_twin_within(&ActivationGrad { n, activation }, &[grad_y.clone(), x.clone()], loose);
            if activation.has_grad_from_output() {
                let y = run_twin(&Activate { n, activation }, &[x]).remove(0);
                gpu_equals_twin_within(&OutputGrad { n, activation }, &[grad_y, y], loose);
            }
        }
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    let mut random = Random::new(3);
    let n = 40_001;
    let x = words(&random.wide_floats(n));
    same_bits_on_any_pool(&Activate { n, activation: Activation::Gelu }, std::slice::from_ref(&x));
    same_bits_on_any_pool(&ActivationGrad { n, activation: Activation::Celu { alpha: 0.3 } }, &[x.clone(), x]);
}

#[test]
fn output_grad_refuses_what_the_output_does_not_tell() {
    let kernel = OutputGrad { n: 1, activation: Activation::Gelu };
    let error = brisk_kernels::Kernel::check(&kernel).expect_err("gelu is not monotonic");
    assert_eq!(
        error.to_string(),
        "output_grad: Gelu is not supported, expected an activation whose derivative follows from its output; apply this one as `Activate`"
    );
}
