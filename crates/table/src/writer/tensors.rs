use crate::checksum::BLOCK_BYTES;
use crate::dtype::DType;
use crate::format::{self, CATEGORIES, CHECKSUMS, FEATURES, LABELS, PADDING, TableMetadata, WEIGHTS};
use crate::schema::{Schema, Weights};
use crate::statistics::ColumnStatistics;

/// Room in the header for dictionaries or classes, whose length is only known at the end. If they get longer, the data is moved.
pub(super) const UNKNOWN_NAMES_BYTES: usize = 64 << 10;

/// Name, dtype, shape and length in bytes.
pub(super) type TensorPlan = (&'static str, DType, Vec<usize>, usize);

/// The tensors of a table of `n_rows`, in the order of the file: each starts at a multiple of its element's size.
pub(super) fn tensors(schema: &Schema, n_rows: usize) -> Vec<TensorPlan> {
    // Saturating, because this is also called for the longest possible header.
    let plan = |name, dtype: DType, row_shape: &[usize]| {
        let n_values = row_shape.iter().fold(n_rows, |n, &dimension| n.saturating_mul(dimension));
        let shape = std::iter::once(n_rows).chain(row_shape.iter().copied()).collect();
        (name, dtype, shape, n_values.saturating_mul(dtype.n_bytes()))
    };
    let features = plan(FEATURES, schema.dtype, &schema.row_shape);
    let label_shape = if schema.n_labels == 1 { &[][..] } else { &[schema.n_labels][..] };
    let labels = plan(LABELS, schema.label_dtype, label_shape);

    // One gap of less than 8 bytes suffices: before the labels, or after them if their elements are smaller.
    let alignment = schema.label_dtype.n_bytes().max(DType::U32.n_bytes());
    let label_first = schema.label_dtype.n_bytes() < DType::U32.n_bytes();
    let end = if label_first { features.3.saturating_add(labels.3) } else { features.3 };
    let gap = end.wrapping_neg() % alignment;
    let padding = (gap > 0).then(|| (PADDING, DType::U8, vec![gap], gap));

    let mut tensors = vec![features];
    if label_first {
        tensors.push(labels);
        tensors.extend(padding);
    } else {
        tensors.extend(padding);
        tensors.push(labels);
    }
    if !schema.categories.is_empty() {
        tensors.push(plan(CATEGORIES, DType::U32, &[schema.categories.len()]));
    }
    if schema.weights == Weights::Present {
        tensors.push(plan(WEIGHTS, DType::F32, &[]));
    }
    let n_bytes = tensors.iter().map(|tensor| tensor.3).fold(0, usize::saturating_add);
    let n_sums = 1 + n_bytes.div_ceil(BLOCK_BYTES);
    tensors.push((CHECKSUMS, DType::U32, vec![n_sums], n_sums * DType::U32.n_bytes()));
    tensors
}

/// Room for any header of that schema: the header of a table with the largest sizes and the longest numbers. Only dictionaries,
/// classes and imputed values may exceed it.
pub(super) fn longest_header(schema: &Schema, metadata: &TableMetadata) -> usize {
    let longest = -2.225_073_858_507_201_4e-308;
    let column = ColumnStatistics { count: u64::MAX, mean: longest, std: longest, min: longest, max: longest };
    let mut entries = metadata.encode();
    let statistics = TableMetadata { statistics: Some(vec![column; schema.n_statistics()]), ..TableMetadata::default() };
    entries.extend(statistics.encode());
    let mut tensors = tensors(schema, usize::MAX);
    tensors.push((PADDING, DType::U8, vec![usize::MAX], usize::MAX));
    let dictionaries = if schema.categories.is_empty() { 0 } else { UNKNOWN_NAMES_BYTES };
    format::encoded_len(&tensors, &entries) + dictionaries
}
