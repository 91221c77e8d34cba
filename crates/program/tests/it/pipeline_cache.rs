use std::path::Path;

use brisk_program::kernels::DType;
use brisk_program::{Device, Persistent, PipelineCache, Program, Selection};
use tempfile::TempDir;

use crate::gpu::{gpu, say};
use crate::toy::{Bump, Mix};

/// Opens a device with a cache in `folder`, compiles and runs; `None` if the adapter has no such cache, which has been reported.
fn work(folder: &Path) -> Option<[PipelineCache; 2]> {
    let name = gpu()?.info().name.clone();
    let device = Device::builder().selection(Selection::Name(name)).pipeline_cache(folder).open().expect("it opens");
    let Some(opened) = device.pipeline_cache() else {
        say(&format!("{} keeps no pipeline cache: ITS CHECKS DO NOT RUN", device.info()));
        return None;
    };
    let x = Persistent::new("x", DType::U32, 64);
    let mut program = Program::new("bump");
    let slice = program.persistent(&x);
    let y = program.transient("y", DType::U32, 64);
    program.push(Bump { n: 64 }, &[slice]).expect("a bump");
    program.push(Mix { n: 64, salt: 1 }, &[slice, slice, y]).expect("a mix");
    device.compile(&program).expect("it compiles").run(2).expect("it runs");
    assert_eq!(device.read::<u32>(&x).expect("x"), [6; 64], "the same as without a cache");
    Some([opened, device.pipeline_cache().expect("it is still there")])
}

#[test]
fn the_next_process_finds_it() {
    let root = TempDir::new().expect("a folder");
    let folder = root.path().join("made/when needed");
    let Some([opened, compiled]) = work(&folder) else { return };
    assert_eq!((opened.loaded_bytes, &opened.not_loaded, opened.saved_bytes), (0, &None, 0), "there was none");
    assert!(compiled.saved_bytes > 0 && compiled.not_saved.is_none(), "{compiled:?}");
    let len = std::fs::metadata(&compiled.path).expect("the file").len();
    assert_eq!(len, compiled.saved_bytes as u64 + 4, "the data and their sum");
    let [opened, _] = work(&folder).expect("it was there before");
    assert_eq!((opened.loaded_bytes, &opened.not_loaded), (compiled.saved_bytes, &None), "all of it");
    let n_files = std::fs::read_dir(&folder).expect("the folder").count();
    assert_eq!(n_files, 1, "nothing else is left there");
}

#[test]
fn a_damaged_file_is_passed_over() {
    let folder = TempDir::new().expect("a folder");
    let Some([_, saved]) = work(folder.path()) else { return };
    let whole = std::fs::read(&saved.path).expect("the file");
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    let damaged = [vec![], vec![7; 3], whole[..whole.len() / 2].to_vec(), flipped, b"something else entirely".to_vec()];
    for bytes in damaged {
        std::fs::write(&saved.path, &bytes).expect("the file");
        let [opened, compiled] = work(folder.path()).expect("it was there before");
        assert_eq!(opened.loaded_bytes, 0, "{} bytes", bytes.len());
        assert!(opened.not_loaded.as_ref().is_some_and(|reason| reason.contains("checksum")), "{opened:?}");
        assert!(compiled.saved_bytes > 0, "it is written again: {compiled:?}");
    }
}

#[test]
fn a_folder_that_cannot_be_is_no_error() {
    let root = TempDir::new().expect("a folder");
    let file = root.path().join("file");
    std::fs::write(&file, b"not a folder").expect("the file");
    let Some([opened, compiled]) = work(&file) else { return };
    assert_eq!(opened.loaded_bytes, 0, "{opened:?}");
    assert!(compiled.not_saved.is_some() && compiled.saved_bytes == 0, "{compiled:?}");
}

#[test]
fn none_unless_asked_for() {
    assert_eq!(Device::cpu().expect("threads").pipeline_cache(), None, "the cpu has no pipelines");
    let Some(gpu) = gpu() else { return };
    assert_eq!(gpu.pipeline_cache(), None, "no folder was given");
}

#[test]
fn files_of_killed_writers_are_removed() {
    let folder = TempDir::new().expect("a folder");
    let Some([_, saved]) = work(folder.path()) else { return };
    std::fs::write(&saved.path, b"damaged, so that it is written again").expect("the file");
    let name = saved.path.file_name().and_then(|name| name.to_str()).expect("the name of an adapter");
    let temporary = |name: &str, id: u64| folder.path().join(format!(".{name}.{id:016x}.tmp"));
    let [abandoned, live, of_another] = [temporary(name, 1), temporary(name, 2), temporary("another-adapter.bin", 3)];
    for path in [&abandoned, &live, &of_another] {
        std::fs::write(path, b"half").expect("the file");
    }
    let writer = std::fs::File::open(&live).expect("the file");
    writer.try_lock().expect("no other process has locked it");
    work(folder.path()).expect("there was a cache before");
    assert_eq!([abandoned, live, of_another].map(|path| path.exists()), [false, true, true]);
}
