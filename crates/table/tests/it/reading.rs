//! Files of other programs, hints, and files that change under a reader.

use std::fs;
use std::path::Path;

use brisk_loader::{Hint, RowBuffers, RowSelection, RowSource};
use brisk_table::{Advice, Error, LabelsFrom, ReadAhead, Schema, StreamedTable, Table, TableWriter, TensorNames};
use safetensors::Dtype;
use safetensors::tensor::TensorView;

/// `x` [3], `y` [3, 1], `w` [3], `codes` [3, 1].
fn write_theirs(path: &Path) {
    let bytes = |values: [f32; 3]| values.into_iter().flat_map(f32::to_le_bytes).collect::<Vec<u8>>();
    let (x, y, w) = (bytes([1.0, 2.0, 3.0]), bytes([0.0, 1.0, 0.0]), bytes([0.5, 0.25, 4.0]));
    let codes: Vec<u8> = [7_u32, 0, 9].into_iter().flat_map(u32::to_le_bytes).collect();
    let view = |dtype, shape: &[usize], data| TensorView::new(dtype, shape.to_vec(), data).unwrap();
    let tensors = [
        ("x", view(Dtype::F32, &[3], x.as_slice())),
        ("y", view(Dtype::F32, &[3, 1], y.as_slice())),
        ("w", view(Dtype::F32, &[3], w.as_slice())),
        ("codes", view(Dtype::U32, &[3, 1], codes.as_slice())),
    ];
    fs::write(path, safetensors::serialize(tensors, None).unwrap()).unwrap();
}

fn their_names() -> TensorNames {
    TensorNames { features: "x".into(), labels: LabelsFrom::Tensor("y".into()), categories: "codes".into(), weights: "w".into() }
}

#[test]
fn tensors_of_other_names_are_read() {
    let (_folder, path) = crate::scratch();
    write_theirs(&path);
    let names = their_names();
    // SAFETY: only this test uses the folder.
    #[expect(unsafe_code, reason = "maps read what copies read")]
    let mapped = unsafe { Table::open_mapped_named(&path, &names) }.unwrap();
    for table in [Table::open_named(&path, &names).unwrap(), mapped] {
        assert_eq!((table.n_rows(), table.row_shape()), (3, &[1][..]));
        assert_eq!(table.rows::<f32>(0..3).unwrap(), [1.0, 2.0, 3.0]);
        assert_eq!((table.labels::<f32>().unwrap(), table.weights().unwrap()), (&[0.0, 1.0, 0.0][..], &[0.5, 0.25, 4.0][..]));
        assert_eq!(table.categories(0..3).unwrap(), [7, 0, 9]);
        brisk_loader::row_source_conformance(&table);
    }
    brisk_loader::row_source_conformance(&StreamedTable::open_named(&path, &names, &ReadAhead::new(1 << 20)).unwrap());
}

#[test]
fn labels_are_absent_only_when_asked() {
    #[track_caller]
    fn check(path: &Path, names: &TensorNames, says: &str) {
        let message = Table::open_named(path, names).unwrap_err().to_string();
        assert!(message.contains(says), "{message}");
    }
    let (_folder, path) = crate::scratch();
    write_theirs(&path);
    check(&path, &TensorNames::default(), "there is no tensor `features`");
    check(&path, &TensorNames { features: "x".into(), ..TensorNames::default() }, "there is no tensor `labels`");
    check(&path, &TensorNames { labels: LabelsFrom::Tensor("z".into()), ..their_names() }, "there is no tensor `z`");

    let table = Table::open_named(&path, &TensorNames { labels: LabelsFrom::Zero, ..their_names() }).unwrap();
    assert!(matches!(table.labels::<f32>(), Err(Error::NoLabels { .. })));
    let (mut features, mut labels) = ([0.0; 2], [7.0; 2]);
    table.gather(RowSelection::Numbers(&[2, 0]), RowBuffers::new(&mut features, &mut labels)).unwrap();
    assert_eq!((features, labels), ([3.0, 1.0], [0.0, 0.0]));
    brisk_loader::row_source_conformance(&table);
}

#[test]
fn hints_change_no_row() {
    let (_folder, path) = crate::scratch();
    crate::table::write_ramp(&path, 100_000);
    // SAFETY: only this test uses the folder.
    #[expect(unsafe_code, reason = "copies take no hints")]
    let mapped = unsafe { Table::open_mapped(&path) }.unwrap();
    for table in [&mapped, &Table::open(&path).unwrap()] {
        for advice in [Advice::Sequential, Advice::Random, Advice::WillNeed] {
            table.advise(advice).unwrap();
        }
        let borrowed = table.rows::<f32>(0..100_000).unwrap();
        table.hint(RowSelection::Range(0..200_000), Hint::WillNeed);
        table.hint(RowSelection::Range(10..90_000), Hint::DontNeed);
        table.hint(RowSelection::Range(0..usize::MAX), Hint::DontNeed);
        assert!(borrowed.chunks(2).enumerate().all(|(i, row)| row == [i as f32, i as f32 / 2.0]), "rows differ after a hint");
        table.verify().unwrap();
    }
}

/// A writer replaces a table that is open: readers keep the old one. Windows does not replace a file that is mapped; then the new
/// table is kept next to it.
#[test]
fn a_file_that_is_replaced_stays_what_it_was() {
    let (_folder, path) = crate::scratch();
    crate::table::write_ramp(&path, 100_000);
    // SAFETY: the file is replaced, not changed; this is what the test is about.
    #[expect(unsafe_code, reason = "maps are what is tested")]
    let mapped = unsafe { Table::open_mapped(&path) }.unwrap();
    let streamed = StreamedTable::open(&path, &ReadAhead::new(1 << 20)).unwrap();
    let mut writer = TableWriter::create(&path, Schema::named(["whole", "half"])).unwrap();
    writer.push(&[0.0_f32; 14], &[0.0_f32; 7]).unwrap();
    let new = match writer.finish() {
        Ok(7) if cfg!(not(windows)) => path.clone(),
        Err(Error::NotReplaced { kept, .. }) if cfg!(windows) => {
            assert_eq!(kept, path.with_file_name("table.safetensors.new"));
            kept
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(Table::open(&new).unwrap().n_rows(), 7);

    assert_eq!(mapped.rows::<f32>(99_999..100_000).unwrap(), [99_999.0, 49_999.5]);
    mapped.verify().unwrap();
    streamed.verify().unwrap();
    let (mut features, mut labels) = ([0.0; 2], [0.0]);
    streamed.gather(RowSelection::Numbers(&[99_999]), RowBuffers::new(&mut features, &mut labels)).unwrap();
    assert_eq!((features, labels), ([99_999.0, 49_999.5], [1.0]));
}

#[test]
fn verifying_says_how_far_it_is() {
    let (_folder, path) = crate::scratch();
    crate::table::write_ramp(&path, 500_000);
    let mut seen = Vec::new();
    Table::open(&path).unwrap().verify_with_progress(|now| seen.push(now)).unwrap();
    assert!(seen.is_sorted_by_key(|now| now.n_bytes), "{seen:?}");
    let last = seen.last().unwrap();
    assert!(last.n_bytes == last.of_bytes && last.of_bytes > 500_000 * 12, "{last:?}");
}
