//! Scaling by ranks, compared with scikit-learn.

use brisk_loader::Rows;
use brisk_tabular::{Columns, Preprocessing, Scaling};

/// How the column of these values scales others.
fn scaled(values: Vec<f32>, others: &[f64]) -> Vec<f64> {
    let labels = vec![0.0; values.len()];
    let rows = Rows::new(values, labels, 1).expect("a label for each row");
    let preprocessing = Preprocessing::fit(&Columns::numbers(["x"]), &rows, Scaling::Quantile).expect("values");
    others.iter().map(|&x| preprocessing.numbers()[0].scale.apply(x).into()).collect()
}

#[track_caller]
fn check(found: &[f64], expected: &[f64]) {
    assert!(found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-5), "{found:?}, not {expected:?}");
}

/// `QuantileTransformer(n_quantiles=10, output_distribution="normal", subsample=None).fit(values).transform(others)` of
/// scikit-learn 1.9.1.
#[test]
fn values_are_scaled_as_by_scikit_learn() {
    let others = [-5.0, 0.0, 0.5, 7.0, 13.25, 30.0, 45.5, 60.0, 100.0];
    let expected = [
        -5.199_337_582_6,
        -5.199_337_582_6,
        -2.286_547_951_3,
        -1.085_324_908_1,
        -0.733_976_660_4,
        -0.012_660_076_9,
        0.589_455_797_8,
        5.199_337_582_7,
        5.199_337_582_7,
    ];
    check(&scaled((0..300).map(|i: u32| (i * i % 61) as f32).collect(), &others), &expected);
}

/// The same with 20 quantiles, of which several are equal.
#[test]
fn equal_quantiles_have_the_middle_of_their_ranks() {
    let values = (0..600_u32).map(|i| if i % 3 == 0 { i } else { (i % 7).pow(4) } as f32).collect::<Vec<_>>();
    let others = [-1.0, 1.0, 16.0, 100.0, 256.0, 500.5, 2000.0];
    let expected = [
        -5.199_337_582_6,
        -1.118_958_381_1,
        -0.716_497_500_2,
        -0.168_562_621_1,
        0.132_312_852_3,
        0.698_768_500_8,
        5.199_337_582_7,
    ];
    check(&scaled(values.clone(), &others), &expected);
    // scikit-learn moves the smallest and the largest value to the ends, -5.2 and 5.2, however frequent they are.
    check(&scaled(values, &[0.0, 1296.0]), &[-1.937_931_511_1, 1.937_931_511_1]);
}
