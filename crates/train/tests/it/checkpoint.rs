use std::fs::{self, OpenOptions};
use std::path::Path;
use std::process::Command;

use brisk_train::{Checkpoint, Error, TensorData};

fn checkpoint() -> Checkpoint {
    let mut checkpoint = Checkpoint::new();
    let weight = vec![0.5, -0.0, f32::NAN, f32::INFINITY, 1e-45, 3.25];
    checkpoint.insert("linear.weight", &[2, 3], weight).expect("six values");
    checkpoint.insert("random.counter", &[2], vec![7_u32, u32::MAX]).expect("two values");
    checkpoint.insert("scale", &[], vec![65536.0_f32]).expect("a scalar");
    checkpoint.insert("nothing", &[0, 4], Vec::<f32>::new()).expect("no values");
    checkpoint.insert_metadata("step", 1200);
    checkpoint.insert_metadata("model", "mlp \"größer\"\n");
    checkpoint
}

fn bytes(checkpoint: &Checkpoint) -> Vec<u8> {
    let mut bytes = Vec::new();
    checkpoint.write_to(&mut bytes).expect("memory takes it");
    bytes
}

fn message<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    result.expect_err("an error").to_string()
}

#[test]
fn a_file_is_read_back_to_the_bit() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("last.safetensors");
    let saved = checkpoint();
    saved.save(&path).expect("saved");
    let loaded = Checkpoint::load(&path).expect("loaded");

    let values: Vec<_> = loaded.tensors().map(|(name, shape, values)| (name, shape.to_vec(), values.as_bytes())).collect();
    let expected: Vec<_> = saved.tensors().map(|(name, shape, values)| (name, shape.to_vec(), values.as_bytes())).collect();
    assert_eq!(values, expected, "tensors");
    assert!(loaded.all_metadata().eq(saved.all_metadata()), "metadata");

    assert_eq!(loaded.u32("random.counter", &[2]).expect("u32"), [7, u32::MAX], "u32");
    assert_eq!(loaded.f32("scale", &[]).expect("f32"), [65536.0], "f32");
    assert!(loaded.f32("nothing", &[0, 4]).expect("f32").is_empty(), "nothing");
    assert_eq!(loaded.metadata::<u64>("step", "a number of steps").expect("a number"), 1200, "metadata");
    assert_eq!(loaded.metadata::<String>("model", "a name").expect("a string"), "mlp \"größer\"\n", "metadata");
}

#[test]
fn the_same_content_gives_the_same_bytes() {
    let mut reversed = Checkpoint::new();
    for (name, shape, values) in checkpoint().tensors().collect::<Vec<_>>().into_iter().rev() {
        reversed.insert(name, shape, values.clone()).expect("new");
    }
    for (key, value) in checkpoint().all_metadata().collect::<Vec<_>>().into_iter().rev() {
        reversed.insert_metadata(key, value);
    }
    let bytes = bytes(&checkpoint());
    assert_eq!(bytes, self::bytes(&reversed), "in any order");
    let header_bytes = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"));
    assert_eq!(header_bytes % 8, 0, "tensors are aligned");
}

#[test]
fn an_empty_checkpoint_is_one_too() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("empty");
    Checkpoint::new().save(&path).expect("saved");
    assert_eq!(Checkpoint::load(&path).expect("loaded").tensors().count(), 0, "no tensors");
}

#[test]
fn a_file_cut_off_anywhere_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("cut");
    let whole = bytes(&checkpoint());
    for n_bytes in 0..whole.len() {
        fs::write(&path, &whole[..n_bytes]).expect("written");
        let error = Checkpoint::load(&path).expect_err("not whole");
        assert!(
            matches!(error, Error::Damaged { len_bytes: Some(len_bytes), .. } if len_bytes == n_bytes as u64),
            "{n_bytes} bytes: {error}"
        );
    }
    fs::write(&path, [&whole[..], b"x"].concat()).expect("written");
    assert!(matches!(Checkpoint::load(&path), Err(Error::Damaged { .. })), "a byte too many");
    fs::write(&path, [0xff; 100]).expect("written");
    assert!(matches!(Checkpoint::load(&path), Err(Error::Damaged { .. })), "a header of 2^64 bytes");
    let error = message(Checkpoint::load(folder.path().join("absent")));
    assert!(error.contains("absent: cannot read the checkpoint"), "{error}");
}

#[test]
fn heads_are_checked_without_the_values() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("last.safetensors");
    for check in [|path: &Path| Checkpoint::check_heads(path), |path: &Path| Checkpoint::load(path).map(drop)] {
        let missing = message(check(&path));
        assert!(missing.contains("last.safetensors: cannot read the checkpoint: No such file"), "{missing}");
    }
    let mut bytes = bytes(&checkpoint());
    *bytes.last_mut().expect("it is not empty") ^= 1;
    fs::write(&path, &bytes).expect("there is room");
    Checkpoint::check_heads(&path).expect("its values are not read");
    assert!(matches!(Checkpoint::load(&path), Err(Error::Damaged { .. })), "a value has changed");
    fs::write(&path, &bytes[..bytes.len() - 1]).expect("there is room");
    assert!(matches!(Checkpoint::check_heads(&path), Err(Error::Damaged { .. })), "it is too short");
}

#[test]
fn how_much_of_a_file_is_missing_is_said() {
    let whole = bytes(&checkpoint());
    let header_end = 8 + u64::from_le_bytes(whole[..8].try_into().expect("eight bytes")) as usize;
    let of_first = |n_bytes: usize| message(Checkpoint::from_bytes(&whole[..n_bytes]));
    let check = |n_bytes: usize, expected: &str| {
        let error = of_first(n_bytes);
        assert!(error.contains(expected), "{n_bytes} bytes: {error}");
    };
    check(0, "(0 bytes): 0 bytes are too few for a safetensors file");
    check(7, "(7 bytes): 7 bytes are too few");
    check(100, &format!("the header ends at byte {header_end}, {} are missing", header_end - 100));
    check(whole.len() - 3, &format!("it is cut off: its tensors end at byte {}, 3 are missing", whole.len()));
    let longer = message(Checkpoint::from_bytes(&[&whole[..], b"xy"].concat()));
    assert!(longer.contains(&format!("its tensors end at byte {}, 2 more follow", whole.len())), "{longer}");
}

#[test]
fn files_of_other_kinds_are_called_by_their_kind() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("model.safetensors");
    for (bytes, expected) in [
        (&b"PK\x03\x04\x00\x00\x08\x08\x00\x00"[..], "found a zip archive, as `torch.save` writes; convert it"),
        (b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j", "found a Python pickle"),
        (b"\x93NUMPY\x01\x00v\x00{'descr'", "found a NumPy array"),
        (b"{\n  \"learning_rate\": \"0.1\"}", "found JSON; give the path"),
        (b"<!DOCTYPE html><html>", "found HTML"),
        (b"x0,x1,label\n1,2,0\n", "found text; give the path"),
    ] {
        fs::write(&path, bytes).expect("written");
        let error = message(Checkpoint::load(&path));
        assert!(
            error.starts_with(&format!("{}: found ", path.display()))
                && error.contains("expected the safetensors file of a model"),
            "{error}"
        );
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_changed_bit_anywhere_is_found() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("changed");
    let whole = bytes(&checkpoint());
    for bit in 0..8 * whole.len() {
        let mut changed = whole.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        let error = Checkpoint::from_bytes(&changed).expect_err("a bit has changed");
        assert!(matches!(error, Error::Damaged { .. } | Error::WrongFile { .. }), "bit {bit}: {error}");
    }
    fs::write(&path, &whole[..whole.len() - 1]).expect("written");
    assert!(message(Checkpoint::load(&path)).contains("use an older checkpoint"), "what to do next");

    // The checksum detects changes that still parse.
    let mut changed = whole.clone();
    *changed.last_mut().expect("it is not empty") ^= 1;
    let error = message(Checkpoint::from_bytes(&changed));
    assert!(error.contains("its checksum is ") && error.contains("its content has changed"), "{error}");
}

#[test]
fn a_newer_format_is_refused_by_name() {
    let text = |from: &str, to: &str| {
        let whole = bytes(&checkpoint());
        let at = whole.windows(from.len()).position(|window| window == from.as_bytes()).expect("it is in the header");
        [&whole[..at], to.as_bytes(), &whole[at + from.len()..]].concat()
    };
    let newer = text(r#""brisk.format_version":"1""#, r#""brisk.format_version":"7""#);
    let error = message(Checkpoint::from_bytes(&newer));
    let expected =
        "found format version 7, written by a newer brisk, expected at most 1, which this program reads; update the program";
    assert!(error.ends_with(expected), "{error}");
    for version in ["0", "x", " "] {
        let other = text(r#""brisk.format_version":"1""#, &format!(r#""brisk.format_version":"{version}""#));
        assert!(message(Checkpoint::from_bytes(&other)).contains("its format version is"), "{version}");
    }
    let without = text("brisk.crc32", "brisk.crc33");
    assert!(message(Checkpoint::from_bytes(&without)).contains("its checksum is missing"), "a version and no checksum");
}

#[test]
fn a_file_without_a_version_is_read_and_says_so() {
    let header = br#"{"__metadata__":{"step":"3"},"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}  "#;
    let bytes = [&(header.len() as u64).to_le_bytes()[..], header, &1.5_f32.to_le_bytes()].concat();
    let loaded = Checkpoint::from_bytes(&bytes).expect("a safetensors file");
    assert_eq!((loaded.format_version(), loaded.f32("w", &[1]).expect("f32")), (None, &[1.5][..]), "as it is");
    assert_eq!(Checkpoint::from_bytes(&self::bytes(&loaded)).expect("ours").format_version(), Some(1), "written again");
}

#[test]
fn reserved_names_are_the_files_own() {
    let mut checkpoint = checkpoint();
    checkpoint.insert_metadata("brisk.crc32", "00000000");
    checkpoint.insert_metadata("about", r#"{"brisk.crc32":"00000000"}"#);
    checkpoint.insert("brisk.crc32", &[1], vec![1_u32]).expect("tensors have names of their own");
    let loaded = Checkpoint::from_bytes(&bytes(&checkpoint)).expect("the checksum is right");
    let names: Vec<_> = loaded.all_metadata().map(|(name, _)| name).collect();
    assert_eq!(names, ["about", "model", "step"], "without the file's own");
}

#[test]
#[cfg(unix)]
fn a_folder_or_a_device_is_no_checkpoint() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for path in [folder.path(), Path::new("/dev/zero")] {
        assert!(message(Checkpoint::load(path)).contains("expected a file"), "{}", path.display());
    }
}

#[test]
fn what_does_not_fit_is_named() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("other.safetensors");
    checkpoint().save(&path).expect("saved");
    let loaded = Checkpoint::load(&path).expect("loaded");
    let path = path.display();
    assert_eq!(
        message(loaded.f32("linear.weight", &[3, 2])),
        format!("{path}: tensor `linear.weight` is f32 [2, 3], expected f32 [3, 2]; was it written for another model?"),
        "shape"
    );
    assert_eq!(
        message(loaded.u32("linear.weight", &[2, 3])),
        format!("{path}: tensor `linear.weight` is f32 [2, 3], expected u32 [2, 3]; was it written for another model?"),
        "type"
    );
    assert_eq!(
        message(loaded.f32("bias", &[3])),
        format!(
            "{path}: tensor `bias` is missing, expected f32 [3]; it has [\"linear.weight\", \"nothing\", \"random.counter\", \"scale\"]: was it written \
             for another model or optimizer?"
        ),
        "name"
    );
    assert_eq!(
        message(loaded.metadata::<u64>("model", "a number of steps")),
        format!("{path}: metadata `model` is \"mlp \\\"größer\\\"\\n\", expected a number of steps"),
        "not a number"
    );
    assert_eq!(
        message(loaded.metadata::<u64>("epoch", "a number of epochs")),
        format!("{path}: metadata `epoch` is missing, expected a number of epochs"),
        "not there"
    );
}

#[test]
fn tensors_are_checked_on_the_way_in() {
    let mut checkpoint = checkpoint();
    let error = message(checkpoint.insert("w", &[2, 2], vec![0.0_f32; 3]));
    assert_eq!(error, "checkpoint: tensor `w` is 3 values, expected 4, for shape [2, 2]", "too few values");
    let error = checkpoint.insert("w", &[usize::MAX, 2], vec![0.0_f32; 3]);
    assert!(matches!(&error, Err(Error::CheckpointEntry { name, .. }) if name == "w"), "{error:?}");
    let error = checkpoint.insert("scale", &[], vec![0_u32]);
    assert!(matches!(&error, Err(Error::CheckpointEntry { name, .. }) if name == "scale"), "{error:?}");
    let error = checkpoint.insert("__metadata__", &[], vec![0_u32]);
    assert!(matches!(&error, Err(Error::CheckpointEntry { name, .. }) if name == "__metadata__"), "{error:?}");
    assert_eq!(checkpoint.tensors().count(), 4, "as before");
    assert_eq!(TensorData::from(vec![1_u32]).dtype(), "u32", "the type goes with the values");
}

#[test]
fn other_types_are_refused_by_name() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("float8.safetensors");
    let header = br#"{"w":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]}}"#;
    fs::write(&path, [&(header.len() as u64).to_le_bytes()[..], header, &[0; 4]].concat()).expect("written");
    let error = message(Checkpoint::load(&path));
    let expected = format!(
        "{}: tensor `w` is F8_E4M3 [4], expected a type and values that brisk can convert to f32 or i64; save it as F32",
        path.display()
    );
    assert_eq!(error, expected, "which type");
}

#[test]
fn a_save_replaces_the_one_before() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("last.safetensors");
    let mut checkpoint = checkpoint();
    for step in 0..3 {
        checkpoint.insert_metadata("step", step);
        checkpoint.save(&path).expect("saved");
        let loaded = Checkpoint::load(&path).expect("loaded");
        assert_eq!(loaded.metadata::<u64>("step", "a number").expect("a number"), step, "the latest");
    }
    assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 1, "no temporary file is left");
}

/// Writing to `/dev/full`, which Linux has, always fails.
#[test]
fn a_full_device_is_an_error() {
    let Ok(mut full) = OpenOptions::new().write(true).open("/dev/full") else { return };
    let error = checkpoint().write_to(&mut full).expect_err("no room");
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull, "{error}");
}

/// A disk of 64 KiB, which only a superuser on Linux can make; elsewhere the failing writer of the unit tests covers this.
#[test]
fn a_full_disk_keeps_the_checkpoint_from_before() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let Some(disk) = SmallDisk::mount(folder.path()) else { return };
    let path = disk.0.join("last.safetensors");
    checkpoint().save(&path).expect("there is room");
    let before = fs::read(&path).expect("readable");

    let mut large = checkpoint();
    large.insert("large", &[100_000], vec![1.0_f32; 100_000]).expect("new");
    let error = message(large.save(&path));
    assert!(error.ends_with("the file from before is still there; make room on the disk, or write elsewhere"), "{error}");
    assert_eq!(fs::read(&path).expect("readable"), before, "the checkpoint from before");
    assert_eq!(fs::read_dir(&disk.0).expect("readable").count(), 1, "no temporary file is left");

    let error = message(large.save(disk.0.join("new.safetensors")));
    assert!(error.contains("nothing was left behind"), "{error}");
    checkpoint().save(&path).expect("there is room again");
}

struct SmallDisk<'a>(&'a Path);

impl<'a> SmallDisk<'a> {
    fn mount(folder: &'a Path) -> Option<Self> {
        let mut mount = Command::new("mount");
        let mounted = mount.args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"]).arg(folder).output().ok()?;
        mounted.status.success().then_some(Self(folder))
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).output();
    }
}

/// With Python's safetensors package if it is installed, else with the few lines that the format needs.
#[test]
fn python_reads_it() {
    const SCRIPT: &str = r#"
import json, struct, sys, zlib
path = sys.argv[1]
try:
    from safetensors.numpy import load_file
    from safetensors import safe_open
    tensors = {name: (list(t.shape), t.dtype.name, t.reshape(-1).tolist()) for name, t in load_file(path).items()}
    with safe_open(path, "np") as file:
        metadata = file.metadata()
except ImportError:
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + n])
    metadata, tensors = header.pop("__metadata__"), {}
    for name, info in header.items():
        start, end = info["data_offsets"]
        code, dtype = {"F32": ("f", "float32"), "U32": ("I", "uint32")}[info["dtype"]]
        tensors[name] = (info["shape"], dtype, list(struct.unpack(f"<{(end - start) // 4}{code}", data[8 + n + start:8 + n + end])))
assert metadata.pop("brisk.format_version") == "1", metadata
whole, crc = open(path, "rb").read(), metadata.pop("brisk.crc32")
at = whole.index(b'"brisk.crc32":"') + len('"brisk.crc32":"')
assert "%08x" % zlib.crc32(whole[:at] + b"0" * 8 + whole[at + 8:]) == crc, crc
assert metadata == {"step": "1200", "model": 'mlp "größer"\n'}, metadata
shape, dtype, values = tensors.pop("linear.weight")
assert (shape, dtype, values[0], values[5]) == ([2, 3], "float32", 0.5, 3.25) and values[2] != values[2], values
assert tensors == {
    "random.counter": ([2], "uint32", [7, 2**32 - 1]),
    "scale": ([], "float32", [65536.0]),
    "nothing": ([0, 4], "float32", []),
}, tensors
"#;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("last.safetensors");
    checkpoint().save(&path).expect("saved");
    let python = std::env::var_os("BRISK_PYTHON").unwrap_or("python3".into());
    let Ok(run) = Command::new(python).args(["-X", "utf8", "-c", SCRIPT]).arg(&path).output() else { return };
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
}
