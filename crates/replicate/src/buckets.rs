use std::ops::Range;

use serde::{Deserialize, Serialize};

/// Gradients that are reduced together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucket {
    /// The indices of its parameters, in the order in which they were registered.
    pub parameters: Range<usize>,
    /// Their elements in the flat gradient buffer, including the alignment padding between them.
    pub elements: Range<usize>,
}

/// How large buckets are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BucketSizes {
    /// Bytes of the first to be reduced, which is small so that communication starts early.
    pub first_bytes: usize,
    /// Bytes of the others.
    pub bytes: usize,
}

impl Default for BucketSizes {
    /// 1 MiB, then 4 MiB: over shared memory and over 10 Gbit/s alike, larger ones are no faster (25 MiB is NCCL's figure).
    fn default() -> Self {
        Self { first_bytes: 1 << 20, bytes: 4 << 20 }
    }
}

/// Cuts a flat gradient buffer into buckets, the last parameters first: roughly the order of the backward pass.
///
/// `parameters` are the element ranges of the parameters, in ascending order. A bucket is closed when it has reached its size; a
/// parameter is never split. All ranks must use the same buckets, which they do for the same model, and must reduce them in this
/// order, whichever is ready first.
///
/// # Reference
/// `torch.nn.parallel.DistributedDataParallel`, `bucket_cap_mb`.
/// # Examples
/// ```
/// use brisk_replicate::{BucketSizes, buckets};
///
/// let cut = buckets(&[0..100, 100..140, 192..200], 4, BucketSizes { first_bytes: 16, bytes: 512 });
/// assert_eq!(cut.iter().map(|bucket| bucket.parameters.clone()).collect::<Vec<_>>(), [2..3, 0..2]);
/// assert_eq!(cut[1].elements, 0..192);
/// ```
pub fn buckets(parameters: &[Range<usize>], element_bytes: usize, sizes: BucketSizes) -> Vec<Bucket> {
    let mut cut: Vec<Bucket> = Vec::new();
    let mut open: Option<Bucket> = None;
    for (i, elements) in parameters.iter().enumerate().rev() {
        // The elements between a parameter and the next one are alignment padding.
        let end = parameters.get(i + 1).map_or(elements.end, |next| next.start);
        let bucket = open.get_or_insert(Bucket { parameters: i..i + 1, elements: elements.start..end });
        bucket.parameters.start = i;
        bucket.elements.start = elements.start;
        let size = if cut.is_empty() { sizes.first_bytes } else { sizes.bytes };
        if bucket.elements.len() * element_bytes >= size {
            cut.extend(open.take());
        }
    }
    cut.extend(open);
    cut
}
