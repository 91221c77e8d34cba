//! Checkpoints and their indexes with bytes changed, cut, doubled and swapped: nothing panics, and whatever is loaded is
//! complete. The changes are the same in each run; `fuzz/` covers more.

use std::fs;

use brisk_train::Checkpoint;

use crate::any_checkpoint::{check_checkpoint, check_index, checkpoint, write_parts};
use crate::damage::damage;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }
}

const TOKENS: [&[u8]; 16] = [
    b"0",
    b"-1",
    b"4294967296",
    b"18446744073709551615",
    b"9223372036854775808",
    b"1e999",
    b"nan",
    b"",
    b"\"F64\"",
    b"\"shape\":[2]",
    b"[",
    b"]",
    b"{}",
    b"\"../x\"",
    b"\"last-1-00001-of-00002.safetensors\"",
    b"\"__metadata__\":{},",
];

/// Runs `check` on `n` damaged files, each made from one of `seeds`.
fn each_damaged(seeds: &[Vec<u8>], n: usize, mut check: impl FnMut(&[u8])) {
    let mut random = Random(11);
    for _ in 0..n {
        let mut bytes = seeds[random.below(seeds.len())].clone();
        damage(&mut bytes, &TOKENS, |n| random.below(n));
        check(&bytes);
    }
}

#[test]
fn damaged_checkpoints() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("good.safetensors");
    checkpoint(["weight", "counter"]).save(&path).expect("saved");
    let mut small = Checkpoint::new();
    small.insert("nothing", &[0, 4], Vec::<f32>::new()).expect("no values");
    let small_path = folder.path().join("small.safetensors");
    small.save(&small_path).expect("saved");
    let seeds = [&path, &small_path].map(|path| fs::read(path).expect("it was saved"));
    each_damaged(&seeds, 4000, |bytes| check_checkpoint(bytes, folder.path()));
}

#[test]
fn headers_without_a_checksum() {
    // Without the checksum, which would refuse these: the parser must cope by itself.
    let folder = tempfile::tempdir().expect("a temporary folder");
    let header = br#"{"__metadata__":{"step":"3"},"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},"c":{"dtype":"U32","shape":[1],"data_offsets":[8,12]}}"#;
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header);
    bytes.extend_from_slice(&[0; 12]);
    each_damaged(&[bytes], 8000, |bytes| check_checkpoint(bytes, folder.path()));
}

#[test]
fn damaged_indexes() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let parts = folder.path().join("parts");
    fs::create_dir(&parts).expect("a new folder");
    write_parts(&parts);
    // A file that no index next to `parts` may refer to.
    checkpoint(["outside", "outside.counter"]).save(folder.path().join("x")).expect("saved");
    let index = br#"{"metadata":{"generation":1},"weight_map":{"a":"last-1-00001-of-00002.safetensors","b":"last-1-00001-of-00002.safetensors","c":"last-1-00002-of-00002.safetensors","d":"last-1-00002-of-00002.safetensors"}}"#;
    check_index(index, &parts);
    assert!(Checkpoint::load(parts.join("any.safetensors.index.json")).is_ok(), "the index that is damaged is good");
    each_damaged(&[index.to_vec()], 8000, |bytes| check_index(bytes, &parts));
}
