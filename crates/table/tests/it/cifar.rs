//! CIFAR: the real files, conversion of planes to channels, folders, archives, and files that are refused.

use std::fs;
use std::path::Path;

use brisk_table::{CifarLabels, CifarOptions, CifarSet, DType, Imported, Table, import, import_if_changed};

use crate::real_files::data;

/// Compares pixels with the README of the data, which has the mean and standard deviation of the training set divided by 255.
#[test]
#[cfg(feature = "xz")]
fn cifar10() {
    for (set, n_rows) in [(CifarSet::Train, 50_000), (CifarSet::Test, 10_000)] {
        let names = ["data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"];
        let files: Option<Vec<_>> = names.iter().map(|name| data(&format!("cifar10/{name}.bin.xz"))).collect();
        let Some(files) = files else { return };
        let (_folder, dest) = crate::scratch();
        let options = CifarOptions { set, ..CifarOptions::default() };
        let mut seen = 0;
        let folder = files[0].parent().unwrap();
        let report = brisk_table::import_with_progress(folder, &dest, &options, |progress| {
            assert!(progress.bytes_read >= seen && progress.bytes_read <= progress.total_bytes, "{progress:?}");
            seen = progress.bytes_read;
        });
        assert_eq!(report.unwrap().n_rows, n_rows);
        let table = Table::open(&dest).unwrap();
        table.verify().unwrap();
        assert_eq!((table.dtype(), table.row_shape()), (DType::U8, [32, 32, 3].as_slice()));
        let mut classes = [0; 10];
        table.labels::<u8>().unwrap().iter().for_each(|&label| classes[usize::from(label)] += 1);
        assert_eq!(classes, [n_rows / 10; 10]);
        if set == CifarSet::Train {
            let expected = [(0.49140, 0.24703), (0.48216, 0.24349), (0.44653, 0.26159)];
            for (found, (mean, std)) in table.statistics().unwrap().iter().zip(expected) {
                let (found_mean, found_std) = (found.mean / 255.0, found.std / 255.0);
                assert!((found_mean - mean).abs() < 1e-5 && (found_std - std).abs() < 1e-5, "{found:?}");
            }
            let header = fs::metadata(&dest).unwrap().len() - n_rows as u64 * 3073;
            assert!(header < 10_000, "header and checksums take {header} bytes");
        }
    }
}

/// Record `i`: its labels, then a plane of `i`, one of `i + 1`, and one with the position of each pixel.
fn records(labels: &[&[u8]]) -> Vec<u8> {
    let planes = |i: usize| {
        let place = (0..1024).map(|place| (place % 256) as u8);
        [i as u8, i as u8 + 1].into_iter().flat_map(|value| [value; 1024]).chain(place).collect::<Vec<u8>>()
    };
    labels.iter().enumerate().flat_map(|(i, labels)| [labels.to_vec(), planes(i)].concat()).collect()
}

fn table_of(source: &Path, options: CifarOptions) -> Result<(Vec<u8>, Vec<u8>), String> {
    let (folder, dest) = crate::scratch();
    let imported = import(source, &dest, &options).map_err(|error| error.to_string());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), usize::from(imported.is_ok()), "something was left behind");
    imported?;
    let table = Table::open(&dest).unwrap();
    table.verify().unwrap();
    let rows = table.rows::<u8>(0..table.n_rows()).unwrap();
    for (i, row) in rows.chunks(3072).enumerate() {
        let i = i as u8 % 2;
        assert!(row.chunks(3).enumerate().all(|(at, pixel)| pixel == [i, i + 1, (at % 256) as u8]), "row {i}: {row:?}");
    }
    Ok((rows.to_vec(), table.labels::<u8>().unwrap().to_vec()))
}

const TEN: CifarOptions = CifarOptions { labels: CifarLabels::Ten, set: CifarSet::Train };

#[test]
fn planes_become_channels() {
    let (folder, _) = crate::scratch();
    let source = folder.path().join("any.bin");
    fs::write(&source, records(&[&[3], &[9]])).unwrap();
    assert_eq!(table_of(&source, TEN).unwrap().1, [3, 9]);
    fs::write(&source, records(&[&[19, 99], &[3, 98]])).unwrap();
    assert_eq!(table_of(&source, CifarOptions { labels: CifarLabels::Fine, ..TEN }).unwrap().1, [99, 98]);
    assert_eq!(table_of(&source, CifarOptions { labels: CifarLabels::Coarse, ..TEN }).unwrap().1, [19, 3]);
}

/// The members of the archive are unsorted, as in the official one.
#[test]
fn folders_and_archives() {
    let (folder, _) = crate::scratch();
    let batches = folder.path().join("cifar-10-batches-bin");
    fs::create_dir(&batches).unwrap();
    let mut archive = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    for batch in [1, 4, 3, 5, 2] {
        let bytes = records(&[&[batch], &[batch + 1]]);
        let name = format!("data_batch_{batch}.bin");
        fs::write(batches.join(&name), &bytes).unwrap();
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        archive.append_data(&mut header, format!("cifar-10-batches-bin/{name}"), bytes.as_slice()).unwrap();
    }
    let names = "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n";
    fs::write(batches.join("batches.meta.txt"), names).unwrap();
    archive.append_path_with_name(batches.join("batches.meta.txt"), "cifar-10-batches-bin/batches.meta.txt").unwrap();
    let packed = folder.path().join("cifar-10-binary.tar.gz");
    fs::write(&packed, archive.into_inner().unwrap().finish().unwrap()).unwrap();
    let of_folder = table_of(&batches, TEN).unwrap();
    assert_eq!(of_folder.1, [1, 2, 2, 3, 3, 4, 4, 5, 5, 6]);
    assert_eq!(table_of(&packed, TEN).unwrap(), of_folder);
    for source in [&batches, &packed] {
        let (_folder, dest) = crate::scratch();
        let report = import(source, &dest, &TEN).unwrap();
        assert!(report.classes.iter().map(String::as_str).eq(names.split_whitespace()), "{:?}", report.classes);
        assert_eq!(Table::open(&dest).unwrap().classes(), report.classes);
        let message = table_of(source, CifarOptions { set: CifarSet::Test, ..TEN }).unwrap_err();
        assert!(message.contains("`test_batch.bin`") && message.contains("`CifarLabels::Ten`"), "{message}");
    }
}

#[test]
fn files_are_imported_again_if_they_are_others() {
    let (folder, dest) = crate::scratch();
    let [one, other] = ["one.bin", "other.bin"].map(|name| folder.path().join(name));
    fs::write(&one, records(&[&[3], &[9]])).unwrap();
    fs::write(&other, records(&[&[4], &[8]])).unwrap();
    for (source, is_written, labels) in
        [(&one, true, [3, 9]), (&one, false, [3, 9]), (&other, true, [4, 8]), (&one, true, [3, 9])]
    {
        let imported = import_if_changed(source, &dest, &TEN, |_| ()).unwrap();
        assert_eq!(matches!(imported, Imported::Written(_)), is_written, "{}", source.display());
        assert_eq!(Table::open(&dest).unwrap().labels::<u8>().unwrap(), labels);
    }
    let test = CifarOptions { set: CifarSet::Test, ..TEN };
    assert!(matches!(import_if_changed(&one, &dest, &test, |_| ()).unwrap(), Imported::Written(_)), "another option");
}

#[test]
fn what_is_refused() {
    #[track_caller]
    fn check(bytes: &[u8], options: CifarOptions, says: &str) {
        let (folder, _) = crate::scratch();
        let source = folder.path().join("data_batch_1.bin");
        fs::write(&source, bytes).unwrap();
        let message = table_of(&source, options).unwrap_err();
        assert!(message.contains(says) && message.contains("data_batch_1.bin"), "{message}");
    }
    let good = records(&[&[3], &[9]]);
    check(&[], TEN, "an empty file");
    check(&good[..3072], TEN, "record 0: found 3072 bytes");
    check(&good[..6145], TEN, "record 1: found 3072 bytes");
    check(&good, CifarOptions { labels: CifarLabels::Fine, ..TEN }, "of the other data set");
    check(&records(&[&[3], &[10]]), TEN, "row 1, the label in");
    check(&records(&[&[20, 0]]), CifarOptions { labels: CifarLabels::Coarse, ..TEN }, "found 20, expected a label of 0 to 19");
}
