//! What a table records of the settings of its import, and imports that match it.

use std::fs;
use std::path::PathBuf;

use brisk_table::{
    BadRows, Categorical, ColumnOptions, CsvOptions, Error, ImportReport, ImportWarning, LabelKind, Missing, Schema, Table,
    TableWriter, Weights, import,
};

fn columns() -> ColumnOptions {
    ColumnOptions::default()
}

struct Folder {
    folder: tempfile::TempDir,
    train: PathBuf,
}

impl Folder {
    /// With a table made from this text.
    fn new(text: &str, columns: ColumnOptions) -> Self {
        let (folder, train) = crate::scratch();
        let folder = Self { folder, train };
        folder.import(text, "table", columns).unwrap();
        folder
    }

    /// The table made from this text like the first one.
    fn like(&self, text: &str, columns: ColumnOptions) -> Result<Table, Error> {
        self.import(text, "test", ColumnOptions { like: Some(self.train.clone()), ..columns }).map(|(_, table)| table)
    }

    fn import(&self, text: &str, name: &str, columns: ColumnOptions) -> Result<(ImportReport, Table), Error> {
        let [source, dest] = ["csv", "safetensors"].map(|extension| self.folder.path().join(name).with_extension(extension));
        fs::write(&source, text).unwrap();
        let report = import(&source, &dest, &CsvOptions { columns, ..CsvOptions::default() })?;
        Ok((report, Table::open(&dest).unwrap()))
    }

    fn records_settings(&self) -> bool {
        fs::read(&self.train).unwrap().windows(11).any(|bytes| bytes == b"\"settings\":")
    }
}

#[track_caller]
fn refused(table: Result<Table, Error>, says: &[&str]) {
    let message = table.map(|table| table.n_rows()).expect_err("it was imported").to_string();
    assert!(says.iter().all(|part| message.contains(part)), "`{message}` does not say {says:?}");
}

#[test]
fn words_for_missing_values_are_those_of_the_table() {
    let words = |words: &[&str]| ColumnOptions { missing_values: words.iter().map(|&word| word.into()).collect(), ..columns() };
    let text = "y,a,b\n1,-999,5\n0,2,6\n1,4,none given\n";
    let pair = Folder::new(text, ColumnOptions { missing: Missing::Mean, ..words(&["-999", " none given "]) });
    let train = Table::open(&pair.train).unwrap();
    let test = pair.like(text, columns()).unwrap();
    assert_eq!(test.rows::<f32>(0..3).unwrap(), train.rows::<f32>(0..3).unwrap());
    assert_eq!(test.rows::<f32>(0..1).unwrap(), [3.0, 5.0]);
    // More words than those of the table are allowed, fewer are not.
    let more = pair.like("y,a,b\n1,x,-999\n", words(&["x", "none given", "-999"])).unwrap();
    assert_eq!(more.rows::<f32>(0..1).unwrap(), [3.0, 5.5]);
    refused(pair.like(text, words(&["-999", "x"])), &["-999", "\"x\"", "\"none given\""]);
    // A table made like another is matched in turn.
    fs::rename(pair.folder.path().join("test.safetensors"), &pair.train).unwrap();
    assert_eq!(pair.like("y,a,b\n1,x,-999\n", columns()).unwrap().rows::<f32>(0..1).unwrap(), [3.0, 5.5]);
}

#[test]
fn offsets_are_those_of_the_table() {
    let offsets = |offsets: &[(&str, f64)]| ColumnOptions {
        offsets: offsets.iter().map(|&(column, offset)| (column.into(), offset)).collect(),
        ..columns()
    };
    let text = "y,a,t\n7.5,1,1700000000.125\n8,2,\n";
    let given = [("t", 1_700_000_000.1), ("y", 7.0)];
    let pair = Folder::new(text, ColumnOptions { missing: Missing::Value(1_700_000_000.0), ..offsets(&given) });
    let train = Table::open(&pair.train).unwrap();
    for columns in [columns(), offsets(&given), offsets(&given[..1])] {
        let test = pair.like(text, columns).unwrap();
        assert_eq!(test.rows::<f32>(0..2).unwrap(), train.rows::<f32>(0..2).unwrap());
        assert_eq!(test.labels::<f32>().unwrap(), [0.5, 1.0]);
    }
    refused(pair.like(text, offsets(&[("t", 5.5)])), &["`t`", "5.5", "1700000000.1"]);
    refused(pair.like(text, offsets(&[("a", 5.5)])), &["`a`", "5.5", "match it is 0"]);
    // Rows to predict have no labels.
    let absent = ColumnOptions { label_kind: LabelKind::Absent, ..columns() };
    let test = pair.like("a,t\n1,1700000000.125\n", absent).unwrap();
    assert_eq!(test.rows::<f32>(0..1).unwrap(), train.rows::<f32>(0..1).unwrap());
}

#[test]
fn weights_are_the_column_of_the_table() {
    let weight = |name: &str| ColumnOptions { weight: Some(name.into()), ..columns() };
    let (text, absent) = ("y,w,a,v\n1,0.5,3,0.25\n", ColumnOptions { label_kind: LabelKind::Absent, ..columns() });
    let pair = Folder::new(text, ColumnOptions { drop: vec!["v".into()], ..weight("w") });
    for columns in [columns(), weight("w")] {
        assert_eq!(pair.like(text, columns).unwrap().weights().unwrap(), [0.5]);
    }
    refused(pair.like(text, weight("v")), &["`v`", "`w`"]);
    refused(pair.like(text, ColumnOptions { drop: vec!["w".into()], ..columns() }), &["`w` is dropped"]);
    refused(pair.like("y,a,v\n1,3,0.25\n", columns()), &["no column `w` for the weight"]);
    assert!(!pair.like("a\n3\n", absent.clone()).unwrap().has_weights(), "rows to predict need no weights");
    assert_eq!(pair.like("a,w\n3,2\n", ColumnOptions { weight: Some("w".into()), ..absent }).unwrap().weights().unwrap(), [2.0]);

    // A table whose weights have no recorded name.
    let schema = Schema { label_names: vec!["y".into()], weights: Weights::Present, ..Schema::named(["a"]) };
    let mut writer = TableWriter::create(&pair.train, schema).unwrap();
    writer.push_weighted(&[3.0_f32], &[1.0_f32], &[0.5]).unwrap();
    writer.finish().unwrap();
    refused(pair.like(text, columns()), &["has weights", "name it"]);
    assert_eq!(pair.like(text, weight("v")).unwrap().weights().unwrap(), [0.25]);

    let without = Folder::new(text, columns());
    refused(without.like(text, weight("w")), &["`w`", "no weights"]);
}

#[test]
fn settings_are_recorded_where_they_are_not_the_default() {
    assert!(!Folder::new("y,a\n1,2\n", columns()).records_settings());
    assert!(!Folder::new("y,a\n1,2\n", ColumnOptions { offsets: vec![("a".into(), 0.0)], ..columns() }).records_settings());
    assert!(Folder::new("y,a\n1,2\n", ColumnOptions { offsets: vec![("a".into(), 0.5)], ..columns() }).records_settings());
}

#[test]
fn values_that_are_not_in_the_table_are_told() {
    let pair = Folder::new("y,c,d\n1,red,u\n0,blue,v\n", ColumnOptions { categorical: Categorical::Auto, ..columns() });
    // The row with `pink` is skipped.
    let text = "y,c,d\nx,pink,u\n1,green,u\n0,black,\n1,green,v\n0,red,v\n";
    let like = ColumnOptions { like: Some(pair.train.clone()), bad_rows: BadRows::Skip, ..columns() };
    let (report, table) = pair.import(text, "test", like).unwrap();
    assert_eq!(table.categories(0..4).unwrap(), [0, 1, 0, 0, 0, 2, 1, 2]);
    assert_eq!(report.warnings, [ImportWarning::Unseen { column: "c".into(), n_values: 3, example: "green".into() }]);
    let message = report.warnings[0].to_string();
    assert!(["`c`", "3 of its values", "\"green\""].iter().all(|part| message.contains(part)), "{message}");
}
