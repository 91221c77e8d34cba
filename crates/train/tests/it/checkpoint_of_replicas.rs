//! Checkpoints that replicas read together: each file is read by one of them. Every replica has a folder of its own here, with
//! the files that it is to read and no others.

use std::fs;
use std::path::{Path, PathBuf};

use brisk_train::{Checkpoint, DataParallel, DataParallelConfig, Error, run_threads};
use tempfile::TempDir;

const N_FILES: usize = 3;

fn file(number: usize) -> String {
    format!("last-7-{:05}-of-00003.safetensors", number + 1)
}

fn part(number: usize) -> Checkpoint {
    let mut part = Checkpoint::new();
    // Of different lengths.
    let values = (0..1000 * number + 3).map(|i| i as f32 + 0.5).collect::<Vec<_>>();
    part.insert(format!("tensor.{number}"), &[values.len()], values).expect("a name of its own");
    part.insert_metadata(format!("part.{number}"), number);
    part
}

/// The folders of `n` replicas, the first of which has the index; and the path in each.
fn folders(n: usize, reader: impl Fn(usize) -> usize) -> (TempDir, Vec<PathBuf>) {
    let root = tempfile::tempdir().expect("a temporary folder");
    let folders: Vec<PathBuf> = (0..n).map(|rank| root.path().join(rank.to_string())).collect();
    folders.iter().for_each(|folder| fs::create_dir(folder).expect("the root is there"));
    let map: Vec<String> = (0..N_FILES).map(|number| format!("\"tensor.{number}\": \"{}\"", file(number))).collect();
    let index = format!("{{\"metadata\": {{\"generation\": 7}}, \"weight_map\": {{{}}}}}", map.join(", "));
    fs::write(folders[0].join("last.safetensors.index.json"), index).expect("there is room");
    for number in 0..N_FILES {
        part(number).save(folders[reader(number)].join(file(number))).expect("there is room");
    }
    (root, folders)
}

/// What all replicas load, or the errors of all.
fn load(folders: &[PathBuf], name: impl Fn(&DataParallel) -> &'static str + Sync) -> Vec<Result<Checkpoint, String>> {
    let loaded = run_threads(folders.len(), &DataParallelConfig::default(), |replica| {
        let path = folders[replica.rank()].join(name(replica));
        Ok::<_, Error>(replica.load_checkpoint(path).map_err(|error| error.to_string()))
    });
    loaded.expect("errors are those of loading")
}

fn names(folder: &Path) -> usize {
    fs::read_dir(folder).expect("it is there").count()
}

#[test]
fn each_file_is_read_by_one_replica() {
    for n in [1, 2, 3, 4] {
        let (_root, folders) = folders(n, |number| number % n);
        assert!(n == 1 || folders.iter().all(|folder| names(folder) < N_FILES + 1), "no replica has all of them");
        for name in ["last.safetensors", "last.safetensors.index.json"] {
            for loaded in load(&folders, |_| name) {
                let loaded = loaded.expect("all files are there");
                assert_eq!(loaded.tensors().count(), N_FILES, "{n} replicas");
                for number in 0..N_FILES {
                    let part = part(number);
                    let (tensor, shape, values) = part.tensors().next().expect("it has one");
                    assert!(loaded.tensors().any(|found| found == (tensor, shape, values)), "{n} replicas: {tensor}");
                    assert_eq!(loaded.metadata::<usize>(&format!("part.{number}"), "a number").expect("it is there"), number);
                }
            }
        }
    }
}

#[test]
fn a_single_file_is_read_by_the_first_replica() {
    let (_root, folders) = folders(3, |_| 2);
    part(1).save(folders[0].join("one.safetensors")).expect("there is room");
    for loaded in load(&folders, |_| "one.safetensors") {
        assert!(loaded.expect("the first has it").tensors().eq(part(1).tensors()));
    }
}

#[test]
fn an_error_of_one_replica_is_that_of_all() {
    let (_root, folders) = folders(3, |number| number);
    let errors = |name: fn(&DataParallel) -> &'static str| {
        let errors = load(&folders, name).into_iter().map(|loaded| loaded.expect_err("it cannot be read"));
        errors.collect::<Vec<String>>()
    };
    for error in errors(|_| "none.safetensors") {
        assert!(error.contains("none.safetensors"), "{error}");
    }
    for error in errors(|replica| if replica.rank() == 1 { "best.safetensors" } else { "last.safetensors" }) {
        assert!(error.contains("best.safetensors") && error.contains("last.safetensors"), "{error}");
    }
    fs::write(folders[1].join(file(1)), "half").expect("there is room");
    for error in errors(|_| "last.safetensors") {
        assert!(error.contains(&file(1)), "{error}");
    }
    fs::remove_file(folders[1].join(file(1))).expect("it is there");
    for error in errors(|_| "last.safetensors") {
        assert!(error.contains(&format!("its file `{}` is missing", file(1))), "{error}");
    }
    fs::create_dir(folders[1].join(file(1))).expect("there is room");
    for error in errors(|_| "last.safetensors") {
        assert!(error.contains(&file(1)) && error.contains("folder"), "{error}");
    }
}
