//! Reads the scalars of TensorBoard's event files, as TensorBoard does.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A field of a protobuf message: its number, and its value as bytes.
type Field<'b> = (u64, &'b [u8]);

/// The values of each tag by step. A restart discards the values of its step and later ones; a value that is written twice is a
/// failure. A process that was killed may have left a part of a last record.
pub(crate) fn scalars(folder: &Path) -> BTreeMap<String, BTreeMap<u64, f32>> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let mut found: BTreeMap<String, BTreeMap<u64, f32>> = BTreeMap::new();
    for path in paths {
        let bytes = fs::read(path).expect("an event file");
        let mut rest = &bytes[..];
        while let Some((head, after)) = rest.split_at_checked(12) {
            let len = u64::from_le_bytes(head[..8].try_into().expect("eight bytes")) as usize;
            let Some(event) = after.get(..len) else { break };
            add(&fields(event), &mut found);
            rest = after.get(len + 4..).unwrap_or_default();
        }
    }
    found
}

fn add(event: &[Field<'_>], found: &mut BTreeMap<String, BTreeMap<u64, f32>>) {
    let step = event.iter().find(|(number, _)| *number == 2).map_or(0, |(_, step)| varint(step).0);
    if event.iter().any(|(number, _)| *number == 7) {
        found.values_mut().for_each(|values| drop(values.split_off(&step)));
    }
    for (_, summary) in event.iter().filter(|(number, _)| *number == 5) {
        for (_, value) in fields(summary) {
            let value = fields(value);
            let of = |wanted: u64| value.iter().find(|(number, _)| *number == wanted).map(|(_, value)| *value);
            let (Some(tag), Some(value)) = (of(1), of(2)) else { continue };
            let tag = String::from_utf8(tag.to_vec()).expect("a tag");
            let value = f32::from_le_bytes(value.try_into().expect("four bytes"));
            let replaced = found.entry(tag.clone()).or_default().insert(step, value);
            assert_eq!(replaced, None, "{tag} twice at step {step}");
        }
    }
}

/// The fields of a message; those that are numbers as their encoded bytes.
fn fields(mut message: &[u8]) -> Vec<Field<'_>> {
    let mut found = Vec::new();
    while !message.is_empty() {
        let (key, len) = varint(message);
        let rest = &message[len..];
        let (start, end) = match key & 7 {
            0 => (0, varint(rest).1),
            1 => (0, 8),
            2 => {
                let (len, start) = varint(rest);
                (start, start + len as usize)
            }
            _ => (0, 4),
        };
        found.push((key >> 3, &rest[start..end]));
        message = &rest[end..];
    }
    found
}

/// A number and how many bytes it takes.
fn varint(bytes: &[u8]) -> (u64, usize) {
    let len = bytes.iter().position(|byte| byte & 0x80 == 0).expect("it ends") + 1;
    (bytes[..len].iter().rev().fold(0, |number, byte| number << 7 | u64::from(byte & 0x7f)), len)
}
