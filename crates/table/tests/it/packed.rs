//! Compressed sources: decompressed whatever their name; damage is an error; and if a build cannot decompress a file, the error
//! names the feature.

use std::fs;
use std::path::Path;

#[cfg(any(feature = "zst", feature = "xz"))]
use brisk_table::Table;
use brisk_table::{CsvOptions, import};

/// 2,000 rows: the label, and three numbers.
#[cfg(any(feature = "zst", feature = "xz"))]
fn text() -> String {
    (0..2_000).map(|i| format!("{},{},{},0.{i}\n", i % 2, i, i * 7 % 1000)).collect()
}

#[cfg(any(feature = "zst", feature = "xz"))]
#[track_caller]
fn check(name: &str, packed: &[u8]) {
    let (folder, dest) = crate::scratch();
    let source = folder.path().join("rows.csv");
    let run = |bytes: &[u8]| {
        fs::write(&source, bytes).unwrap();
        import(&source, &dest, &CsvOptions::default()).map_err(|error| error.to_string())
    };
    run(text().as_bytes()).unwrap();
    let plain = Table::open(&dest).unwrap();
    for n_members in 1..=3 {
        run(&packed.repeat(n_members)).unwrap();
        let table = Table::open(&dest).unwrap();
        assert_eq!(table.n_rows(), 2_000 * n_members);
        for member in 0..n_members {
            assert_eq!(table.row_bytes(2_000 * member..2_000 * (member + 1)).unwrap(), plain.row_bytes(0..2_000).unwrap());
        }
    }
    fs::remove_file(&dest).unwrap();
    let mut damaged = packed.to_vec();
    damaged[packed.len() / 2] ^= 0x55;
    for bytes in [&packed[..packed.len() / 2], &packed[..packed.len() - 2], &damaged] {
        let error = run(bytes).expect_err("it was imported");
        assert!(error.contains("rows.csv") && !dest.exists(), "{error}");
        assert!(error.contains(&format!("cannot unpack (it is {name}")), "{error}");
    }
}

fn file(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/packed").join(name)).unwrap()
}

#[test]
#[cfg(feature = "zst")]
fn zstd() {
    check("zstd", &file("rows.csv.zst"));
    // A skippable frame at the start and in the middle.
    let skipped = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc", &file("rows.csv.zst")].concat();
    check("zstd", &skipped);
}

#[test]
#[cfg(feature = "xz")]
fn xz() {
    check("xz", &file("rows.csv.xz"));
    check("xz", &file("rows_delta.csv.xz"));
    // `xz -d` ignores zeros at the end, in groups of four.
    check("xz", &[file("rows.csv.xz"), vec![0; 512]].concat());
}

#[test]
#[cfg(not(all(feature = "zst", feature = "xz")))]
fn what_cannot_be_unpacked_names_its_feature() {
    for (name, feature, on) in [("rows.csv.zst", "zst", cfg!(feature = "zst")), ("rows.csv.xz", "xz", cfg!(feature = "xz"))] {
        if on {
            continue;
        }
        let (folder, dest) = crate::scratch();
        let source = folder.path().join("rows.csv");
        fs::write(&source, file(name)).unwrap();
        let error = import(&source, &dest, &CsvOptions::default()).unwrap_err().to_string();
        assert!(error.contains(&format!("which needs the feature `{feature}`; enable it, or unpack it first")), "{error}");
    }
}
