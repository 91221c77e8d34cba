use serde_json::{Map, Value, json};

use super::{PAGE_BYTES, PREFIX_BYTES};
use crate::dtype::DType;

/// Encodes the first bytes of a file: the length of the header, the header, and spaces up to `data_start`.
///
/// `tensors`: name, dtype, shape and length in bytes, in the order of the file. `None` if the header does not fit.
pub(crate) fn encode(
    tensors: &[(&str, DType, Vec<usize>, usize)],
    metadata: &[(&str, String)],
    data_start: usize,
) -> Option<Vec<u8>> {
    let mut bytes = vec![b' '; data_start];
    let json = header_json(tensors, metadata);
    let header_len = data_start.checked_sub(PREFIX_BYTES)?;
    bytes[..PREFIX_BYTES].copy_from_slice(&(header_len as u64).to_le_bytes());
    bytes.get_mut(PREFIX_BYTES..PREFIX_BYTES + json.len())?.copy_from_slice(json.as_bytes());
    Some(bytes)
}

/// Where the data of a file with this header starts, rounded up to whole pages.
pub(crate) fn encoded_len(tensors: &[(&str, DType, Vec<usize>, usize)], metadata: &[(&str, String)]) -> usize {
    (PREFIX_BYTES + header_json(tensors, metadata).len()).next_multiple_of(PAGE_BYTES)
}

fn header_json(tensors: &[(&str, DType, Vec<usize>, usize)], metadata: &[(&str, String)]) -> String {
    let mut header = Map::new();
    let metadata = metadata.iter().map(|(key, value)| ((*key).to_owned(), Value::from(value.as_str())));
    header.insert("__metadata__".to_owned(), Value::Object(metadata.collect()));
    let mut start = 0_usize;
    for (name, dtype, shape, n_bytes) in tensors {
        // Saturating, because headers with the largest possible sizes are also encoded, to find the longest possible header.
        let end = start.saturating_add(*n_bytes);
        header.insert((*name).to_owned(), json!({ "dtype": dtype.name(), "shape": shape, "data_offsets": [start, end] }));
        start = end;
    }
    Value::Object(header).to_string()
}
