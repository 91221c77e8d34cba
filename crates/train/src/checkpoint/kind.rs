//! What kind of file it is if it is not a checkpoint, or how much of a checkpoint it has.

use std::path::PathBuf;

use serde_json::Value;

use crate::error::Error;

/// Bytes of the header's length, with which a file begins.
pub(super) const LENGTH_BYTES: usize = 8;

/// The longest header that safetensors allows.
pub(super) const MAX_HEADER_BYTES: u64 = 100_000_000;

/// The error for a file that is not a model's.
pub(crate) fn not_a_model(path: PathBuf, found: &str) -> Error {
    let expected = "the safetensors file of a model, as `Model::save` and runs write".into();
    Error::WrongFile { path, found: found.to_owned(), expected }
}

/// What a file is, by its first bytes, and what to do about it; `None` if it may be a safetensors file: eight bytes for the
/// length of the header, then the header in braces.
pub(super) fn foreign(bytes: &[u8]) -> Option<&'static str> {
    const PICKLE: &str = "a Python pickle; convert it in Python by `safetensors.torch.save_file(state_dict, path)`";
    const KINDS: [(&[u8], &str); 8] = [
        (
            b"PK\x03\x04",
            "a zip archive, as `torch.save` writes; convert it in Python by `safetensors.torch.save_file(state_dict, path)`",
        ),
        (b"\x80\x02", PICKLE),
        (b"\x80\x04", PICKLE),
        (b"\x80\x05", PICKLE),
        (b"\x93NUMPY", "a NumPy array; convert it in Python by `safetensors.numpy.save_file(tensors, path)`"),
        (b"\x89HDF", "an HDF5 file, as Keras writes; convert it in Python by `safetensors.numpy.save_file(tensors, path)`"),
        (b"GGUF", "a GGUF file; convert its tensors to safetensors"),
        (b"\x1f\x8b", "a gzip file; unpack it first"),
    ];
    let (head, rest) = bytes.split_at_checked(LENGTH_BYTES)?;
    let is_text = head.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace());
    if rest.first() == Some(&b'{') && !is_text {
        return None;
    }
    if let Some((_, what)) = KINDS.into_iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return Some(what);
    }
    is_text.then(|| match head.trim_ascii_start().first() {
        Some(b'{' | b'[') => "JSON; give the path of the safetensors file",
        Some(b'<') => "HTML or XML; perhaps a web page was saved instead of the file",
        _ => "text; give the path of the safetensors file",
    })
}

/// Why the lengths in a file of `len` bytes do not fit the file, if they do not. `bytes` are its first ones, with the header.
pub(super) fn misfit(bytes: &[u8], len: u64) -> Option<String> {
    let Some((head, rest)) = bytes.split_first_chunk::<LENGTH_BYTES>() else {
        return Some(format!(
            "{len} bytes are too few for a safetensors file, which begins with {LENGTH_BYTES} bytes and a header"
        ));
    };
    let header_bytes = u64::from_le_bytes(*head);
    if header_bytes > MAX_HEADER_BYTES {
        return Some(format!(
            "it is not a safetensors file: its header would have {header_bytes} bytes, at most {MAX_HEADER_BYTES} are allowed"
        ));
    }
    let header_end = LENGTH_BYTES as u64 + header_bytes;
    if header_end > len {
        return Some(format!(
            "it is cut off within its header: the header ends at byte {header_end}, {} are missing",
            header_end - len
        ));
    }
    let header: Value = serde_json::from_slice(rest.get(..header_bytes as usize)?).ok()?;
    let ends = header
        .as_object()?
        .iter()
        .filter(|(name, _)| *name != "__metadata__")
        .map(|(_, tensor)| tensor["data_offsets"][1].as_u64());
    let data_bytes = ends.flatten().max().unwrap_or(0);
    let expected = header_end.checked_add(data_bytes)?;
    (expected > len)
        .then(|| format!("it is cut off: its tensors end at byte {expected}, {} are missing", expected - len))
        .or_else(|| (expected < len).then(|| format!("its tensors end at byte {expected}, {} more follow", len - expected)))
}
