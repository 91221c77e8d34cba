//! How a flat gradient buffer is cut into buckets.

use std::ops::Range;

use brisk_replicate::{BucketSizes, buckets};

#[track_caller]
fn check(parameters: &[Range<usize>], sizes: (usize, usize), expected: &[(Range<usize>, Range<usize>)]) {
    let cut = buckets(parameters, 4, BucketSizes { first_bytes: sizes.0, bytes: sizes.1 });
    let found: Vec<_> = cut.into_iter().map(|bucket| (bucket.parameters, bucket.elements)).collect();
    assert_eq!(found, expected, "{parameters:?} by {sizes:?}");
}

/// The element ranges of parameters of these lengths, one after the other.
fn lengths<const N: usize>(lengths: [usize; N]) -> [Range<usize>; N] {
    let mut end = 0;
    lengths.map(|len| {
        end += len;
        end - len..end
    })
}

#[test]
fn cuts() {
    check(&[], (4, 4), &[]);
    check(&lengths([10]), (4, 4), &[(0..1, 0..10)]);
    // The first is small, the next hold more.
    check(&lengths([10; 4]), (40, 80), &[(3..4, 30..40), (1..3, 10..30), (0..1, 0..10)]);
    // Alignment padding belongs to the parameter before it.
    check(&[0..10, 64..65, 128..130], (4, 4), &[(2..3, 128..130), (1..2, 64..128), (0..1, 0..64)]);
    // A parameter that is larger than a bucket becomes one.
    check(&lengths([1000, 1]), (4, 16), &[(1..2, 1000..1001), (0..1, 0..1000)]);
    // The remaining parameters become one too.
    check(&lengths([1; 3]), (1000, 1000), &[(0..3, 0..3)]);
}

#[test]
fn every_element_is_in_one_bucket() {
    let parameters: Vec<_> = (0..57).map(|i| i * 640..i * 640 + 1 + (i * 37) % 640).collect();
    let cut = buckets(&parameters, 4, BucketSizes { first_bytes: 5000, bytes: 20_000 });
    let ends: Vec<_> = cut.iter().rev().map(|bucket| bucket.elements.clone()).collect();
    assert_eq!(ends.first().map(|range| range.start), Some(0));
    assert!(ends.windows(2).all(|pair| pair[0].end == pair[1].start), "{ends:?}");
    assert_eq!(ends.last().map(|range| range.end), parameters.last().map(|range| range.end));
    assert!(cut.iter().all(|bucket| bucket.elements.start == parameters[bucket.parameters.start].start), "{cut:?}");
}
