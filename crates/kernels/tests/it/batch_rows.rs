use brisk_kernels::{BatchRows, sequential_order, shuffled_order};

use crate::random::Random;
use crate::run::*;

#[test]
fn rows_in_order_and_padding() {
    let batch = |batch| {
        let order = sequential_order(11, 5, 0).to_vec();
        let results = run_twin(&BatchRows { first: 0, n: 5 }, &[order, vec![batch, 0, 0, 0]]);
        (results[0].clone(), floats(&results[1]).to_vec())
    };
    assert_eq!(batch(1), (vec![5, 6, 7, 8, 9], vec![1.0; 5]), "a whole batch");
    assert_eq!(batch(2), (vec![10; 5], vec![1.0, 0.0, 0.0, 0.0, 0.0]), "one row, four times again");
    assert_eq!(batch(3), (vec![0; 5], vec![0.0; 5]), "no row");
    let order = sequential_order(8, 5, 0).to_vec();
    let results = run_twin(&BatchRows { first: 0, n: 5 }, &[order, vec![1, 0, 0, 0]]);
    assert_eq!(
        (results[0].as_slice(), floats(&results[1])),
        (&[5, 6, 7, 5, 6][..], &[1.0, 1.0, 1.0, 0.0, 0.0][..]),
        "three rows"
    );
}

#[test]
fn a_part_of_a_batch() {
    let part = |first, n| run_twin(&BatchRows { first, n }, &[sequential_order(10, 8, 0).to_vec(), vec![1, 0, 0, 0]]);
    // The second batch of eight has rows 8 and 9.
    assert_eq!(part(0, 1)[0], [8]);
    assert_eq!((part(1, 3)[0].as_slice(), floats(&part(1, 3)[1])), (&[9, 8, 9][..], &[1.0, 0.0, 0.0][..]));
    // The padding of all parts together repeats the batch.
    assert_eq!((part(3, 4)[0].as_slice(), floats(&part(3, 4)[1])), (&[9, 8, 9, 8][..], &[0.0; 4][..]), "nothing but padding");
}

/// `max(2, ceil(log2(n_rows)))`.
fn bits(n_rows: u32) -> u32 {
    n_rows.next_power_of_two().trailing_zeros().max(2)
}

#[test]
fn a_shuffled_epoch_has_each_row_once() {
    let mut random = Random::new(1);
    for n_rows in [1_u32, 2, 3, 4, 5, 31, 32, 33, 1000, 4097] {
        let keys = std::array::from_fn(|_| random.next() as u32);
        let (mut seen, n) = (vec![0; n_rows as usize], 32);
        for batch in 0..n_rows.div_ceil(n) {
            let order = shuffled_order(n_rows, bits(n_rows), keys, n, 0).to_vec();
            let results = run_twin(&BatchRows { first: 0, n: n as usize }, &[order, vec![batch, 0, 0, 0]]);
            for (row, weight) in results[0].iter().zip(floats(&results[1])) {
                assert!(*row < n_rows && [0.0, 1.0].contains(weight), "{n_rows} rows: row {row}, weight {weight}");
                seen[*row as usize] += *weight as u32;
            }
        }
        assert!(seen.iter().all(|times| *times == 1), "{n_rows} rows: {seen:?}");
    }
}

#[test]
fn gpu_agrees() {
    let mut random = Random::new(2);
    for n in [1, 63, 64, 65, 1001] {
        for n_rows in [1, 5, 700, 5000] {
            let keys = std::array::from_fn(|_| random.next() as u32);
            let batch = random.below(3);
            let shuffled = shuffled_order(n_rows, bits(n_rows), keys, n as u32, random.below(2)).to_vec();
            gpu_equals_twin(&BatchRows { first: 0, n }, &[shuffled.clone(), vec![batch, 0, 0, 0]]);
            gpu_equals_twin(&BatchRows { first: n / 2, n: n.div_ceil(2) }, &[shuffled, vec![batch, 0, 0, 0]]);
            let in_order = sequential_order(n_rows, n as u32, 1).to_vec();
            gpu_equals_twin(&BatchRows { first: 0, n }, &[in_order, vec![batch, 0, 0, 0]]);
        }
    }
}

#[test]
fn a_damaged_order_yields_padding_on_both_executors() {
    let keys = [1, 2, 3, 4, 5, 6, 7, 8];
    let kernel = BatchRows { first: 0, n: 70 };
    let undamaged = shuffled_order(100, 7, keys, 70, 0);
    let state = vec![0; 4];
    let weights = |order: &[u32]| floats(&run_twin(&kernel, &[order.to_vec(), state.clone()])[1]).to_vec();
    assert_eq!(weights(&undamaged), [1.0; 70], "the order before it is damaged");
    // Elements of the order: 0 is n_rows, 1 is bits, 2 is n_rounds.
    let damages =
        [(0, 0), (0, 129), (0, u32::MAX), (1, 0), (1, 1), (1, 6), (1, 8), (1, 32), (1, u32::MAX), (2, 1), (2, u32::MAX)];
    for (element, value) in damages {
        let mut order = undamaged;
        order[element] = value;
        let given = [order.to_vec(), state.clone()];
        assert_eq!(weights(&order), [0.0; 70], "element {element} is {value}");
        assert_eq!(run_twin(&kernel, &given)[0], [0; 70], "element {element} is {value}");
        gpu_equals_twin(&kernel, &given);
    }
    // Other keys and positions permute the same rows.
    for (element, value) in [(3, u32::MAX), (4, u32::MAX), (8, u32::MAX), (15, 0)] {
        let mut order = undamaged;
        order[element] = value;
        gpu_equals_twin(&kernel, &[order.to_vec(), vec![u32::MAX; 4]]);
    }
}

#[test]
fn the_largest_orders_are_walked_to_the_end() {
    let mut random = Random::new(3);
    for (n_rows, bits) in [((1 << 31) + 1, 32), (u32::MAX, 32), (1 << 31, 31)] {
        let keys = std::array::from_fn(|_| random.next() as u32);
        let order = shuffled_order(n_rows, bits, keys, 500, 0).to_vec();
        let given = [order, vec![3, 0, 0, 0]];
        let results = run_twin(&BatchRows { first: 0, n: 500 }, &given);
        assert_eq!(floats(&results[1]), [1.0; 500], "{n_rows} rows");
        assert!(results[0].iter().all(|row| *row < n_rows), "{n_rows} rows");
        gpu_equals_twin(&BatchRows { first: 0, n: 500 }, &given);
    }
}
