//! Gradients that are sent in fewer bits.

use brisk_replicate::{Collective as _, Compressed, Error, ReduceOp, Wire, run_replicas};

/// The sum over `n_steps` of the results that 3 ranks get from an all-reduce of `grads`.
fn accumulated(wire: Wire, grads: &[f32], n_steps: usize) -> Vec<f32> {
    let sums = run_replicas(3, |replica| {
        let mut compressed = Compressed::new(wire, grads.len());
        let mut sums = vec![0.0; grads.len()];
        for _ in 0..n_steps {
            let mut values = grads.to_vec();
            compressed.all_reduce(replica, &mut values, ReduceOp::Mean)?;
            sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        }
        Ok::<_, Error>(sums)
    });
    let sums = sums.expect("no replica fails");
    assert!(sums.iter().all(|other| *other == sums[0]), "{wire:?}: ranks differ");
    sums.into_iter().next().expect("there are three")
}

#[test]
fn what_is_rounded_away_comes_later() {
    let grads = [1.0 + 1.0 / 3000.0, 1000.3, -0.000_123_4, 0.0];
    for wire in [Wire::F32, Wire::F16, Wire::Bf16] {
        let sums = accumulated(wire, &grads, 256);
        for (sum, grad) in sums.iter().zip(grads) {
            let exact = f64::from(grad) * 256.0;
            // At most the rounding error of one or two steps is missing.
            let missing = (f64::from(*sum) - exact).abs();
            assert!(missing <= 0.02 * f64::from(grad.abs()) + 1e-6, "{wire:?}: {sum} of {exact}");
        }
    }
}

/// Over two calls, the second of which adds the errors of the first.
#[test]
fn a_shard_is_that_of_the_all_reduce() {
    for wire in [Wire::F32, Wire::F16, Wire::Bf16] {
        let shards = run_replicas(3, |replica| {
            let [mut whole, mut sharded] = [(); 2].map(|()| Compressed::new(wire, 6));
            let (rank, mut expected, mut shard) = (replica.rank(), [0.0; 6], [0.0; 2]);
            for call in 0..2 {
                expected = std::array::from_fn(|i| 1.0 / (1 + i + 7 * rank + 31 * call) as f32);
                sharded.reduce_scatter(replica, &expected, &mut shard, ReduceOp::Mean)?;
                whole.all_reduce(replica, &mut expected, ReduceOp::Mean)?;
            }
            assert_eq!(sharded.errors(), whole.errors(), "{wire:?}");
            Ok::<_, Error>((shard.map(f32::to_bits), [0, 1].map(|i| expected[2 * rank + i].to_bits())))
        });
        for (found, expected) in shards.expect("no replica fails") {
            assert_eq!(found, expected, "{wire:?}");
        }
    }
}

#[test]
fn what_is_not_finite_is_told_and_forgotten() {
    let seen = run_replicas(2, |replica| {
        let mut compressed = Compressed::new(Wire::F16, 2);
        let mut first = [if replica.rank() == 0 { 1e6 } else { 1.0 }, f32::NAN];
        compressed.all_reduce(replica, &mut first, ReduceOp::Sum)?;
        let mut second = [1.0, 1.0];
        compressed.all_reduce(replica, &mut second, ReduceOp::Sum)?;
        Ok::<_, Error>((first, second))
    });
    for (first, second) in seen.expect("no replica fails") {
        assert!(first[0] == f32::INFINITY && first[1].is_nan(), "{first:?}");
        assert_eq!(second, [2.0, 2.0], "the next step is clean");
    }
}

#[test]
fn another_length_is_refused() {
    let refused = run_replicas(1, |replica| Compressed::new(Wire::Bf16, 3).all_reduce(replica, &mut [1.0; 4], ReduceOp::Sum));
    let text = refused.expect_err("4 is not 3").to_string();
    assert_eq!(text, "all_reduce on rank 0: `values` has 4 elements, expected 3: the length that `Compressed::new` was given");
    let refused = run_replicas(1, |replica| {
        Compressed::new(Wire::Bf16, 3).reduce_scatter(replica, &[1.0; 4], &mut [0.0; 4], ReduceOp::Sum)
    });
    let text = refused.expect_err("4 is not 3").to_string();
    assert!(text.starts_with("reduce_scatter on rank 0: `input` has 4 elements, expected 3"), "{text}");
}
