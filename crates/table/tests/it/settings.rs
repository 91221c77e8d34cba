//! Options and formats: each option has an effect or is refused, and a table to match is matched by every format.

use std::fs;
use std::path::{Path, PathBuf};

use brisk_table::{
    ArrayRef, ColumnOptions, CsvOptions, Error, Format, IdxOptions, ImportOptions, ImportSetting, Imported, LabelKind, NpyLabels,
    NpyOptions, SourceError, SvmlightOptions, Table, Unused, import, import_if_changed,
};

/// A small valid source of each format.
fn source(folder: &Path, format: Format) -> PathBuf {
    let columns = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/columns");
    let write = |name: &str, bytes: &[u8]| {
        fs::write(folder.join(name), bytes).unwrap();
        folder.join(name)
    };
    match format {
        Format::Csv => write("rows.csv", b"y,a\n1,2\n0,3\n"),
        Format::Svmlight => write("rows.svm", b"1 1:2\n0 2:3\n"),
        Format::Npy => write("rows.npy", &npy("<f4", "(2, 2)", &[0; 16])),
        Format::Idx => {
            write("labels-idx1-ubyte", &[0, 0, 8, 1, 0, 0, 0, 2, 1, 2]);
            write("images-idx3-ubyte", &[0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 7, 8])
        }
        Format::Cifar => write("batch.bin", &[7; 3073]),
        Format::Images => {
            fs::create_dir_all(folder.join("images/a")).unwrap();
            image::save_buffer(folder.join("images/a/1.png"), &[1; 6], 2, 1, image::ExtendedColorType::Rgb8).unwrap();
            folder.join("images")
        }
        Format::Arrow => columns.join("small.arrow"),
        Format::Parquet => columns.join("small.parquet"),
        other => panic!("no source of {other}"),
    }
}

fn npy(descr: &str, shape: &str, values: &[u8]) -> Vec<u8> {
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let len = u16::try_from(text.len()).unwrap().to_le_bytes();
    [b"\x93NUMPY\x01\x00", len.as_slice(), text.as_bytes(), values].concat()
}

/// Also where a source is a folder, or has its labels in another file.
#[test]
fn an_unchanged_source_is_imported_once() {
    for &format in Format::ALL {
        let (folder, dest) = crate::scratch();
        let mut source = source(folder.path(), format);
        if !source.starts_with(folder.path()) {
            let own = folder.path().join(source.file_name().unwrap());
            fs::copy(&source, &own).unwrap();
            source = own;
        }
        let other_file = match format {
            Format::Idx => folder.path().join("labels-idx1-ubyte"),
            Format::Images => folder.path().join("images/a/1.png"),
            _ => source.clone(),
        };
        let npy = NpyOptions { labels: NpyLabels::Column(0), ..NpyOptions::default() };
        let options = ImportOptions { npy, ..ImportOptions::default() };
        let is_imported = || matches!(import_if_changed(&source, &dest, &options, |_| ()).unwrap(), Imported::Written(_));
        assert!(is_imported(), "{format}");
        assert!(!is_imported(), "{format}: nothing changed");
        let file = fs::File::options().write(true).open(other_file).unwrap();
        file.set_modified(file.metadata().unwrap().modified().unwrap() + std::time::Duration::from_secs(2)).unwrap();
        assert!(is_imported(), "{format}: a file changed");
        assert!(!is_imported(), "{format}: nothing changed since");
    }
}

#[test]
fn an_explicit_option_is_used_or_refused() {
    for &format in Format::ALL {
        let (folder, dest) = crate::scratch();
        let source = source(folder.path(), format);
        for &setting in ImportSetting::ALL {
            let options = ImportOptions { explicit: vec![setting], ..ImportOptions::default() };
            let refused = match crate::reason(import(&source, &dest, &options)) {
                Some(SourceError::UnusedSetting { setting: found, reason }) => {
                    let single = (format, setting) == (Format::Cifar, ImportSetting::CifarSet);
                    let expected = if single { Unused::SingleFile } else { Unused::Format(format) };
                    assert_eq!((found, reason), (setting, expected));
                    !single
                }
                _ => false,
            };
            assert_eq!(refused, !format.uses(setting), "{format}: {setting:?}");
        }
    }
}

#[test]
fn what_the_table_to_match_determines_is_refused() {
    let (folder, dest) = crate::scratch();
    let (source, like) = (source(folder.path(), Format::Csv), folder.path().join("like.safetensors"));
    let classes = ColumnOptions { label_kind: LabelKind::Classes, ..ColumnOptions::default() };
    import(&source, &like, &CsvOptions { columns: classes, ..CsvOptions::default() }).unwrap();
    let columns = ColumnOptions { like: Some(like), ..ColumnOptions::default() };
    let refused = |setting| {
        let csv = CsvOptions { columns: columns.clone(), ..CsvOptions::default() };
        let options = ImportOptions { csv, explicit: vec![setting], ..ImportOptions::default() };
        matches!(crate::reason(import(&source, &dest, &options)), Some(SourceError::UnusedSetting { reason: Unused::Like, .. }))
    };
    use ImportSetting as Set;
    assert!([Set::Labels, Set::LabelKind, Set::Categorical, Set::Indicators, Set::DType].into_iter().all(refused));
    assert!(![Set::Weight, Set::Drop, Set::KeepMissing, Set::Like, Set::Header, Set::BadRows].into_iter().any(refused));
    // A column that the table needs cannot be dropped, and its labels are of one kind.
    let with = |change: fn(&mut ColumnOptions)| {
        let mut columns = columns.clone();
        change(&mut columns);
        import(&source, &dest, &CsvOptions { columns, ..CsvOptions::default() })
    };
    assert!(matches!(crate::reason(with(|columns| columns.drop = vec!["a".into()])), Some(SourceError::ColumnRoles { .. })));
    assert!(matches!(crate::reason(with(|columns| columns.drop = vec!["b".into()])), Some(SourceError::NoColumn { .. })));
    assert!(matches!(
        crate::reason(with(|columns| columns.label_kind = LabelKind::Binary)),
        Some(SourceError::ColumnRoles { .. })
    ));
    with(|_| ()).unwrap();
}

#[test]
fn svmlight_matches_a_table() {
    let (folder, like) = crate::scratch();
    let file = |name: &str, text: &str| {
        fs::write(folder.path().join(name), text).unwrap();
        folder.path().join(name)
    };
    let train = file("train.svm", "-1 1:2 5:3\n+1 2:1\n");
    let classes = SvmlightOptions { label_kind: LabelKind::Classes, ..SvmlightOptions::default() };
    import(train, &like, &classes).unwrap();
    let dest = folder.path().join("test.safetensors");
    let test = file("test.svm", "+1 3:7\n");
    let options = SvmlightOptions { like: Some(like.clone()), ..SvmlightOptions::default() };
    import(&test, &dest, &options).unwrap();
    let table = Table::open(&dest).unwrap();
    assert_eq!((table.n_cols(), table.rows::<f32>(0..1).unwrap()), (5, &[0.0, 0.0, 7.0, 0.0, 0.0][..]));
    assert_eq!((table.labels::<u32>().unwrap(), table.classes()), (&[1][..], Table::open(&like).unwrap().classes()));
    // Indices that begin with 0 in the training set.
    import(file("zero.svm", "1 0:2 3:3\n"), &like, &SvmlightOptions::default()).unwrap();
    import(&test, &dest, &options).unwrap();
    assert_eq!(Table::open(&dest).unwrap().rows::<f32>(0..1).unwrap(), [0.0, 0.0, 0.0, 7.0]);
    assert!(matches!(crate::reason(import(file("more.svm", "1 9:2\n"), &dest, &options)), Some(SourceError::Line { .. })));
    import(file("rows.csv", "y,a\n1,2\n"), &like, &CsvOptions::default()).unwrap();
    assert!(matches!(crate::reason(import(&test, &dest, &options)), Some(SourceError::ColumnRoles { .. })));
}

#[test]
fn labels_of_arrays_may_begin_with_any_number() {
    let (folder, like) = crate::scratch();
    let images = source(folder.path(), Format::Idx);
    let run = |options: &IdxOptions| import(&images, &like, options);
    assert!(matches!(run(&IdxOptions { first_label: 2, ..IdxOptions::default() }), Err(Error::Source { .. })));
    run(&IdxOptions::default()).unwrap();
    let table = Table::open(&like).unwrap();
    assert_eq!((table.labels::<u8>().unwrap(), table.classes().len()), (&[1, 2][..], 0));
    run(&IdxOptions { first_label: 1, ..IdxOptions::default() }).unwrap();
    let table = Table::open(&like).unwrap();
    assert_eq!((table.labels::<u8>().unwrap(), table.classes()), (&[0, 1][..], &["1".into(), "2".into()][..]));

    // A test set with the second class only, and one with another.
    let dest = folder.path().join("test.safetensors");
    let labels = folder.path().join("labels-idx1-ubyte");
    let options = IdxOptions { like: Some(like.clone()), ..IdxOptions::default() };
    fs::write(&labels, [0, 0, 8, 1, 0, 0, 0, 2, 2, 2]).unwrap();
    import(&images, &dest, &options).unwrap();
    assert_eq!(Table::open(&dest).unwrap().labels::<u8>().unwrap(), [1, 1]);
    fs::write(&labels, [0, 0, 8, 1, 0, 0, 0, 2, 2, 3]).unwrap();
    let message = import(&images, &dest, &options).unwrap_err().to_string();
    assert!(message.contains("row 1") && message.contains("the label 3"), "{message}");

    let [x, y] = ["x.npy", "y.npy"].map(|name| folder.path().join(name));
    fs::write(&x, npy("|u1", "(2, 1, 1, 1)", &[5, 6])).unwrap();
    fs::write(&y, npy("<i4", "(2,)", &[2, 0, 0, 0, 1, 0, 0, 0])).unwrap();
    let options = NpyOptions { labels: NpyLabels::Array(ArrayRef::File(y)), like: Some(like), ..NpyOptions::default() };
    import(&x, &dest, &options).unwrap();
    assert_eq!(Table::open(&dest).unwrap().labels::<i64>().unwrap(), [1, 0]);
    fs::write(&x, npy("|u1", "(2, 1, 1)", &[5, 6])).unwrap();
    assert!(matches!(crate::reason(import(&x, &dest, &options)), Some(SourceError::ColumnRoles { .. })));
}

#[test]
fn sources_without_named_columns_refuse_settings_of_columns() {
    let (folder, like) = crate::scratch();
    let file = |name: &str, bytes: &[u8]| {
        fs::write(folder.path().join(name), bytes).unwrap();
        folder.path().join(name)
    };
    let csv = file("rows.csv", b"label,feature_1,w\n1,5,2\n");
    let svm = file("rows.svm", b"1 1:2\n");
    let [x, y, w] = ["x", "y", "w"]
        .map(|name| file(&format!("{name}.npy"), &npy("<f4", if name == "x" { "(1, 1)" } else { "(1,)" }, &[0; 4])));
    let dest = folder.path().join("test.safetensors");
    let svmlight = SvmlightOptions { like: Some(like.clone()), ..SvmlightOptions::default() };
    let arrays = |weights: Option<&PathBuf>| NpyOptions {
        labels: NpyLabels::Array(ArrayRef::File(y.clone())),
        weights: weights.cloned().map(ArrayRef::File),
        like: Some(like.clone()),
        ..NpyOptions::default()
    };
    let check = |columns: ColumnOptions, is_matched: [bool; 3]| {
        import(&csv, &like, &CsvOptions { columns, ..CsvOptions::default() }).unwrap();
        let results = [import(&svm, &dest, &svmlight), import(&x, &dest, &arrays(None)), import(&x, &dest, &arrays(Some(&w)))];
        for (result, is_matched) in results.into_iter().zip(is_matched) {
            assert_eq!(result.is_ok(), is_matched, "{result:?}");
            assert!(is_matched || matches!(crate::reason(result), Some(SourceError::ColumnRoles { .. })));
        }
    };
    let plain = ColumnOptions { drop: vec!["w".into()], ..ColumnOptions::default() };
    check(plain.clone(), [true, true, false]);
    check(ColumnOptions { weight: Some("w".into()), ..ColumnOptions::default() }, [false, false, true]);
    check(ColumnOptions { offsets: vec![("feature_1".into(), 1.0)], ..plain.clone() }, [false; 3]);
    check(ColumnOptions { missing_values: vec!["-9".into()], ..plain }, [false; 3]);
}
