use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::Index;
use crate::checkpoint::Checkpoint;
use crate::data_parallel::{DataParallelConfig, run_threads};
use crate::error::Error;

/// A checkpoint of two files in `folder`, and its index.
fn saved(folder: &Path, generation: u64) -> (PathBuf, Index) {
    let path = folder.join("last.safetensors");
    let mut tensors = BTreeMap::new();
    for (rank, name) in ["a", "b"].into_iter().enumerate() {
        let file = Index::file_name(&path, generation, rank, 2).expect("a name in UTF-8");
        let mut part = Checkpoint::new();
        part.insert(name, &[1], vec![rank as f32]).expect("a tensor");
        part.save(folder.join(&file)).expect("there is room");
        tensors.insert(name.to_owned(), file);
    }
    let index = Index::new(generation, tensors);
    index.save(&path).expect("there is room");
    (path, index)
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("readable").map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = entries.map(|name| name.into_string().expect("UTF-8")).collect();
    names.sort();
    names
}

#[test]
fn a_changed_bit_of_the_index_is_found() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (path, _) = saved(folder.path(), 1);
    let loaded = Checkpoint::load(&path).expect("it is whole");
    assert_eq!((loaded.tensors().count(), loaded.format_version()), (2, Some(1)), "both files");
    let index = Index::path_of(&path);
    let whole = fs::read(&index).expect("readable");
    for bit in 0..8 * whole.len() {
        let mut changed = whole.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        fs::write(&index, &changed).expect("writable");
        let error = Checkpoint::load(&path).expect_err("a bit has changed");
        assert!(matches!(error, Error::Damaged { .. } | Error::WrongFile { .. }), "bit {bit}: {error}");
    }
}

#[test]
fn a_missing_file_is_damage_that_names_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (path, index) = saved(folder.path(), 1);
    fs::remove_file(folder.path().join(&index.tensors["b"])).expect("the file exists");
    let error = Checkpoint::load(&path).expect_err("a file is missing").to_string();
    assert!(error.contains("its file `last-1-00002-of-00002.safetensors` is missing"), "{error}");
}

#[test]
fn files_of_earlier_checkpoints_and_of_interrupted_ones_are_removed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    saved(folder.path(), 1);
    // What a crash leaves before there is an index, and files that are not ours.
    let others = ["best-1-00001-of-00002.safetensors", "last-1-of-2.safetensors", "last-x-00001-of-00002.safetensors"];
    let others = others.into_iter().chain([".best-9-00001-of-00002.safetensors.0123456789abcdef.tmp"]).collect::<Vec<_>>();
    let ours = ["last-9-00003-of-00004.safetensors", ".last-9-00004-of-00004.safetensors.0123456789abcdef.tmp"];
    for name in ours.iter().chain(&others) {
        fs::write(folder.path().join(name), "").expect("writable");
    }
    let path = folder.path().join("last.safetensors");
    assert_eq!(Index::next_generation(&path), 10, "beyond all that are there");
    let (_, index) = saved(folder.path(), 10);
    index.remove_other_files(&path);
    let mut expected: Vec<String> = others.into_iter().map(str::to_owned).collect();
    expected.extend(index.tensors.into_values());
    expected.push("last.safetensors.index.json".to_owned());
    expected.sort();
    assert_eq!(names(folder.path()), expected, "those of the index, and those of others");
    assert_eq!(Index::next_generation(&folder.path().join("none.safetensors")), 1, "the first");
}

#[test]
fn a_single_file_takes_the_place_of_several() -> Result<(), Error> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (path, _) = saved(folder.path(), 1);
    // One more of a checkpoint that was not finished, and one of another checkpoint.
    for name in ["last-2-00001-of-00002.safetensors", "best-1-00001-of-00002.safetensors"] {
        fs::write(folder.path().join(name), "").expect("writable");
    }
    let whole = Checkpoint::new();
    run_threads(2, &DataParallelConfig::default(), |replica| replica.save(&whole, &path, 0))?;
    assert_eq!(names(folder.path()), ["best-1-00001-of-00002.safetensors", "last.safetensors"]);
    Ok(())
}
