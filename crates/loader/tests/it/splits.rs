use std::collections::HashSet;
use std::sync::Mutex;

use brisk_loader::{
    Batching, Error, Hint, RowBuffers, RowSelection, RowSource, Rows, Shuffle, Subset, group_k_fold, group_split, k_fold, key_of,
    labels_of, ordered_split, row_source_conformance, split, split_by_blocks, split_by_key, stratified_k_fold, stratified_split,
};

use crate::batches::all;
use crate::blocks::{Event, Recording};
use crate::source::{described, numbered};

fn rows_of<S: RowSource>(subset: &Subset<S>) -> Vec<u32> {
    (0..subset.n_rows() as u32).map(|row| subset.row(row)).collect()
}

#[track_caller]
fn check_cover<'a>(parts: impl IntoIterator<Item = &'a Subset<&'a Rows>>, n_rows: usize) {
    let mut rows: Vec<u32> = parts.into_iter().flat_map(rows_of).collect();
    rows.sort_unstable();
    assert_eq!(rows, (0..n_rows as u32).collect::<Vec<_>>(), "parts have nothing in common and leave nothing out");
}

#[track_caller]
fn check_sizes<const N: usize>(n_rows: usize, fractions: [f64; N], expected: [usize; N]) {
    let source = numbered(n_rows, 2);
    let parts = split(&source, 42, fractions).unwrap();
    assert_eq!(parts.each_ref().map(|part| part.n_rows()), expected, "{n_rows} rows by {fractions:?}");
    check_cover(&parts, n_rows);
}

#[test]
fn sizes_are_exact() {
    check_sizes(1000, [0.8, 0.1, 0.1], [800, 100, 100]);
    check_sizes(11, [0.8, 0.1, 0.1], [9, 1, 1]);
    check_sizes(10, [1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0], [3, 4, 3]);
    check_sizes(7, [0.0, 1.0, 0.0], [0, 7, 0]);
    check_sizes(7, [0.1; 10], [1, 0, 1, 1, 1, 0, 1, 1, 0, 1]);
    check_sizes(0, [0.5, 0.5], [0, 0]);
    check_sizes(5, [1.0], [5]);
}

#[test]
fn parts_conform_and_can_be_loaded() {
    let source = numbered(1500, 3);
    let [train, test] = split(&source, 7, [0.7, 0.3]).unwrap();
    row_source_conformance(&train);
    row_source_conformance(&test);
    let expected = rows_of(&test);
    let labels: Vec<u32> = all(&test, &Batching::of(100), 0)
        .iter()
        .flat_map(|batch| batch.labels[..batch.rows].to_vec())
        .map(|y| y as u32)
        .collect();
    assert_eq!(labels, expected, "a batch in order is the subset's order");
    for fold in k_fold(&source, 7, 3).unwrap() {
        row_source_conformance(&fold.train);
        row_source_conformance(&fold.valid);
    }
}

#[test]
fn a_subset_of_a_subset_conforms() {
    let source = numbered(900, 2);
    let [train, _] = split(&source, 1, [0.5, 0.5]).unwrap();
    let [inner, _] = split(&train, 2, [0.9, 0.1]).unwrap();
    row_source_conformance(&inner);
}

#[test]
fn a_split_is_the_seed_s() {
    let source = numbered(1000, 1);
    let first = |seed| rows_of(&split(&source, seed, [0.5, 0.5]).unwrap()[0]);
    assert_eq!(first(1), first(1));
    assert_ne!(first(1), first(2));
    // Differs from the training order of the same seed.
    let shuffle = Shuffle::new(1000, 1, 0);
    assert_ne!(first(1), (0..500).map(|position| shuffle.row(position)).collect::<Vec<_>>());
}

#[test]
fn folds_cover() {
    let source = numbered(103, 1);
    for n_folds in [2, 3, 10, 103] {
        let folds = k_fold(&source, 5, n_folds).unwrap();
        assert_eq!(folds.len(), n_folds);
        check_cover(folds.iter().map(|fold| &fold.valid), 103);
        for fold in &folds {
            check_cover([&fold.train, &fold.valid], 103);
            assert!((103 / n_folds..=103_usize.div_ceil(n_folds)).contains(&fold.valid.n_rows()));
        }
    }
}

#[test]
fn what_does_not_split_is_refused() {
    let source = numbered(10, 1);
    for fractions in [[0.5, 0.4], [1.5, -0.5], [f64::NAN, 1.0], [1.0, 1.0]] {
        assert!(split(&source, 0, fractions).unwrap_err().to_string().starts_with("cannot split by ["));
    }
    for n_folds in [0, 1, 11] {
        assert!(k_fold(&source, 0, n_folds).unwrap_err().to_string().starts_with("cannot make "));
    }
}

#[test]
fn rows_can_be_listed() {
    let source = numbered(600, 2);
    let listed = Subset::of_rows(&source, (0..500).rev().chain([7, 7]).collect::<Vec<_>>()).unwrap();
    row_source_conformance(&listed);
    assert_eq!((listed.n_rows(), listed.row(0), listed.row(501)), (502, 499, 7));
    row_source_conformance(&Subset::of_rows(&source, vec![]).unwrap());
    row_source_conformance(&Subset::of_rows(described(50, 0), vec![3, 1]).unwrap());
    let error = Subset::of_rows(&source, vec![0, 600]).unwrap_err();
    assert_eq!(error.to_string(), "row 600 was requested, the source has 600 rows; rows count from 0");
}

/// Labels for the given number of rows of each class, mixed.
fn labels(counts: &[usize]) -> Vec<f32> {
    let sorted: Vec<f32> =
        counts.iter().enumerate().flat_map(|(class, &count)| std::iter::repeat_n(class as f32, count)).collect();
    let shuffle = Shuffle::new(sorted.len() as u32, 77, 0);
    (0..shuffle.n_rows()).map(|position| sorted[shuffle.row(position) as usize]).collect()
}

fn counts(part: &Subset<&Rows>, labels: &[f32], n_classes: usize) -> Vec<usize> {
    let mut counts = vec![0; n_classes];
    rows_of(part).iter().for_each(|&row| counts[labels[row as usize] as usize] += 1);
    counts
}

#[track_caller]
fn check_stratified<const N: usize>(class_counts: &[usize], fractions: [f64; N]) {
    let labels = labels(class_counts);
    let source = Rows::new(vec![0.0; labels.len()], labels.clone(), 1).unwrap();
    assert_eq!(labels_of(&source).unwrap(), labels, "labels as they were given");
    for seed in 0..4 {
        let parts = stratified_split(&source, &labels, seed, fractions).unwrap();
        check_cover(&parts, labels.len());
        for (part, fraction) in parts.iter().zip(fractions) {
            for (found, &of) in counts(part, &labels, class_counts.len()).iter().zip(class_counts) {
                let share = fraction * of as f64;
                assert!((*found as f64 - share).abs() < 1.0, "{found} rows of a class of {of} by {fractions:?}");
            }
            let share = fraction * labels.len() as f64;
            let n = part.n_rows() as f64;
            assert!((n - share).abs() < if N == 2 { 1.0 } else { 2.0 }, "{n} rows where {share} are due, by {fractions:?}");
        }
    }
}

#[test]
fn classes_are_split_alike() {
    check_stratified(&[900, 90, 10], [0.8, 0.1, 0.1]);
    check_stratified(&[17, 5, 8, 1, 1, 1, 1, 1, 1], [0.7, 0.3]);
    check_stratified(&[3; 30], [0.5, 0.25, 0.25]);
    check_stratified(&[1; 40], [0.25, 0.25, 0.5]);
    check_stratified(&[11, 7], [0.0, 1.0, 0.0]);
    check_stratified(&[], [0.5, 0.5]);
    let (source, other) = (numbered(10, 1), numbered(9, 1));
    let error = stratified_split(&source, other.labels(), 0, [0.5, 0.5]).unwrap_err();
    assert!(error.to_string().starts_with("stratified_split: `labels` holds 9 values, expected 10"), "found: {error}");
}

#[test]
fn strata_are_dealt_at_random() {
    let labels = labels(&[500, 500]);
    let source = Rows::new(vec![0.0; 1000], labels.clone(), 1).unwrap();
    let first = |seed| rows_of(&stratified_split(&source, &labels, seed, [0.5, 0.5]).unwrap()[0]);
    assert_eq!(first(1), first(1));
    let both = first(1).iter().filter(|row| first(2).contains(row)).count();
    assert!((200..300).contains(&both), "half of the rows in common, found {both} of 500");
}

/// The counts of each class in each validation set of scikit-learn 1.7's `StratifiedKFold(n, shuffle=True)`.
#[test]
fn stratified_folds_have_the_counts_of_scikit_learn() {
    let labels: Vec<f32> = [0.0; 17].into_iter().chain([1.0; 5]).chain([2.0; 8]).collect();
    let source = Rows::new(vec![0.0; 30], labels.clone(), 1).unwrap();
    let expected: [&[[usize; 3]]; 2] = [&[[6, 2, 2], [6, 1, 3], [5, 2, 3]], &[[5, 1, 2], [4, 2, 2], [4, 1, 2], [4, 1, 2]]];
    for expected in expected {
        let folds = stratified_k_fold(&source, &labels, 5, expected.len()).unwrap();
        check_cover(folds.iter().map(|fold| &fold.valid), 30);
        for (fold, expected) in folds.iter().zip(expected) {
            check_cover([&fold.train, &fold.valid], 30);
            assert_eq!(counts(&fold.valid, &labels, 3), expected, "{} folds", folds.len());
        }
    }
    // The largest possible number of folds is the number of rows of the largest class, as in scikit-learn.
    assert!(stratified_k_fold(&source, &labels, 5, 17).is_ok());
    let error = stratified_k_fold(&source, &labels, 5, 18).unwrap_err().to_string();
    assert!(error.ends_with("take at least 2, and at most the number of rows of the largest class, which is 17"), "{error}");
}

#[test]
fn a_key_is_in_one_part_for_ever() {
    let key = |row: u32| u64::from(row / 3);
    let source = numbered(30_000, 1);
    let parts = split_by_key(&source, key, 42, [0.7, 0.2, 0.1]).unwrap();
    check_cover(&parts, 30_000);
    let part_of = |parts: &[Subset<&Rows>; 3], row: u32| parts.iter().position(|part| rows_of(part).contains(&row)).unwrap();
    for (part, fraction) in parts.iter().zip([0.7, 0.2, 0.1]) {
        // 10,000 keys: five standard deviations of their number.
        let (n, due, deviation) = (part.n_rows() as f64 / 3.0, fraction * 1e4, (fraction * (1.0 - fraction) * 1e4_f64).sqrt());
        assert!((n - due).abs() < 5.0 * deviation, "{n} keys where {due} are due");
        assert!(rows_of(part).chunks(3).all(|rows| rows[0] / 3 == rows[2] / 3), "all rows of a key");
    }
    // More rows are added, some with known keys.
    let more = numbered(40_000, 1);
    let grown =
        split_by_key(&more, |row| if row < 30_000 { key(row) } else { u64::from(row % 10_000) }, 42, [0.7, 0.2, 0.1]).unwrap();
    for (part, grown) in parts.iter().zip(&grown) {
        let before: Vec<u32> = rows_of(grown).into_iter().filter(|&row| row < 30_000).collect();
        assert_eq!(before, rows_of(part), "rows that were there stay where they were");
    }
    for row in (30_000..40_000).step_by(997) {
        assert_eq!(part_of(&grown, row), part_of(&grown, row % 10_000 * 3), "a row of a known key, {row}");
    }
    let [nothing, all] = split_by_key(&source, key, 1, [0.0, 1.0]).unwrap();
    assert_eq!((nothing.n_rows(), all.n_rows()), (0, 30_000));
}

/// Published values of FNV-1a.
#[test]
fn keys_of_bytes_are_pinned() {
    assert_eq!(
        [key_of(b""), key_of(b"a"), key_of(b"foobar")],
        [0xCBF2_9CE4_8422_2325, 0xAF63_DC4C_8601_EC8C, 0x8594_4171_F739_67E8]
    );
}

/// The folds of scikit-learn 1.7's `GroupKFold`.
#[test]
fn group_folds_are_those_of_scikit_learn() {
    let groups = [3, 3, 3, 3, 1, 1, 7, 7, 7, 5, 5, 9, 2, 2, 2, 2, 2];
    let source = numbered(groups.len(), 1);
    let valid = |n_folds| -> Vec<Vec<u32>> {
        let folds = group_k_fold(&source, |row| groups[row as usize], n_folds).unwrap();
        folds.iter().for_each(|fold| check_cover([&fold.train, &fold.valid], groups.len()));
        folds.iter().map(|fold| rows_of(&fold.valid)).collect()
    };
    assert_eq!(valid(2), [vec![4, 5, 9, 10, 12, 13, 14, 15, 16], vec![0, 1, 2, 3, 6, 7, 8, 11]]);
    assert_eq!(valid(3), [vec![11, 12, 13, 14, 15, 16], vec![0, 1, 2, 3, 4, 5], vec![6, 7, 8, 9, 10]]);
    let error = group_k_fold(&source, |row| groups[row as usize], 7).unwrap_err().to_string();
    assert!(error.ends_with("at most the number of groups of rows with the same key, which is 6"), "{error}");
}

#[test]
fn a_row_of_a_split_is_traced_to_its_source() {
    let source = numbered(1500, 3);
    let [train, _] = split(&source, 7, [0.7, 0.3]).unwrap();
    let part = Subset::of_rows(&train, vec![5, 900, 5]).unwrap();
    let (mut features, mut labels) = ([0.0; 9], [0.0; 3]);
    part.gather(RowSelection::Range(0..3), RowBuffers::new(&mut features, &mut labels)).unwrap();
    let stored: Vec<u32> = labels.iter().map(|&label| label as u32).collect();
    assert_eq!([0, 1, 2].map(|row| part.source_row(row)).to_vec(), stored, "labels are the rows' numbers");
    let boxed: &dyn RowSource<Feature = f32, Error = brisk_loader::Error> = &&part;
    assert_eq!(boxed.source_row(1), train.row(900));
    assert_eq!((source.source_row(9), part.source_row(3)), (9, 3), "rows that are stored, and rows that do not exist");
}

#[test]
fn groups_are_split_as_the_fractions_say_as_far_as_they_allow() {
    let rows = Rows::new(vec![0.5; 1000], vec![0.0; 1000], 1).unwrap();
    for seed in 0..20 {
        // Sizes from 1 to 39.
        let group = |row: u32| u64::from((f64::from(row) * 2.0 / 1.6).sqrt() as u32);
        let parts = group_split(&rows, group, seed, [0.7, 0.1, 0.2]).unwrap();
        let groups =
            parts.each_ref().map(|part| (0..part.n_rows() as u32).map(|row| group(part.row(row))).collect::<HashSet<_>>());
        assert!(groups[0].is_disjoint(&groups[1]) && groups[2].is_disjoint(&(&groups[0] | &groups[1])));
        let sizes = parts.each_ref().map(|part| part.n_rows());
        assert_eq!(sizes.iter().sum::<usize>(), 1000);
        assert!(sizes[0].abs_diff(700) < 60 && sizes[1].abs_diff(100) < 60 && sizes[2].abs_diff(200) < 60, "{sizes:?}");
        // As many groups as parts: none is empty, however the groups are divided.
        let few = group_split(&rows, |row| u64::from(row.min(990) / 495), seed, [0.7, 0.1, 0.2]).unwrap();
        assert!(few.iter().all(|part| part.n_rows() > 0), "{seed}");
    }
    assert!(matches!(group_split(&rows, u64::from, 1, [0.7, 0.1]), Err(Error::Fractions { .. })));
}

#[test]
fn rows_are_split_in_order_and_equal_ones_stay_together() {
    let split_of = |numbers: &[f64], fractions: [f64; 3]| {
        let rows = Rows::new(vec![0.5; numbers.len()], vec![0.0; numbers.len()], 1).unwrap();
        let parts = ordered_split(&rows, numbers, fractions).unwrap();
        parts.map(|part| (0..part.n_rows() as u32).map(|row| numbers[part.row(row) as usize]).collect::<Vec<f64>>())
    };
    let mixed: Vec<f64> = (0..100).map(|row| f64::from(row * 37 % 100)).collect();
    let [a, b, c] = split_of(&mixed, [0.7, 0.1, 0.2]);
    assert_eq!([a.len(), b.len(), c.len()], [70, 10, 20]);
    assert!(a.iter().all(|&x| x < 70.0) && b.iter().all(|x| (70.0..80.0).contains(x)) && c.iter().all(|&x| x >= 80.0));
    // Nearly all rows have the same number: the others still make sets of their own.
    let [a, b, c] = split_of(&[&[0.0, 1.0][..], &[2.0; 98]].concat(), [0.7, 0.1, 0.2]);
    assert_eq!([a, b, c], [vec![0.0], vec![1.0], vec![2.0; 98]]);
    let [a, b, c] = split_of(&[5.0, f64::NAN, 3.0, 3.0], [0.5, 0.0, 0.5]);
    assert!(a == [3.0, 3.0] && b.is_empty() && c[0] == 5.0 && c[1].is_nan());
    assert_eq!(split_of(&[7.0; 4], [0.5, 0.25, 0.25]).map(|part| part.len()).iter().sum::<usize>(), 4);
    let rows = Rows::new(vec![0.5; 4], vec![0.0; 4], 1).unwrap();
    assert!(matches!(ordered_split(&rows, &[1.0], [0.5, 0.5]), Err(Error::Length { expected: 4, found: 1, .. })));
}

#[test]
fn whole_blocks_are_split() {
    let source = described(1003, 3);
    let parts = split_by_blocks(&source, 42, 50, [0.8, 0.2]).unwrap();
    check_cover(&parts, 1003);
    // 21 blocks, the last of 3 rows.
    let expected: [usize; 2] = parts.each_ref().map(|part| {
        let rows = rows_of(part);
        assert!(rows.is_sorted(), "rows are in the order of the source");
        let blocks: HashSet<u32> = rows.iter().map(|row| row / 50).collect();
        blocks.iter().map(|&block| if block == 20 { 3 } else { 50 }).sum()
    });
    assert_eq!(parts.each_ref().map(|part| part.n_rows()), expected, "blocks are whole");
    assert!([17 * 50, 16 * 50 + 3].contains(&expected[0]), "0.8 of 21 blocks, {expected:?}");
    parts.iter().for_each(row_source_conformance);
    let of = |seed, block_rows| rows_of(&split_by_blocks(&source, seed, block_rows, [0.8, 0.2]).unwrap()[0]);
    assert_eq!(of(42, 50), rows_of(&parts[0]));
    assert_ne!(of(43, 50), of(42, 50));
    check_cover(&split_by_blocks(&source, 1, 50, [1.0, 0.0]).unwrap(), 1003);
    check_cover(&split_by_blocks(&source, 1, u32::MAX, [0.0, 1.0]).unwrap(), 1003);
    check_cover(&split_by_blocks(&numbered(100, 1), 1, 50, [0.5, 0.5]).unwrap(), 100);

    let error = split_by_blocks(&source, 1, 500, [0.9, 0.1]).unwrap_err();
    assert!(matches!(error, Error::NoBlock { fraction: 0.1, n_blocks: 3, block_rows: 500 }), "{error}");
    let error = split_by_blocks(&source, 1, 0, [0.9, 0.1]).unwrap_err();
    assert!(matches!(error, Error::Blocks { block_rows: 0, .. }), "{error}");
}

/// What a subset of whole blocks is told of consecutive rows, it passes on as runs of the source.
#[test]
fn ranges_of_whole_blocks_are_announced_as_runs() {
    let source = Recording(numbered(100, 1), Mutex::default());
    let [part, _] = split_by_blocks(&source, 3, 10, [0.5, 0.5]).unwrap();
    let rows = rows_of(&part);
    part.hint(RowSelection::Range(5..25), Hint::WillNeed);
    part.hint(RowSelection::Range(45..1000), Hint::DontNeed);
    let events = std::mem::take(&mut *source.1.lock().unwrap());
    let runs = events.iter().map(|event| match event {
        Event::Announced(rows) | Event::Released(rows) => rows.clone().map(|row| row as u32).collect::<Vec<_>>(),
        event => panic!("{event:?}"),
    });
    assert_eq!(runs.collect::<Vec<_>>(), [&rows[5..10], &rows[10..20], &rows[20..25], &rows[45..50]]);
    assert!(matches!(events[..], [Event::Announced(_), Event::Announced(_), Event::Announced(_), Event::Released(_)]));
}
