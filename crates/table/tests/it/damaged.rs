//! Valid and invalid files with bytes changed, removed, doubled and swapped: nothing panics, and what is accepted is consistent.
//! The changes are the same each time; `fuzz/` searches further.

use std::fs;
use std::path::Path;

use brisk_table::ShardSize;

use crate::any_bytes::{check_csv, check_index, check_table};
use crate::damage::damage;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// Runs `check` on `n` damaged files, each made from one of `seeds`.
fn each_damaged(seeds: &[Vec<u8>], tokens: &[&[u8]], n: usize, mut check: impl FnMut(&[u8])) {
    let mut random = Random(7);
    for _ in 0..n {
        let mut bytes = seeds[random.below(seeds.len())].clone();
        damage(&mut bytes, tokens, |n| random.below(n));
        check(&bytes);
    }
}

/// The files of `tests/attacks` with that extension.
fn attacks(ending: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/attacks");
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.retain(|path| path.to_string_lossy().ends_with(ending));
    paths.into_iter().map(|path| fs::read(path).unwrap()).collect()
}

const NUMBERS: [&[u8]; 8] = [b"0", b"-1", b"4294967296", b"18446744073709551615", b"9223372036854775808", b"1e999", b"nan", b""];

#[test]
fn damaged_tables() {
    let (folder, path) = crate::scratch();
    crate::table::write_ramp(&path, 3);
    let mut seeds = attacks(".safetensors");
    // One valid file for each invalid one: damage to a valid file gets past more checks.
    seeds.extend(vec![fs::read(&path).unwrap(); seeds.len()]);
    let tokens: Vec<&[u8]> = NUMBERS.into_iter().chain([&b"\"U8\""[..], b"[", b"]", b"{}", b"\"shape\":[2]"]).collect();
    each_damaged(&seeds, &tokens, 2000, |bytes| check_table(bytes, folder.path()));
}

#[test]
fn damaged_indexes() {
    let parent = tempfile::tempdir().unwrap();
    crate::shards::write_ramp(&parent.path().join("t"), 10, ShardSize::Rows(4), 1.0);
    let mut seeds = attacks(".index.json");
    seeds.extend(vec![fs::read(parent.path().join("t/table.safetensors.index.json")).unwrap(); seeds.len()]);
    let tokens: Vec<&[u8]> = NUMBERS.into_iter().chain([&b"\"../x\""[..], b"[", b"]", b"{}", b"\"rows\": 1,"]).collect();
    each_damaged(&seeds, &tokens, 20_000, check_index);
}

#[test]
fn damaged_text() {
    let folder = tempfile::tempdir().unwrap();
    let seeds: Vec<Vec<u8>> = [
        "1,2.5,3\n0,4,5\n1,-6e3,7\n",
        "1,\"2\",3\r\n0,4,5\r\n",
        "0,1\n\n1,2\n   \n0,3",
        "1,0.1234567890123456789,1e-45\n0,3.4028235e38,inf\n",
        "\"1\",\"2\"\n\"0\",\"3\"\n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec();
    let tokens: Vec<&[u8]> = NUMBERS.into_iter().chain([&b"\""[..], b"\"\"", b",", b"\n", b"\r\n", b"\r", b" ", b"."]).collect();
    each_damaged(&seeds, &tokens, 150, |bytes| check_csv(bytes, folder.path()));
}
