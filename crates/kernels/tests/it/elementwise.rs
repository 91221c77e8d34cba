use brisk_kernels::ElementwiseStep::{self, Activate, ActivationGrad, Add, Multiply, OutputGrad};
use brisk_kernels::*;

use crate::random::Random;
use crate::run::*;

fn chain(n: usize, steps: &[ElementwiseStep]) -> Elementwise {
    Elementwise { n, steps: steps.to_vec() }
}

const ACTIVATIONS: [Activation; 8] = [
    Activation::Identity,
    Activation::Relu,
    Activation::Celu { alpha: 0.7 },
    Activation::Gelu,
    Activation::GeluTanh,
    Activation::Silu,
    Activation::Sigmoid,
    Activation::Tanh,
];

#[test]
fn twin_equals_hand_worked_numbers() {
    let [x, a, b] = [[1.0, 2.0, -3.0], [0.5, -2.5, 1.0], [2.0, 3.0, 4.0]].map(|values: [f32; 3]| words(&values));
    let y = twin_floats(&chain(3, &[Add, Activate(Activation::Relu), Multiply]), &[x.clone(), a.clone(), b.clone()]);
    assert_eq!(y, [3.0, 0.0, 0.0], "relu(x + a) b");
    let y = twin_floats(&chain(3, &[Multiply, OutputGrad(Activation::Relu)]), &[x, b, a]);
    assert_eq!(y, [2.0, 0.0, -12.0], "x b where a is above zero");
}

/// The kernel that does one step alone.
fn alone(step: ElementwiseStep, n: usize) -> Box<dyn Kernel> {
    match step {
        Activate(activation) => Box::new(brisk_kernels::Activate { n, activation }),
        Add => Box::new(brisk_kernels::Add { n }),
        Multiply => Box::new(brisk_kernels::Multiply { n }),
        ActivationGrad(activation) => Box::new(brisk_kernels::ActivationGrad { n, activation }),
        OutputGrad(activation) => Box::new(brisk_kernels::OutputGrad { n, activation }),
        other => unreachable!("{other:?} is new, add it here"),
    }
}

/// On the CPU to the bit, as one kernel after the other; on a GPU as its twin.
#[track_caller]
fn check(n: usize, steps: &[ElementwiseStep]) {
    let mut random = Random::new(n as u64);
    let n_operands = steps.iter().filter(|step| step.takes_operand()).count();
    let inputs: Vec<_> = (0..=n_operands).map(|_| words(&random.floats(n))).collect();
    let fused = chain(n, steps);
    let found = twin_floats(&fused, &inputs);
    let mut operands = inputs[1..].iter();
    let mut v = inputs[0].clone();
    for &step in steps {
        let mut args = vec![v];
        args.extend(step.takes_operand().then(|| operands.next().expect("one a step").clone()));
        v = words(&twin_floats(&*alone(step, n), &args));
    }
    assert_eq!(words(&found), v, "{steps:?} of {n}");
    gpu_equals_twin(&fused, &inputs);
    if n_operands > 0 {
        let in_place = ElementwiseInPlace { chain: fused };
        let inputs = [&inputs[1..], &inputs[..1]].concat();
        assert_eq!(words(&twin_floats(&in_place, &inputs)), v, "{steps:?} of {n}, in place");
        gpu_equals_twin(&in_place, &inputs);
    }
}

#[test]
fn a_chain_is_its_steps_one_after_the_other() {
    for activation in ACTIVATIONS {
        check(65, &[Activate(activation)]);
        check(65, &[ActivationGrad(activation)]);
        check(65, &[Add, Activate(activation), Multiply]);
        if activation.has_grad_from_output() {
            check(65, &[Add, OutputGrad(activation)]);
        }
    }
    for n in [1, 63, 64, 65, 2047, 2049, 70_003] {
        check(n, &[Add, Activate(Activation::Silu), Multiply, Add]);
    }
    check(100, &[Multiply, Multiply, Add]);
    check(100, &[Activate(Activation::Tanh); 4]);
}

#[test]
fn nan_passes_through_each_activation() {
    let x = words(&[f32::NAN, -f32::NAN, 1.0]);
    for activation in ACTIVATIONS {
        gpu_equals_twin(&chain(3, &[Activate(activation), Add]), &[x.clone(), words(&[0.0; 3])]);
        gpu_equals_twin(&chain(3, &[Add, ActivationGrad(activation)]), &[words(&[1.0; 3]), words(&[0.0; 3]), x.clone()]);
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    let mut random = Random::new(2);
    let inputs = [0, 1].map(|_| words(&random.floats(50_001)));
    same_bits_on_any_pool(&chain(50_001, &[Add, Activate(Activation::Gelu)]), &inputs);
}

#[test]
fn each_elementwise_kernel_says_which_step_it_is() {
    for step in [Add, Multiply, Activate(Activation::Gelu), ActivationGrad(Activation::Silu), OutputGrad(Activation::Relu)] {
        assert_eq!(alone(step, 9).elementwise(), Some(chain(9, &[step])), "{step:?}");
    }
    assert_eq!(ColumnSum { n_rows: 3, n_cols: 3 }.elementwise(), None, "sums are not");
}

#[test]
fn what_is_too_long_is_refused() {
    for steps in [&[][..], &[Activate(Activation::Relu); 5], &[Add; 4]] {
        let error = chain(7, steps).check().expect_err("too long, or nothing");
        assert!(error.to_string().contains("1 to 4 steps"), "{error}");
    }
    let error = chain(7, &[Add, OutputGrad(Activation::Gelu)]).check().expect_err("it needs its input");
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
}
