use std::ops::Range;

use serde_core::de::Error as _;
use serde_json::Value;

use super::json_entry::strings_of;
use super::unique_json::Unique;
use super::{MAX_HEADER_BYTES, MAX_RANK, PREFIX_BYTES};
use crate::dtype::DType;
use crate::error::FormatError;

/// The positions of everything in a safetensors file.
#[derive(Debug, Clone, PartialEq)]
pub struct Layout {
    /// The tensors in the order of their bytes.
    pub tensors: Vec<Tensor>,
    /// The strings of `__metadata__`, sorted by their keys.
    pub metadata: Vec<(String, String)>,
    /// The byte of the file at which the first tensor starts.
    pub data_start: usize,
}

/// One tensor: its bytes are `range` of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    /// Its name.
    pub name: String,
    /// The type of its values.
    pub dtype: DType,
    /// Its shape, row-major.
    pub shape: Vec<usize>,
    /// Its bytes, counted from the start of the file.
    pub range: Range<usize>,
}

/// The number of bytes of JSON that follow the first eight bytes of a file of `file_bytes`.
///
/// # Errors
/// [`FormatError::HeaderTooLong`] and [`FormatError::HeaderPastEnd`]: the returned number of bytes can safely be allocated and
/// read.
pub fn header_bytes(first_eight: [u8; 8], file_bytes: u64) -> Result<usize, FormatError> {
    let found = u64::from_le_bytes(first_eight);
    if found > MAX_HEADER_BYTES {
        return Err(FormatError::HeaderTooLong { found, limit: MAX_HEADER_BYTES });
    }
    let header_end = found + PREFIX_BYTES as u64;
    if header_end > file_bytes {
        return Err(FormatError::HeaderPastEnd { header_end, file_bytes });
    }
    Ok(found as usize)
}

impl Layout {
    /// Parses a header of [`header_bytes`] bytes, and checks that everything in it is consistent.
    ///
    /// # Errors
    /// One of [`FormatError`]'s variants, with the numbers in it, unless names are unique, shapes can be counted, and the
    /// tensors' ranges cover the rest of the file in order without gap or overlap, each as long as its shape and dtype require.
    /// # Cost
    /// Proportional to the length of the header; the tensors are not read.
    /// # Examples
    /// ```
    /// use brisk_table::format::{Layout, header_bytes};
    ///
    /// let json = br#"{"features":{"dtype":"F32","shape":[3,2],"data_offsets":[0,24]}}"#;
    /// let file_bytes = 8 + json.len() as u64 + 24;
    /// assert_eq!(header_bytes((json.len() as u64).to_le_bytes(), file_bytes)?, json.len());
    /// let layout = Layout::parse(json, file_bytes)?;
    /// assert_eq!(layout.tensor("features").unwrap().shape, [3, 2]);
    ///
    /// let truncated = Layout::parse(json, file_bytes - 1).unwrap_err();
    /// assert_eq!(truncated.to_string(), "the tensors end at byte 96, the file has 95; it is truncated, write it again");
    /// # Ok::<(), brisk_table::format::FormatError>(())
    /// ```
    pub fn parse(header: &[u8], file_bytes: u64) -> Result<Self, FormatError> {
        let Unique(claims) = serde_json::from_slice(header).map_err(FormatError::Json)?;
        let Value::Object(mut claims) = claims else { return Err(invalid("it is not an object of tensors by name".to_owned())) };
        let metadata = match claims.remove("__metadata__") {
            Some(metadata) => {
                strings_of(metadata).ok_or_else(|| invalid("`__metadata__` is not an object of strings".to_owned()))?
            }
            None => Vec::new(),
        };
        let data_start = PREFIX_BYTES + header.len();
        let mut tensors = claims.into_iter().map(|(name, claim)| check_tensor(name, &claim)).collect::<Result<Vec<_>, _>>()?;
        tensors.sort_by_key(|tensor| (tensor.range.start, tensor.range.end));

        let mut end = 0;
        for tensor in &tensors {
            if tensor.range.start != end {
                let (expected, found) = (end as u64, tensor.range.start as u64);
                return Err(FormatError::NotContiguous { tensor: tensor.name.clone(), expected, found });
            }
            end = tensor.range.end;
        }
        let expected = (end as u64).saturating_add(data_start as u64);
        if expected != file_bytes {
            return Err(FormatError::FileLength { expected, found: file_bytes });
        }
        for tensor in &mut tensors {
            // Cannot overflow: the last tensor ends at the end of the file.
            tensor.range = tensor.range.start + data_start..tensor.range.end + data_start;
        }
        Ok(Self { tensors, metadata, data_start })
    }

    /// The tensor of that name.
    pub fn tensor(&self, name: &str) -> Option<&Tensor> {
        self.tensors.iter().find(|tensor| tensor.name == name)
    }
}

/// Checks that shape, dtype and range are consistent; `range` is still counted from the end of the header.
fn check_tensor(name: String, claim: &Value) -> Result<Tensor, FormatError> {
    let wrong = |field: &str| invalid(format!("tensor `{name}`: `{field}` is missing or invalid"));
    let counts = |field: &str| {
        let counts = claim[field].as_array().and_then(|counts| counts.iter().map(Value::as_u64).collect::<Option<Vec<u64>>>());
        counts.ok_or_else(|| wrong(field))
    };
    let found = claim["dtype"].as_str().ok_or_else(|| wrong("dtype"))?;
    let claimed = counts("shape")?;
    let [start, end] = <[u64; 2]>::try_from(counts("data_offsets")?).map_err(|_| wrong("data_offsets"))?;
    let is_unknown = |field: &&String| !["dtype", "shape", "data_offsets"].contains(&field.as_str());
    if let Some(field) = claim.as_object().and_then(|fields| fields.keys().find(is_unknown)) {
        return Err(invalid(format!("tensor `{name}` has an unknown field `{field}`")));
    }
    let Some(dtype) = DType::from_name(found) else {
        return Err(FormatError::UnknownDType { tensor: name, found: found.to_owned() });
    };
    let Some((shape, n_bytes)) = checked_shape(&claimed, dtype) else {
        return Err(FormatError::ShapeTooLarge { tensor: name, shape: claimed });
    };
    match (usize::try_from(start), usize::try_from(end)) {
        (Ok(first), Ok(last)) if first.checked_add(n_bytes) == Some(last) => {
            Ok(Tensor { name, dtype, shape, range: first..last })
        }
        _ => Err(FormatError::RangeDisagrees { tensor: name, dtype, shape, expected: n_bytes as u64, start, end }),
    }
}

fn invalid(problem: String) -> FormatError {
    FormatError::Json(serde_json::Error::custom(problem))
}

/// The shape as `usize`, and its number of bytes; `None` if that overflows.
///
/// Zeros are left out of the product, so that a dimension of 0 does not hide an overflow of the others.
fn checked_shape(claimed: &[u64], dtype: DType) -> Option<(Vec<usize>, usize)> {
    if claimed.len() > MAX_RANK {
        return None;
    }
    let shape = claimed.iter().map(|&n| usize::try_from(n).ok()).collect::<Option<Vec<_>>>()?;
    let n_bytes = shape.iter().filter(|&&n| n != 0).try_fold(dtype.n_bytes(), |bytes, &n| bytes.checked_mul(n))?;
    Some(if shape.contains(&0) { (shape, 0) } else { (shape, n_bytes) })
}
