use brisk_loader::{Order, Shuffle};

fn order(n_rows: u32, seed: u64, epoch: u32) -> Vec<u32> {
    let mut rows = vec![0; n_rows as usize];
    Shuffle::new(n_rows, seed, epoch).fill(0, &mut rows);
    rows
}

#[track_caller]
fn check_bijection(n_rows: u32, seed: u64, epoch: u32) {
    let mut seen = vec![false; n_rows as usize];
    for row in order(n_rows, seed, epoch) {
        assert!(!std::mem::replace(&mut seen[row as usize], true), "row {row} of {n_rows} comes twice");
    }
}

#[test]
fn every_row_comes_once() {
    for n_rows in 1..2000 {
        check_bijection(n_rows, u64::from(n_rows) * 7, n_rows % 5);
    }
    for n_rows in [65_535, 65_536, 65_537, 262_145, 1_000_003] {
        check_bijection(n_rows, 42, 3);
    }
}

#[test]
fn one_row_a_run_and_the_inverse_agree() {
    for n_rows in [1, 2, 3, 4, 5, 255, 256, 257, 513, 1000, (1 << 20) + 1, u32::MAX] {
        let shuffle = Shuffle::new(n_rows, 9, 1);
        for first in [0, n_rows / 3, n_rows.saturating_sub(700)] {
            let mut rows = vec![0; 700.min(n_rows - first) as usize];
            shuffle.fill(first, &mut rows);
            for (position, &row) in (first..n_rows).zip(&rows) {
                assert_eq!(shuffle.row(position), row, "position {position} of {n_rows}");
                assert_eq!(shuffle.position_of(row), position, "row {row} of {n_rows}");
            }
        }
    }
}

#[test]
fn any_positions_can_be_asked_for() {
    let shuffle = Shuffle::new(1000, 5, 0);
    let mut positions: Vec<u32> = (0..600).map(|i| i * 7 % 1000).collect();
    let expected: Vec<u32> = positions.iter().map(|&position| shuffle.row(position)).collect();
    shuffle.permute(&mut positions);
    assert_eq!(positions, expected);
    shuffle.permute(&mut []);
    Shuffle::new(0, 0, 0).fill(0, &mut []);
}

#[test]
#[should_panic(expected = "index 10 is out of range for a shuffle of 10 rows")]
fn a_position_beyond_the_end_is_named() {
    Shuffle::new(10, 0, 0).fill(5, &mut [0; 6]);
}

/// Reference values for an implementation on a device. Computed by an implementation of the specification in another language.
#[test]
fn pinned_vectors() {
    #[track_caller]
    fn check(n_rows: u32, seed: u64, epoch: u32, bits: u32, keys: [u32; 8], rows: &[(u32, u32)]) {
        let shuffle = Shuffle::new(n_rows, seed, epoch);
        assert_eq!((shuffle.bits(), shuffle.keys()), (bits, keys), "{n_rows} rows, seed {seed}, epoch {epoch}");
        for &(position, row) in rows {
            assert_eq!(shuffle.row(position), row, "position {position} of {n_rows} rows, seed {seed}, epoch {epoch}");
        }
    }
    check(
        1,
        0x0,
        0,
        2,
        [0x2d0f28c7, 0x75856f74, 0x8674bbc2, 0x5c1d49a7, 0x8ced152e, 0xc33b2419, 0x7aeb14a1, 0xdeefd020],
        &[(0, 0)],
    );
    check(
        2,
        0x0,
        0,
        2,
        [0x2d0f28c7, 0x75856f74, 0x8674bbc2, 0x5c1d49a7, 0x8ced152e, 0xc33b2419, 0x7aeb14a1, 0xdeefd020],
        &[(0, 0), (1, 1)],
    );
    check(
        3,
        0x1,
        0,
        2,
        [0x6078bf18, 0xd11f5a75, 0x44a8d398, 0x322c5e07, 0x78d36469, 0xa2887212, 0x009e5f66, 0xb6bd9831],
        &[(0, 2), (1, 0), (2, 1)],
    );
    check(
        10,
        0x2a,
        0,
        4,
        [0xd7fc1bde, 0x096c2783, 0xca815659, 0xfeb56f6f, 0x9e22c2a7, 0xb9de87b0, 0xb94e8d5c, 0xdaaea38a],
        &[(0, 5), (1, 9), (2, 7), (3, 3), (4, 6), (5, 2), (6, 0), (7, 8), (8, 1), (9, 4)],
    );
    check(
        10,
        0x2a,
        1,
        4,
        [0x5e0237db, 0x85b5e39a, 0x7c0c1348, 0xb8f7e97e, 0xf14cb236, 0x337f4e70, 0x4d6af6d2, 0xa08122ff],
        &[(0, 3), (1, 4), (2, 8), (3, 1), (4, 5), (5, 7), (6, 0), (7, 2), (8, 6), (9, 9)],
    );
    check(
        1000,
        0x0,
        0,
        10,
        [0x2d0f28c7, 0x75856f74, 0x8674bbc2, 0x5c1d49a7, 0x8ced152e, 0xc33b2419, 0x7aeb14a1, 0xdeefd020],
        &[(0, 192), (1, 280), (2, 227), (500, 966), (998, 322), (999, 13)],
    );
    check(
        1000003,
        0xdeadbeefcafef00d,
        7,
        20,
        [0xda2613b4, 0x1634e82d, 0x9921cdf8, 0x4359e0f1, 0x033068bd, 0x7fe6b309, 0x3bcefe8e, 0x6eb9af5c],
        &[(0, 867391), (1, 555588), (2, 186141), (500001, 465255), (1000001, 282432), (1000002, 319207)],
    );
    check(
        11000000,
        0x7ea,
        3,
        24,
        [0xbbbe0fa5, 0xf212c327, 0x69b8b7c0, 0x214bd735, 0x35dc84e6, 0xc03f8b34, 0xdfda1449, 0xe82c708f],
        &[(0, 7751035), (1, 9109870), (2, 8939651), (5500000, 1574151), (10999998, 10666756), (10999999, 2271556)],
    );
    check(
        2147483649,
        0x5,
        4294967294,
        32,
        [0xca7851e8, 0xc10a29cd, 0xf158a12e, 0x8437eb18, 0x58971095, 0x4f879a72, 0x8b699080, 0x8fa28874],
        &[
            (0, 852502703),
            (1, 1373002366),
            (2, 336864608),
            (1073741824, 691573400),
            (2147483647, 1507798120),
            (2147483648, 990408190),
        ],
    );
    check(
        4294967295,
        0xffffffffffffffff,
        4294967295,
        32,
        [0xe742e5a4, 0xf89f97dc, 0x3b43a0a8, 0x32012b9d, 0x073375ca, 0x8ab72a01, 0x21c36654, 0x18aba565],
        &[
            (0, 4211421896),
            (1, 4111579161),
            (2, 1599508736),
            (2147483647, 747202320),
            (4294967293, 3428789110),
            (4294967294, 2001163033),
        ],
    );
}

#[test]
fn an_order_gives_the_shuffle_of_its_epoch() {
    assert_eq!(Order::Sequential.shuffle(10, 3), None);
    assert_eq!(Order::Shuffled { seed: 42 }.shuffle(10, 3), Some(Shuffle::new(10, 42, 3)));
}

/// Sum of squared deviations from `expected`, in standard deviations of a normal distribution.
fn chi_square_sigmas(counts: &[u32], expected: f64) -> f64 {
    let chi_square: f64 = counts.iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
    let freedom = (counts.len() - 1) as f64;
    (chi_square - freedom) / (2.0 * freedom).sqrt()
}

/// Compares positions cut into 32 parts with rows cut into 32 parts: all pairs of parts are equally frequent. Seeds are fixed, so
/// this cannot fail by chance.
#[test]
fn positions_spread_evenly_over_rows() {
    for n_rows in [32 * 32 * 32, 100_000, 1_000_000] {
        for seed in 0..4 {
            let mut cells = vec![0; 32 * 32];
            for (position, row) in order(n_rows, seed, 0).into_iter().enumerate() {
                let part = |i: u64| (i * 32 / u64::from(n_rows)) as usize;
                cells[part(position as u64) * 32 + part(u64::from(row))] += 1;
            }
            // Row and column sums are fixed, which makes true shuffles slightly more even than independent draws.
            let sigmas = chi_square_sigmas(&cells, f64::from(n_rows) / 1024.0);
            assert!((-5.0..4.0).contains(&sigmas), "{n_rows} rows, seed {seed}: {sigmas} sigmas from even");
        }
    }
}

/// Each of the 24 orders of 4 rows occurs equally often, over seeds and over epochs.
#[test]
fn small_orders_come_equally_often() {
    let check = |shuffles: &mut dyn Iterator<Item = Shuffle>, what: &str| {
        let mut counts = vec![0; 256];
        for shuffle in shuffles {
            counts[(0..4).fold(0, |code, position| code * 4 + shuffle.row(position) as usize)] += 1;
        }
        let counts: Vec<u32> = counts.into_iter().filter(|&count| count > 0).collect();
        assert_eq!(counts.len(), 24, "orders of 4 rows over {what}");
        let sigmas = chi_square_sigmas(&counts, 1000.0);
        assert!(sigmas.abs() < 4.0, "orders of 4 rows over {what}: {sigmas} sigmas from even");
    };
    check(&mut (0..24_000).map(|seed| Shuffle::new(4, seed, 0)), "seeds");
    check(&mut (0..24_000).map(|epoch| Shuffle::new(4, 0, epoch)), "epochs");
}

#[test]
fn rows_move_far_and_neighbours_part() {
    let n_rows = 200_000;
    for epoch in 0..4 {
        let rows = order(n_rows, 1, epoch);
        let moved: f64 = rows.iter().enumerate().map(|(position, &row)| (position as f64 - f64::from(row)).abs()).sum();
        let mean = moved / f64::from(n_rows) / f64::from(n_rows);
        assert!((mean - 1.0 / 3.0).abs() < 0.003, "mean displacement is {mean} of the rows, expected a third");
        // Two of 200,000 are expected in a true shuffle.
        let adjacent = rows.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) == 1).count();
        assert!(adjacent < 12, "{adjacent} adjacent rows stayed adjacent");
    }
}

#[test]
fn epochs_and_seeds_have_nothing_in_common() {
    let n_rows = 100_000;
    let base = order(n_rows, 1, 0);
    for (seed, epoch) in [(1, 1), (1, 2), (2, 0), (0, 0), (1 << 63, 0), (1, u32::MAX)] {
        let other = order(n_rows, seed, epoch);
        // One fixed point and no correlation are expected.
        let fixed = base.iter().zip(&other).filter(|(a, b)| a == b).count();
        assert!(fixed < 10, "{fixed} rows come at the same position under seed {seed}, epoch {epoch}");
        let mean = f64::from(n_rows - 1) / 2.0;
        let covariance: f64 = base.iter().zip(&other).map(|(&a, &b)| (f64::from(a) - mean) * (f64::from(b) - mean)).sum();
        let correlation = covariance / f64::from(n_rows) / (f64::from(n_rows).powi(2) / 12.0);
        assert!(correlation.abs() < 0.015, "correlation {correlation} with seed {seed}, epoch {epoch}");
    }
}
