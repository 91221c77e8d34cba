//! Invariants of any bytes that are loaded as a checkpoint. The fuzz targets run these functions on their own bytes, the tests on
//! damaged files.

use std::fs;
use std::path::Path;

use brisk_train::Checkpoint;

/// As a checkpoint file: it is refused, or all of it can be read and it is the same after saving it again.
pub(crate) fn check_checkpoint(bytes: &[u8], scratch: &Path) {
    let path = scratch.join("any.safetensors");
    fs::write(&path, bytes).expect("the folder for temporary files takes a small one");
    let Ok(checkpoint) = Checkpoint::load(&path) else { return };
    check_loaded(&checkpoint);
    let again = scratch.join("again.safetensors");
    checkpoint.save(&again).expect("what was loaded can be saved");
    let loaded = Checkpoint::load(&again).expect("what was saved can be loaded");
    assert!(same(&checkpoint, &loaded), "a checkpoint differs after it was saved and loaded");
    assert_eq!(checkpoint.fingerprint(), loaded.fingerprint(), "the fingerprint depends on more than the content");
}

/// As the index of a checkpoint of several files, in whose folder `parts` lie: it is refused, or the checkpoint has every tensor
/// that it names, and only the files in that folder were read.
pub(crate) fn check_index(bytes: &[u8], parts: &Path) {
    let path = parts.join("any.safetensors.index.json");
    fs::write(&path, bytes).expect("the folder for temporary files takes a small one");
    let Ok(checkpoint) = Checkpoint::load(&path) else { return };
    check_loaded(&checkpoint);
    let index: serde_json::Value = serde_json::from_slice(bytes).expect("an index that was taken is JSON");
    let named = index["weight_map"].as_object().expect("an index that was taken names tensors");
    for (tensor, file) in named {
        let file = file.as_str().expect("a file has a name");
        assert_eq!(Path::new(file).components().count(), 1, "{file:?} is not a file beside the index");
        assert!(checkpoint.tensors().any(|(name, ..)| name == tensor), "`{tensor}` is named and was not loaded");
    }
}

/// A small checkpoint with a tensor of each type.
pub(crate) fn checkpoint(names: [&str; 2]) -> Checkpoint {
    let mut checkpoint = Checkpoint::new();
    checkpoint.insert(names[0], &[2, 3], vec![0.5_f32, -0.0, f32::NAN, f32::INFINITY, 1e-45, 3.25]).expect("six values");
    checkpoint.insert(names[1], &[2], vec![7_u32, u32::MAX]).expect("two values");
    checkpoint.insert_metadata("step", 1200);
    checkpoint.insert_metadata("model", "mlp \"größer\"\n");
    checkpoint
}

/// The two files of a checkpoint with an index, as [`check_index`] expects them.
pub(crate) fn write_parts(parts: &Path) {
    checkpoint(["a", "b"]).save(parts.join("last-1-00001-of-00002.safetensors")).expect("saved");
    checkpoint(["c", "d"]).save(parts.join("last-1-00002-of-00002.safetensors")).expect("saved");
}

/// A checkpoint's tensors have as many values as their shapes say, and can be read.
fn check_loaded(checkpoint: &Checkpoint) {
    for (name, shape, values) in checkpoint.tensors() {
        assert_eq!(values.len(), shape.iter().product::<usize>(), "`{name}` has not as many values as its shape says");
        let found = (checkpoint.f32(name, shape).is_ok(), checkpoint.u32(name, shape).is_ok());
        assert_eq!(found, (values.dtype() == "f32", values.dtype() == "u32"), "`{name}` has more or less than one type");
        assert!(checkpoint.f32(name, &[usize::MAX, 3]).is_err(), "`{name}` is taken for one of another shape");
    }
    assert!(checkpoint.f32("no such tensor", &[1]).is_err(), "there is a tensor that is not there");
    for (key, value) in checkpoint.all_metadata() {
        assert_eq!(
            checkpoint.metadata::<String>(key, "a text").ok().as_deref(),
            Some(value),
            "`{key}` is another when asked for"
        );
    }
}

/// Bit by bit, so that NaN equals itself.
fn same(a: &Checkpoint, b: &Checkpoint) -> bool {
    let bits = |checkpoint: &Checkpoint| -> Vec<_> {
        let tensors = checkpoint.tensors();
        tensors
            .map(|(name, shape, values)| (name.to_owned(), shape.to_vec(), values.dtype(), values.as_bytes().to_vec()))
            .collect()
    };
    bits(a) == bits(b) && a.all_metadata().eq(b.all_metadata())
}
