//! Output paths: imports do not replace the files that they read, and any file name is allowed.

use std::fs;
use std::path::{Path, PathBuf};

use brisk_table::{ColumnOptions, CsvOptions, Error, ImportOptions, import};

/// Checks that importing `source` onto `dest` is refused as the same file, and neither the file nor its folder changes.
#[track_caller]
fn check(source: &Path, dest: &Path, options: &ImportOptions) {
    let folder = dest.parent().unwrap();
    let before = (fs::read(dest).unwrap(), fs::read_dir(folder).unwrap().count());
    let error = import(source, dest, options).expect_err("it was imported");
    assert!(matches!(&error, Error::SameFile { path, .. } if path == dest), "{error}");
    assert!(error.to_string().contains("is the same file as the input"), "{error}");
    assert_eq!((fs::read(dest).unwrap(), fs::read_dir(folder).unwrap().count()), before, "something changed");
}

/// Creates a folder with a file of that name and content.
fn folder_with(name: &str, bytes: impl AsRef<[u8]>) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    (folder, path)
}

#[test]
#[cfg(feature = "csv")]
fn text_is_not_imported_onto_itself() {
    let (folder, rows) = folder_with("rows.csv", "1,0.5\n0,1.5\n");
    let default = ImportOptions::default();
    check(&rows, &rows, &default);
    check(&rows, &folder.path().join(".").join("rows.csv"), &default);
    let svmlight = folder.path().join("rows.svm");
    fs::write(&svmlight, "1 1:0.5\n").unwrap();
    check(&svmlight, &svmlight, &default);
}

#[test]
#[cfg(all(unix, feature = "csv"))]
fn links_to_the_source_are_seen_through() {
    let (folder, rows) = folder_with("rows.csv", "1,0.5\n0,1.5\n");
    let [soft, hard] = ["soft", "hard"].map(|name| folder.path().join(name));
    std::os::unix::fs::symlink("rows.csv", &soft).unwrap();
    fs::hard_link(&rows, &hard).unwrap();
    for (source, dest) in [(&rows, &soft), (&soft, &rows), (&rows, &hard), (&hard, &soft)] {
        check(source, dest, &ImportOptions::default());
    }
    assert!(soft.is_symlink(), "the link was replaced");
}

#[test]
#[cfg(feature = "csv")]
fn the_table_to_be_like_is_not_replaced() {
    let (folder, rows) = folder_with("rows.csv", "y,a\n1,0.5\n0,1.5\n");
    let train = folder.path().join("train.safetensors");
    import(&rows, &train, &ImportOptions::default()).unwrap();
    let columns = ColumnOptions { like: Some(train.clone()), ..ColumnOptions::default() };
    let csv = CsvOptions { columns, ..CsvOptions::default() };
    check(&rows, &train, &ImportOptions { csv, ..ImportOptions::default() });
}

#[test]
#[cfg(feature = "idx")]
fn neither_images_nor_labels_are_replaced() {
    let (folder, images) = folder_with("two-images-idx3-ubyte", [0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 10, 20]);
    let labels = folder.path().join("two-labels-idx1-ubyte");
    fs::write(&labels, [0, 0, 8, 1, 0, 0, 0, 2, 7, 9]).unwrap();
    check(&images, &images, &ImportOptions::default());
    check(&images, &labels, &ImportOptions::default());
}

#[test]
#[cfg(feature = "npy")]
fn no_array_is_replaced() {
    use brisk_table::{ArrayRef, NpyLabels, NpyOptions};

    let header = |shape: &str| {
        let text = format!("{:<117}\n", format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"));
        [b"\x93NUMPY\x01\x00".as_slice(), &(text.len() as u16).to_le_bytes(), text.as_bytes()].concat()
    };
    let (folder, features) = folder_with("x.npy", [header("(2, 1)"), vec![0; 8]].concat());
    let labels = folder.path().join("y.npy");
    fs::write(&labels, [header("(2,)"), vec![0; 8]].concat()).unwrap();
    let npy = NpyOptions { labels: NpyLabels::Array(ArrayRef::File(labels.clone())), ..NpyOptions::default() };
    let options = ImportOptions { npy, ..ImportOptions::default() };
    import(&features, folder.path().join("table.safetensors"), &options).unwrap();
    check(&features, &features, &options);
    check(&features, &labels, &options);
}

#[test]
#[cfg(feature = "cifar")]
fn no_file_of_a_folder_is_replaced() {
    use brisk_table::{CifarOptions, CifarSet, Format};

    let (folder, batch) = folder_with("test_batch.bin", vec![1; 3073]);
    let cifar = CifarOptions { set: CifarSet::Test, ..CifarOptions::default() };
    let options = ImportOptions { format: Some(Format::Cifar), cifar, ..ImportOptions::default() };
    check(folder.path(), &batch, &options);
    // A table in the folder is not one of its batches.
    import(folder.path(), folder.path().join("table.safetensors"), &options).unwrap();
    import(folder.path(), folder.path().join("table.safetensors"), &options).unwrap();
}

#[test]
#[cfg(feature = "images")]
fn no_image_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("cat")).unwrap();
    let image = folder.path().join("cat/one.png");
    image::RgbImage::new(2, 2).save(&image).unwrap();
    let options = ImportOptions { format: Some(brisk_table::Format::Images), ..ImportOptions::default() };
    check(folder.path(), &image, &options);
}

#[test]
#[cfg(all(unix, feature = "csv"))]
fn names_of_files_need_not_be_utf8() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use brisk_table::{Schema, ShardSize, ShardedTable, ShardedWriter, Table};

    let folder = tempfile::tempdir().unwrap();
    let at = |name: &[u8]| folder.path().join(OsStr::from_bytes(name));
    let (rows, table) = (at(b"\xff.csv"), at(b"\xff.safetensors"));
    fs::write(&rows, "1,0.5\n0,1.5\n").unwrap();
    for _ in 0..2 {
        import(&rows, &table, &ImportOptions::default()).unwrap();
    }
    let read = Table::open(&table).unwrap();
    assert_eq!((read.n_rows(), read.source().unwrap().file_name.as_str()), (2, "\u{fffd}.csv"));
    let error = import(at(b"\xfe.csv"), at(b"out"), &ImportOptions::default()).unwrap_err();
    assert!(error.to_string().starts_with(&format!("{}/\u{fffd}.csv: cannot open", folder.path().display())), "{error}");

    let shards = at(b"\xff shards");
    for _ in 0..2 {
        let mut writer = ShardedWriter::create(&shards, Schema::shaped(&[1]), ShardSize::Rows(2)).unwrap();
        writer.push(&[1.0_f32, 2.0, 3.0], &[0.0_f32; 3]).unwrap();
        writer.finish().unwrap();
    }
    assert_eq!(ShardedTable::open(&shards).unwrap().n_rows(), 3);
    assert_eq!(fs::read_dir(&shards).unwrap().count(), 3, "two shards and the index");
}
