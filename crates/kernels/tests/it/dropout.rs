use brisk_kernels::{Dropout, Kernel, Philox};

use crate::random::Random;
use crate::run::*;

fn dropout(n: usize, p: f32) -> Dropout {
    Dropout { n, p, seed: 0x1234_5678_9ABC_DEF0, stream: 3 }
}

fn given(x: &[f32], step: u32) -> [Words; 2] {
    [words(x), vec![0, step, 0, 0]]
}

#[test]
fn what_is_kept_is_what_philox_says() {
    let kernel = dropout(11, 0.25);
    let y = twin_floats(&kernel, &given(&[3.0; 11], 5));
    for (i, y) in y.into_iter().enumerate() {
        let word = Philox::new(kernel.seed).block([i as u32 / 4, 0, 3, 5])[i % 4];
        let uniform = f64::from(word >> 8) / f64::from(1 << 24);
        assert_eq!(y, if uniform >= 0.25 { 4.0 } else { 0.0 }, "element {i}, whose draw is {uniform}");
    }
}

#[test]
fn the_share_is_p_and_the_mean_stays() {
    let n = 100_000;
    for p in [0.1, 0.5, 0.9] {
        let y = twin_floats(&dropout(n, p), &given(&vec![1.0; n], 0));
        let zeros = y.iter().filter(|&&y| y == 0.0).count() as f64 / n as f64;
        assert!((zeros - f64::from(p)).abs() < 0.006, "{zeros} of the elements are 0, expected {p}");
        let mean = y.iter().map(|&y| f64::from(y)).sum::<f64>() / n as f64;
        assert!((mean - 1.0).abs() < 0.03, "the mean is {mean}");
    }
}

#[test]
fn nothing_and_all() {
    let x = [1.0, -2.0, f32::NAN];
    assert_eq!(twin_floats(&dropout(2, 0.0), &given(&x[..2], 0)), [1.0, -2.0], "p = 0");
    assert_eq!(twin_floats(&dropout(3, 1.0), &given(&x, 0)), [0.0; 3], "p = 1");
    gpu_equals_twin(&dropout(3, 1.0), &given(&x, 0));
}

#[test]
fn step_stream_and_seed_each_draw_anew() {
    let ones = vec![1.0; 1000];
    let kernel = dropout(1000, 0.5);
    let draws = [
        twin_floats(&kernel, &given(&ones, 0)),
        twin_floats(&kernel, &given(&ones, 1)),
        twin_floats(&Dropout { stream: 4, ..kernel }, &given(&ones, 0)),
        twin_floats(&Dropout { seed: kernel.seed ^ 1 << 32, ..kernel }, &given(&ones, 0)),
    ];
    for (i, a) in draws.iter().enumerate() {
        for b in &draws[..i] {
            let n_equal = a.iter().zip(b).filter(|(a, b)| a == b).count();
            assert!((400..600).contains(&n_equal), "{n_equal} of 1000 are alike");
        }
    }
    assert_eq!(draws[0], twin_floats(&kernel, &given(&ones, 0)), "the same again");
}

#[test]
fn gpu_keeps_the_same() {
    let mut random = Random::new(1);
    for n in [1, 3, 4, 5, 63, 64, 65, 255, 256, 257, 20_003] {
        for p in [0.0, 0.1, 0.5] {
            gpu_equals_twin(&dropout(n, p), &given(&random.floats(n), 0xFFFF_FFFE));
        }
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    let n = 70_001;
    same_bits_on_any_pool(&dropout(n, 0.3), &given(&Random::new(2).floats(n), 7));
}

#[test]
fn a_probability_beyond_one_is_refused() {
    let error = dropout(1, 1.5).check().expect_err("no probability");
    assert_eq!(error.to_string(), "dropout: p = 1.5 is not supported, expected 0 <= p <= 1");
}
