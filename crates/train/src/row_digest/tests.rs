use std::collections::HashSet;

use brisk_loader::{Layout, RowBuffers, RowSelection, Rows, Subset};

use super::*;

const N_COLS: usize = 3;

/// Rows of a block of [`Values`]: features, a category, a label and a weight.
const BLOCK_ROWS: usize = BLOCK_BYTES / ((N_COLS + 3) * 4);

/// Rows with categories and weights.
struct Values {
    features: Vec<f32>,
    labels: Vec<f32>,
    categories: Vec<u32>,
    weights: Vec<f32>,
}

impl Values {
    fn new(n: usize) -> Self {
        let features = (0..n * N_COLS).map(|i| i as f32 * 0.37).collect();
        let labels = (0..n).map(|i| f32::from(u8::from(i % 3 == 0))).collect();
        Self { features, labels, categories: (0..n as u32).collect(), weights: vec![1.0; n] }
    }

    fn digest(&self) -> RowDigest {
        let rows = Rows::new(self.features.clone(), self.labels.clone(), N_COLS).expect("as many labels as rows");
        let rows = rows.with_categories(self.categories.clone(), 1).expect("a category a row");
        RowDigest::of("train", &rows.with_weights(self.weights.clone()).expect("a weight a row")).expect("rows in memory")
    }
}

fn flip(value: &mut f32, bit: u32) {
    *value = f32::from_bits(value.to_bits() ^ (1 << bit));
}

#[test]
fn a_single_flipped_bit_changes_the_digest() {
    let n = BLOCK_ROWS * 2 + 5;
    let mut values = Values::new(n);
    let mut seen = HashSet::from([values.digest()]);
    for row in [0, 1, BLOCK_ROWS - 1, BLOCK_ROWS, n - 1] {
        for bit in [0, 15, 31] {
            flip(&mut values.features[row * N_COLS + 1], bit);
            assert!(seen.insert(values.digest()), "bit {bit} of a feature of row {row}");
            flip(&mut values.features[row * N_COLS + 1], bit);
        }
        values.labels[row] = 1.0 - values.labels[row];
        assert!(seen.insert(values.digest()), "the label of row {row}");
        values.labels[row] = 1.0 - values.labels[row];
        values.categories[row] ^= 1;
        assert!(seen.insert(values.digest()), "the category of row {row}");
        values.categories[row] ^= 1;
        flip(&mut values.weights[row], 0);
        assert!(seen.insert(values.digest()), "the weight of row {row}");
        flip(&mut values.weights[row], 0);
    }
    assert!(!seen.insert(values.digest()), "all changes were undone");
}

#[test]
fn order_and_shape_change_the_digest() {
    let rows = |features: &[f32], n_cols| {
        let labels = vec![0.0; features.len() / n_cols];
        RowDigest::of("train", &Rows::new(features.to_vec(), labels, n_cols).expect("whole rows")).expect("rows in memory")
    };
    let digests = [
        rows(&[1.0, 2.0, 3.0, 4.0], 2),
        rows(&[3.0, 4.0, 1.0, 2.0], 2),
        rows(&[1.0, 2.0, 3.0, 4.0], 1),
        rows(&[1.0, 2.0], 2),
        rows(&[], 2),
        rows(&[], 1),
        rows(&[-0.0, 2.0, 3.0, 4.0], 2),
        rows(&[0.0, 2.0, 3.0, 4.0], 2),
    ];
    assert_eq!(HashSet::from(digests).len(), digests.len(), "{digests:?}");
}

#[test]
fn the_number_of_threads_does_not_change_the_digest() {
    let values = Values::new(BLOCK_ROWS * 3 + 1);
    let on = |n| rayon::ThreadPoolBuilder::new().num_threads(n).build().expect("threads").install(|| values.digest());
    assert_eq!(on(1), on(3), "blocks are cut by shape");
}

/// Digests are kept in checkpoints, so they are part of a format.
#[test]
fn digests_stay_what_they_are() {
    assert_eq!(Values::new(5).digest().to_string(), "7ed968fe81c00755");
}

#[test]
fn rows_of_a_part_of_a_source() {
    let numbers = |range: std::ops::Range<u32>| range.map(|i| i as f32).collect::<Vec<f32>>();
    let source = Rows::new(numbers(0..40), vec![1.0; 20], 2).expect("20 rows");
    let part = Subset::of_rows(&source, [3, 4, 5]).expect("rows of the source");
    let copied = Rows::new(numbers(6..12), vec![1.0; 3], 2).expect("3 rows");
    let digests = [RowDigest::of("train", &part), RowDigest::of("train", &copied)].map(|digest| digest.expect("rows in memory"));
    assert_eq!(digests[0], digests[1], "only values count");
}

#[test]
fn a_source_that_fails_is_named() {
    struct Broken;
    impl RowSource for Broken {
        type Feature = f32;
        type Error = std::io::Error;
        fn layout(&self) -> Layout {
            Layout::new(3, 1)
        }
        fn gather(&self, _: RowSelection<'_>, _: RowBuffers<'_, f32>) -> Result<(), Self::Error> {
            Err(std::io::Error::other("the disk is gone"))
        }
    }
    let error = RowDigest::of("test", &Broken).expect_err("nothing can be read");
    assert_eq!(error.to_string(), "test rows: the disk is gone");
}
