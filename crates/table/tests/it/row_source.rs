use brisk_loader::{RowSource, row_source_conformance};
use brisk_table::{DType, Schema, Table, TableWriter};

#[test]
fn a_table_is_a_row_source() {
    for n_rows in [1, 2, 700, 100_000] {
        let (_folder, path) = crate::scratch();
        crate::table::write_ramp(&path, n_rows);
        // SAFETY: the folder is this test's own.
        #[expect(unsafe_code, reason = "maps keep the contract as copies do")]
        let mapped = unsafe { Table::open_mapped(&path) }.unwrap();
        row_source_conformance(&mapped);
        row_source_conformance(&Table::open(&path).unwrap());
    }
}

#[test]
fn bytes_are_gathered_as_numbers() {
    let (_folder, path) = crate::scratch();
    let schema = Schema { dtype: DType::U8, label_dtype: DType::I64, ..Schema::shaped(&[2, 2]) };
    let mut writer = TableWriter::create(&path, schema).unwrap();
    writer.push(&[0_u8, 1, 2, 3, 252, 253, 254, 255], &[7_i64, -1]).unwrap();
    writer.finish().unwrap();
    let table = Table::open(&path).unwrap();
    row_source_conformance(&table);
    let (mut features, mut labels) = ([0.0; 8], [0.0; 2]);
    table.gather(&[1, 0], &mut features, &mut labels).unwrap();
    assert_eq!((features, labels), ([252.0, 253.0, 254.0, 255.0, 0.0, 1.0, 2.0, 3.0], [-1.0, 7.0]));
}
