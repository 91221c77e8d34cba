use serde::Serialize;

/// A number that identifies what computes the values of rows, also after it was saved and loaded.
pub(super) fn digest(value: &impl Serialize) -> u64 {
    let text = serde_json::to_vec(value).expect("all maps have text as keys");
    u64::from(crc32fast::hash(&text)) << 32 | u64::from(text.len() as u32)
}
