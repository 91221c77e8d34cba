//! Writing and reading back.

use std::fs;
use std::path::Path;

use brisk_table::{DType, Error, Schema, Table, TableWriter, Weights};

/// A table of `n_rows` rows `[i, i / 2]` with labels `i % 2`.
pub(crate) fn write_ramp(path: &Path, n_rows: usize) {
    let mut writer = TableWriter::create(path, Schema::named(["whole", "half"])).unwrap();
    for i in 0..n_rows {
        writer.push(&[i as f32, i as f32 / 2.0], &[(i % 2) as f32]).unwrap();
    }
    assert_eq!(writer.finish().unwrap(), n_rows);
}

/// A table of 300,000 rows has several blocks, and labels beyond 8 MiB (2 million rows) go through a temporary file.
#[test]
fn rows_come_back_as_they_went() {
    for n_rows in [0, 1, 3, 300_000, 2_200_000] {
        let (folder, path) = crate::scratch();
        write_ramp(&path, n_rows);
        // SAFETY: only this test uses the folder.
        #[expect(unsafe_code, reason = "maps read what copies read")]
        let mapped = unsafe { Table::open_mapped(&path) }.unwrap();
        for table in [Table::open(&path).unwrap(), mapped] {
            assert_eq!((table.n_rows(), table.n_cols(), table.row_shape()), (n_rows, 2, &[2][..]));
            let rows = table.rows::<f32>(0..n_rows).unwrap();
            assert!((0..n_rows).all(|i| rows[2 * i..2 * i + 2] == [i as f32, i as f32 / 2.0]), "rows differ");
            assert!(table.labels::<f32>().unwrap().iter().enumerate().all(|(i, &y)| y == (i % 2) as f32), "labels differ");
            table.verify().unwrap();
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "something was left beside the table");
    }
}

#[test]
fn data_starts_on_a_page() {
    let (_folder, path) = crate::scratch();
    write_ramp(&path, 5);
    let bytes = fs::read(&path).unwrap();
    let header_len = u64::from_le_bytes(bytes[..8].try_into().unwrap());
    assert_eq!((header_len + 8) % 4096, 0, "the header ends at {}", header_len + 8);
    assert_eq!(bytes[8 + header_len as usize + 8..][..4], 1.0_f32.to_le_bytes(), "features come first");
}

#[test]
fn images_with_byte_labels_and_weights_stay_aligned() {
    for (label_dtype, n_rows) in [(DType::U8, 3), (DType::U8, 4), (DType::F32, 3), (DType::I64, 5), (DType::F64, 7)] {
        let (_folder, path) = crate::scratch();
        let schema = Schema { dtype: DType::U8, label_dtype, weights: Weights::Present, ..Schema::shaped(&[3, 5, 1]) };
        let mut writer = TableWriter::create(&path, schema).unwrap();
        for i in 0..n_rows {
            let (image, weight) = ([i as u8; 15], [i as f32]);
            match label_dtype {
                DType::U8 => writer.push_weighted(&image, &[i as u8], &weight),
                DType::F32 => writer.push_weighted(&image, &[i as f32], &weight),
                DType::I64 => writer.push_weighted(&image, &[i as i64], &weight),
                _ => writer.push_weighted(&image, &[i as f64], &weight),
            }
            .unwrap();
        }
        writer.finish().unwrap();
        let table = Table::open(&path).unwrap();
        table.verify().unwrap();
        assert_eq!(table.row_shape(), [3, 5, 1]);
        assert_eq!(table.rows::<u8>(n_rows - 1..n_rows).unwrap(), [n_rows as u8 - 1; 15]);
        assert_eq!(table.weights().unwrap().len(), n_rows);
        assert_eq!(table.weights().unwrap()[1], 1.0);
        match label_dtype {
            DType::U8 => assert_eq!(table.labels::<u8>().unwrap()[2], 2),
            DType::F32 => assert_eq!(table.labels::<f32>().unwrap()[2], 2.0),
            DType::I64 => assert_eq!(table.labels::<i64>().unwrap()[2], 2),
            _ => assert_eq!(table.labels::<f64>().unwrap()[2], 2.0),
        }
    }
}

#[test]
fn statistics_are_those_of_the_rows() {
    let (_folder, path) = crate::scratch();
    let mut writer = TableWriter::create(&path, Schema::shaped(&[3])).unwrap();
    // The second column has a mean a million times its standard deviation: naive sums of squares lose it.
    for i in 0..10_000 {
        let x = (i % 10) as f32;
        writer.push(&[x, 1e7 + x, if i % 2 == 0 { f32::NAN } else { 4.0 }], &[0.0_f32]).unwrap();
    }
    writer.finish().unwrap();
    let table = Table::open(&path).unwrap();
    let statistics = table.statistics().unwrap();
    let std = 8.25_f64.sqrt();
    for (column, mean) in [(0, 4.5), (1, 1e7 + 4.5)] {
        let found = statistics[column];
        assert_eq!((found.count, found.min, found.max), (10_000, mean - 4.5, mean + 4.5));
        // Rows pushed one at a time are merged one at a time: ten thousand roundings of 1e7, an error of a few units in the last
        // place.
        assert!((found.mean - mean).abs() < 1e-7 && (found.std - std).abs() < 1e-9, "{found:?}");
    }
    assert_eq!((statistics[2].count, statistics[2].mean, statistics[2].std), (5_000, 4.0, 0.0));
}

#[test]
fn a_damaged_byte_is_found_and_placed() {
    let (_folder, path) = crate::scratch();
    write_ramp(&path, 200_000);
    let good = fs::read(&path).unwrap();
    for at in [100, 5_000, 1_500_000, good.len() - 1] {
        let mut bad = good.clone();
        bad[at] ^= 4;
        fs::write(&path, &bad).unwrap();
        let Ok(table) = Table::open(&path) else { continue };
        match table.verify().expect_err("the damage went unnoticed") {
            Error::Checksum { start, end, .. } if at < good.len() - 1 => assert!((start..end).contains(&(at as u64))),
            Error::Checksum { .. } => {}
            other => panic!("{other}"),
        }
    }
}

#[test]
fn wrong_asks_are_errors_that_say_what_to_do() {
    let (_folder, path) = crate::scratch();
    write_ramp(&path, 4);
    let table = Table::open(&path).unwrap();
    let check = |error: Error, says: &str| assert!(error.to_string().contains(says), "{error}");
    check(table.rows::<f32>(3..5).unwrap_err(), "rows 3..5 were requested, the table has 4");
    #[expect(clippy::reversed_empty_ranges, reason = "it is what is tested")]
    check(table.rows::<f32>(3..2).unwrap_err(), "rows 3..2");
    check(table.rows::<u8>(0..1).unwrap_err(), "`features` is F32, not U8");
    check(table.labels::<i64>().unwrap_err(), "`labels` is F32, not I64");
    check(Table::open(path.parent().unwrap()).unwrap_err(), "is a folder, expected a file");
    check(Table::open(path.with_file_name("none")).unwrap_err(), "cannot open");

    let mut writer = TableWriter::create(&path, Schema::shaped(&[2])).unwrap();
    check(writer.push(&[1.0_f32], &[1.0_f32]).unwrap_err(), "`features` holds 1 values, expected 2");
    check(writer.push(&[1_u8, 2], &[1.0_f32]).unwrap_err(), "`features` is F32, not U8");
    check(writer.push_weighted(&[1.0_f32, 2.0], &[1.0_f32], &[1.0]).unwrap_err(), "Weights::Present");
    check(TableWriter::create(&path, Schema::shaped(&[2, 0])).unwrap_err(), "none of them 0");
    check(
        TableWriter::create(&path, Schema { column_names: vec!["a".into()], ..Schema::shaped(&[2]) }).unwrap_err(),
        "name all or none",
    );
    check(TableWriter::create("/no such folder/t", Schema::shaped(&[2])).unwrap_err(), "writing failed after 0 bytes");
}

#[test]
fn a_dropped_writer_leaves_nothing_and_the_old_table_stays() {
    let (folder, path) = crate::scratch();
    write_ramp(&path, 4);
    let old = Table::open(&path).unwrap();
    let mut writer = TableWriter::create(&path, Schema::shaped(&[1])).unwrap();
    // Enough that labels need a temporary file too.
    for _ in 0..3 {
        writer.push(&vec![1.0_f32; 1 << 20], &vec![1.0_f32; 1 << 20]).unwrap();
    }
    assert!(fs::read_dir(folder.path()).unwrap().count() > 1, "nothing was written yet");
    drop(writer);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    assert_eq!(Table::open(&path).unwrap().rows::<f32>(0..4).unwrap(), old.rows::<f32>(0..4).unwrap());
}

/// The header for 150,528 statistics would take 16 MB; images have one for each channel.
#[test]
fn images_have_statistics_of_channels() {
    let (_folder, path) = crate::scratch();
    let schema = Schema { dtype: DType::U8, label_dtype: DType::U8, ..Schema::shaped(&[224, 224, 3]) };
    let mut writer = TableWriter::create(&path, schema).unwrap();
    let image: Vec<u8> = (0..224 * 224).flat_map(|i| [7, (i % 2) as u8, 255]).collect();
    for label in 0..3_u8 {
        writer.push(&image, &[label]).unwrap();
    }
    writer.finish().unwrap();
    let table = Table::open(&path).unwrap();
    table.verify().unwrap();
    let found: Vec<_> = table.statistics().unwrap().iter().map(|s| (s.count, s.mean, s.std, s.min, s.max)).collect();
    let n = 3 * 224 * 224;
    assert_eq!(found, [(n, 7.0, 0.0, 7.0, 7.0), (n, 0.5, 0.5, 0.0, 1.0), (n, 255.0, 0.0, 255.0, 255.0)]);
    assert_eq!(fs::metadata(&path).unwrap().len() / 4096, 3 * 224 * 224 * 3 / 4096 + 1);
}

#[test]
fn columns_without_room_in_a_header_are_refused() {
    let (_folder, path) = crate::scratch();
    let message = TableWriter::create(&path, Schema::shaped(&[1 << 20])).unwrap_err().to_string();
    assert!(message.contains("a row has 1048576 columns, at most 524288"), "{message}");
}
