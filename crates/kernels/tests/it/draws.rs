//! Random numbers as an input of a map, and dropout by them.

use brisk_kernels::expr::{Activation, Expr};
use brisk_kernels::{
    Access, Conv2d, Conv2dGradInput, ConvShape, DType, Draws, Epilogue, Images, Kernel, Map, MapInput, MapOutput, Matmul,
    Transpose, Window,
};

use crate::close::Tolerance;
use crate::random::Random;
use crate::run::*;

const DRAWS: Draws = Draws { seed: 0x1234_5678_9ABC_DEF0, stream: 3, part: 0, first: 0 };

fn state(step: u32) -> Words {
    vec![0, step, 0, 0]
}

/// The numbers of a step.
fn uniform(n: usize, draws: Draws, step: u32) -> Vec<f32> {
    let outputs = vec![MapOutput { expr: Expr::input(0), dtype: DType::F32 }];
    twin_floats(&Map { shape: vec![n], inputs: vec![MapInput::uniform(&[n], draws)], outputs }, &[state(step)])
}

/// What must hold of any correlation of `n` pairs: below five standard deviations.
#[track_caller]
fn check_apart(a: &[f32], b: &[f32]) {
    let n = a.len().min(b.len());
    let covariance: f64 = a.iter().zip(b).map(|(a, b)| (f64::from(*a) - 0.5) * (f64::from(*b) - 0.5)).sum::<f64>() / n as f64;
    let correlation = covariance * 12.0;
    assert!(correlation.abs() < 5.0 / (n as f64).sqrt(), "the correlation of {n} pairs is {correlation}");
}

#[test]
fn the_numbers_are_uniform() {
    let n = 1 << 18;
    for step in [0, 1, 77, u32::MAX] {
        let u = uniform(n, DRAWS, step);
        assert!(u.iter().all(|u| (0.0..1.0).contains(u)));
        let mean = u.iter().map(|&u| f64::from(u)).sum::<f64>() / n as f64;
        let variance = u.iter().map(|&u| (f64::from(u) - 0.5).powi(2)).sum::<f64>() / n as f64;
        assert!((mean - 0.5).abs() < 5.0 * (1.0 / 12.0_f64).sqrt() / (n as f64).sqrt(), "step {step}: the mean is {mean}");
        assert!((variance * 12.0 - 1.0).abs() < 0.01, "step {step}: the variance is {variance}");
        // χ² of 256 bins, five standard deviations wide.
        let mut bins = [0.0_f64; 256];
        u.iter().for_each(|u| bins[(u * 256.0) as usize] += 1.0);
        let expected = n as f64 / 256.0;
        let chi: f64 = bins.iter().map(|found| (found - expected).powi(2) / expected).sum();
        assert!((chi - 255.0).abs() < 5.0 * 510.0_f64.sqrt(), "step {step}: χ² is {chi}");
    }
}

#[test]
fn neighbours_steps_streams_parts_and_seeds_are_independent() {
    let n = 1 << 16;
    let u = uniform(n, DRAWS, 5);
    for lag in [1, 2, 3, 4, 16, 64, 256, 1024] {
        check_apart(&u, &u[lag..]);
    }
    for step in [0, 4, 6, 7, 1 << 16, u32::MAX] {
        check_apart(&u, &uniform(n, DRAWS, step));
    }
    let others = [
        Draws { stream: 4, ..DRAWS },
        Draws { part: 1, ..DRAWS },
        Draws { seed: DRAWS.seed ^ 1, ..DRAWS },
        Draws { seed: DRAWS.seed ^ 1 << 32, ..DRAWS },
    ];
    for other in others {
        check_apart(&u, &uniform(n, other, 5));
    }
    // The masks of 200 steps, element by element.
    let masks: Vec<Vec<f32>> = (0..200).map(|step| uniform(64, DRAWS, step)).collect();
    for element in 0..64 {
        let n_dropped = masks.iter().filter(|mask| mask[element] < 0.5).count();
        assert!((65..=135).contains(&n_dropped), "element {element} is dropped in {n_dropped} of 200 steps");
    }
    assert_eq!(u, uniform(n, DRAWS, 5), "the same again");
}

#[test]
fn a_part_of_a_batch_draws_what_the_batch_draws_there() {
    let whole = uniform(1000, DRAWS, 9);
    for (first, n) in [(0, 1), (1, 999), (640, 360)] {
        assert_eq!(uniform(n, Draws { first: first as u32, ..DRAWS }, 9), whole[first..first + n], "from {first}");
    }
}

#[test]
fn dropout_keeps_the_mean() {
    let n = 100_000;
    for p in [0.1, 0.5, 0.9] {
        let y = twin_floats(&Map::dropout(n, p, DRAWS), &[words(&vec![1.0; n]), state(0)]);
        let zeros = y.iter().filter(|&&y| y == 0.0).count() as f64 / n as f64;
        assert!((zeros - f64::from(p)).abs() < 0.006, "{zeros} of the elements are 0, expected {p}");
        let mean = y.iter().map(|&y| f64::from(y)).sum::<f64>() / n as f64;
        assert!((mean - 1.0).abs() < 0.03, "the mean is {mean}");
    }
    let x = [1.0, -2.0, f32::NAN];
    assert_eq!(twin_floats(&Map::dropout(2, 0.0, DRAWS), &[words(&x[..2]), state(0)]), [1.0, -2.0], "p = 0");
    assert_eq!(twin_floats(&Map::dropout(3, 1.0, DRAWS), &[words(&x), state(0)]), [0.0; 3], "p = 1");
}

#[test]
fn gpu_draws_the_same() {
    let mut random = Random::new(1);
    for n in [1, 3, 4, 5, 63, 64, 65, 255, 256, 257, 20_003] {
        let kernel = Map::dropout(n, 0.5, Draws { first: 0xFFFF_FF00, ..DRAWS });
        gpu_equals_twin(&kernel, &[words(&random.floats(n)), state(0xFFFF_FFFE)]);
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    let n = 70_001;
    same_bits_on_any_pool(&Map::dropout(n, 0.3, DRAWS), &[words(&Random::new(2).floats(n)), state(7)]);
}

#[test]
fn fused_with_its_neighbours_it_draws_the_same() {
    let (n, given) = (600, [words(&Random::new(3).floats(600)), state(7)]);
    let (dropout, tanh) = (Map::dropout(n, 0.3, DRAWS), Map::unary(n, |x| x.tanh()));
    let after = tanh.fused_with(0, &dropout).expect("dropout, then tanh");
    let expected: Vec<f32> = twin_floats(&tanh, &[words(&twin_floats(&dropout, &given))]);
    assert_eq!(twin_floats(&after, &given), expected);
    let columns = Map::new(Expr::input(0) + Expr::input(1), &[&[20, 30], &[30]]).expect("a bias");
    let before = Map { shape: vec![20, 30], ..dropout.clone() };
    assert!(before.check().is_err(), "the numbers have the shape of the outputs");
    let biased = dropout.fused_with(0, &columns).expect("a bias, then dropout");
    let bias = words(&Random::new(4).floats(30));
    let sum = twin_floats(&columns, &[given[0].clone(), bias.clone()]);
    assert_eq!(twin_floats(&biased, &[given[0].clone(), bias, state(7)]), twin_floats(&dropout, &[words(&sum), state(7)]));
}

/// A product or convolution and its arguments.
fn products(random: &mut Random) -> Vec<(Box<dyn Kernel>, Vec<Words>)> {
    let mut products: Vec<Box<dyn Kernel>> = Vec::new();
    let activations = [Activation::identity(), Activation::relu(), Activation::gelu(), Activation::celu(0.5)];
    for (m, n, k) in [(1, 5, 3), (7, 1, 4), (6, 9, 1), (33, 40, 12), (300, 260, 28)] {
        for transpose in [Transpose::None, Transpose::A, Transpose::B] {
            for activation in &activations {
                for epilogue in [Epilogue::activation(activation), Epilogue::bias(activation)] {
                    products.push(Box::new(Matmul { n_batch: 1, m, n, k, transpose, epilogue }));
                }
            }
        }
    }
    for (m, n, k) in [(1, 8, 3), (7, 1, 4), (6, 9, 1), (13, 20, 12), (70, 36, 28)] {
        for epilogue in [Epilogue::none(), Epilogue::bias(&Activation::relu())] {
            products.push(Box::new(Matmul { n_batch: 3, m, n, k, transpose: Transpose::B, epilogue }));
        }
    }
    for window in [Window::square(3, 1), Window::square(1, 0)] {
        let shape = ConvShape::dense(Images { n_images: 3, height: 6, width: 5, n_channels: 4 }, 8, window);
        products.push(Box::new(Conv2d { shape, epilogue: Epilogue::bias(&Activation::relu()) }));
        products.push(Box::new(Conv2dGradInput { shape, epilogue: Epilogue::none() }));
    }
    let x = Images { n_images: 3, height: 6, width: 5, n_channels: 4 };
    let shape = ConvShape { x, n_out: 8, window: Window::square(3, 1), dilation: [1, 1], n_groups: 2 };
    products.push(Box::new(Conv2d { shape, epilogue: Epilogue::none() }));
    let with_arguments = |product: Box<dyn Kernel>| {
        let reads = product.args().into_iter().filter(|arg| arg.access == Access::Read);
        let given = reads.map(|arg| words(&random.floats(arg.len))).collect();
        (product, given)
    };
    products.into_iter().map(with_arguments).collect()
}

fn len_of_result(product: &dyn Kernel) -> usize {
    product.args().iter().find(|arg| arg.access == Access::Write).expect("it has a result").len
}

#[test]
fn products_draw_what_the_maps_after_them_draw() {
    for (product, mut given) in products(&mut Random::new(5)) {
        let n = len_of_result(&*product);
        let dropout = Map::dropout(n, 0.3, DRAWS);
        let fused = product.followed_by(&dropout, 0).expect("dropout of whole results is an epilogue");
        let expected = twin_floats(&dropout, &[words(&twin_floats(&*product, &given)), state(7)]);
        given.push(state(7));
        assert_eq!(words(&twin_floats(&*fused, &given)), words(&expected), "{fused:?}");
        let again = fused.followed_by(&dropout, 0);
        assert!(again.is_none(), "other random numbers for the same result");
        same_bits_on_any_pool(&*fused, &given);
        gpu_equals_twin_within(&*fused, &given, Tolerance::of_sum(64));
    }
}

/// As in the gradient of dropout after an activation whose argument is kept: a further argument comes before the state, whichever
/// was fused first.
#[test]
fn a_product_with_dropout_may_read_a_matrix_afterwards() {
    let mut random = Random::new(6);
    let (m, n, k) = (20, 12, 9);
    let product = Matmul { n_batch: 1, m, n, k, transpose: Transpose::None, epilogue: Epilogue::none() };
    let [a, b, x] = [m * k, k * n, m * n].map(|len| words(&random.floats(len)));
    let (dropout, grad) = (Map::dropout(m * n, 0.3, DRAWS), Map::flat(m * n, Activation::gelu().grad()));
    let fused = product.followed_by(&dropout, 0).and_then(|fused| fused.followed_by(&grad, 0)).expect("both are epilogues");
    let sums = twin_floats(&product, &[a.clone(), b.clone()]);
    let dropped = twin_floats(&dropout, &[words(&sums), state(2)]);
    let expected = twin_floats(&grad, &[words(&dropped), x.clone()]);
    let given = [a, b, x, state(2)];
    assert_eq!(twin_floats(&*fused, &given), expected);
    gpu_equals_twin_within(&*fused, &given, Tolerance::of_sum(k));
}

#[test]
fn draws_of_another_length_are_refused() {
    let mut map = Map::dropout(8, 0.5, DRAWS);
    map.inputs[1].shape = vec![1];
    let message = map.check().expect_err("one number for eight outputs").to_string();
    assert!(message.contains("random numbers `x1` of shape [1]"), "{message}");
}
