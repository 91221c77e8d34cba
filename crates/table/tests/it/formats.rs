//! Detection of formats, and one function for reading any of them.

use std::fs;
use std::path::Path;

use brisk_table::{Error, Format, ImportOptions, Table, import};

use crate::real_files::data;

#[track_caller]
fn check(name: &str, bytes: &[u8], expected: Format) {
    let (folder, _) = crate::scratch();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    assert_eq!(Format::detect(&path).unwrap(), expected, "{name}");
}

#[test]
fn bytes_come_before_names() {
    check("rows.csv", b"PAR1....", Format::Parquet);
    check("rows.parquet", b"ARROW1\0\0", Format::Arrow);
    check("rows.csv", b"\x93NUMPY\x01\0", Format::Npy);
    check("rows", b"PK\x03\x04....", Format::Npy);
    check("train-images", &[0, 0, 8, 1, 0, 0, 0, 2, 7, 7], Format::Idx);
    check("rows", b"a;b\n1;2\n", Format::Csv);
    check("rows.tsv.gz", b"a\tb\n1\t2\n", Format::Csv);
    check("rows.txt", b"# made by hand\n-1 qid:2 3:4.5 7:1\n", Format::Svmlight);
    check("rows", b"+1 3:1e3", Format::Svmlight);
    check("rows.svm.gz", b"1\n0 1:2\n", Format::Svmlight);
    check("times.csv", b"1,12:30\n2,12:31\n", Format::Csv);
    check("data_batch_1.bin", &[7; 3073], Format::Cifar);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, &[0, 0, 8, 1, 0, 0, 0, 2, 7, 7]).unwrap();
    check("labels", &gzip.finish().unwrap(), Format::Idx);
}

#[test]
fn what_nobody_knows() {
    let (folder, dest) = crate::scratch();
    let path = folder.path().join("picture");
    fs::write(&path, [0xff, 0xd8, 0xff, 0xe0, 0, 16]).unwrap();
    let error = import(&path, &dest, &ImportOptions::default()).unwrap_err();
    assert!(matches!(error, Error::Source { .. }), "{error}");
    let message = error.to_string();
    assert!(message.contains("ff d8 ff e0 00 10") && message.contains("`ImportOptions::format`"), "{message}");
    let missing = import(folder.path().join("nothing"), &dest, &ImportOptions::default()).unwrap_err().to_string();
    assert!(missing.contains("cannot open"), "{missing}");
}

#[test]
fn known_formats_that_are_not_imported_are_named() {
    #[track_caller]
    fn check(path: &Path, words: &[&str]) {
        let error = Format::detect(path).unwrap_err().to_string();
        words.iter().for_each(|word| assert!(error.contains(word), "no `{word}` in: {error}"));
    }
    let (folder, _) = crate::scratch();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("rows.h5"), b"\x89HDF\r\n\x1a\n\0\0").unwrap();
    check(&path("rows.h5"), &["is an HDF5 file", ".npy"]);
    fs::write(path("rows.pkl"), b"\x80\x04\x95\x10\0\0\0\0\0\0\0}").unwrap();
    check(&path("rows.pkl"), &["is a pickle of Python", ".npy"]);

    for (names, binary) in [
        (&["data_batch_1", "batches.meta"][..], "cifar-10-binary.tar.gz"),
        (&["train", "test", "meta"], "cifar-100-binary.tar.gz"),
    ] {
        let python = path(binary);
        fs::create_dir(&python).unwrap();
        names.iter().for_each(|name| fs::write(python.join(name), [0x80, 2, b'}']).unwrap());
        check(&python, &["the Python version of CIFAR", &format!("download the binary version, {binary}")]);
    }
    let mut header = [0_u8; 512];
    header[..20].copy_from_slice(b"cifar-10-batches-py/");
    header[257..262].copy_from_slice(b"ustar");
    fs::write(path("cifar-10-python.tar"), header).unwrap();
    check(&path("cifar-10-python.tar"), &["the Python version of CIFAR", "cifar-10-binary.tar.gz"]);
    #[cfg(feature = "cifar")]
    {
        let cifar = brisk_table::CifarOptions::default();
        let error = import(path("cifar-10-python.tar"), path("t"), &cifar).unwrap_err().to_string();
        assert!(error.contains("the Python version of CIFAR"), "{error}");
    }
}

#[test]
fn folders_and_archives() {
    let (folder, _) = crate::scratch();
    assert_eq!(Format::detect(folder.path()).unwrap(), Format::Images);
    fs::write(folder.path().join("data_batch_1.bin.xz"), []).unwrap();
    assert_eq!(Format::detect(folder.path()).unwrap(), Format::Cifar);
    let Some(archive) = data("images/cifar10_test500_png.tar") else { return };
    // Its content decides, not its name.
    assert_eq!(Format::detect(&archive).unwrap(), Format::Images);
    let other = folder.path().join("photos.tar");
    fs::copy(&archive, &other).unwrap();
    assert_eq!(Format::detect(&other).unwrap(), Format::Images);
}

#[test]
fn real_files() {
    for (name, expected) in [
        ("mnist/t10k-images-idx3-ubyte.gz", Format::Idx),
        ("higgs/higgs_test.csv.gz", Format::Csv),
        ("higgs/lightgbm_example_test.tsv.gz", Format::Csv),
        ("tabular/adult.data.gz", Format::Csv),
        ("tabular/adult.test.gz", Format::Csv),
        ("samples/adult500_quoted_multiline_bom.csv", Format::Csv),
        ("samples/higgs500.svm", Format::Svmlight),
        ("samples/higgs2k_deflate.npz", Format::Npy),
        ("samples/higgs2k_stored.npz", Format::Npy),
        ("samples/higgs500_X_f16.npy", Format::Npy),
        ("samples/types_pyarrow_brotli.parquet", Format::Parquet),
    ] {
        let Some(path) = data(name) else { return };
        assert_eq!(Format::detect(path).unwrap(), expected, "{name}");
    }
}

/// Every format is either read, or the error names its feature.
#[test]
fn one_call_for_all() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/columns");
    let (scratch, dest) = crate::scratch();
    let csv = scratch.path().join("rows.csv");
    fs::write(&csv, "1,0.5\n0,1.5\n").unwrap();
    assert_eq!(import(&csv, &dest, &ImportOptions::default()).unwrap().n_rows, 2);
    assert_eq!(Table::open(&dest).unwrap().rows::<f32>(0..2).unwrap(), [0.5, 1.5]);

    // The default options do not fit the columns of these; the importer of the format reports that.
    for (name, feature, is_on) in [
        ("mixed.parquet", "parquet", cfg!(feature = "parquet")),
        ("mixed.arrows", "arrow", cfg!(feature = "arrow")),
        ("mixed_plain.arrow", "arrow", cfg!(feature = "arrow")),
    ] {
        let error = import(folder.join(name), &dest, &ImportOptions::default()).unwrap_err();
        match is_on {
            true => assert!(matches!(error, Error::Source { .. }), "{error}"),
            false => assert!(error.to_string().contains(&format!("needs the feature `{feature}`")), "{error}"),
        }
    }
}
