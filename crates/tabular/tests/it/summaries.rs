//! What the columns of a file have.

use std::fs;

use brisk_table::DateFormat;
use brisk_tabular::{ColumnContent, DetectOptions, TabularModel};

#[test]
fn each_column_is_summarised_whether_it_is_a_feature_or_not() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("rows.csv");
    let row = |row: usize| {
        let size = if row.is_multiple_of(4) { String::new() } else { format!("{}.5", row % 10) };
        format!("id {row},,{}.{}.2024,{size},{},7,{}\n", row % 28 + 1, row % 2 + 1, ["a", "b", "c"][row % 3], row * 7 % 100)
    };
    fs::write(&path, "id,empty,when,size,kind,version,y\n".to_owned() + &(0..200).map(row).collect::<String>())?;
    let options = DetectOptions { drop: vec!["version".to_owned()], ..DetectOptions::default() };
    let detected = TabularModel::detect(&path, &options)?;
    let found: Vec<_> = detected.summaries.iter().map(|of| (of.column.as_str(), of.n_missing, of.content.clone())).collect();
    let format = DateFormat::named("%d.%m.%Y").ok_or("a format")?;
    let expected = [
        ("id", 0, ColumnContent::LeftOut { n_distinct: Some(200) }),
        ("empty", 200, ColumnContent::LeftOut { n_distinct: Some(0) }),
        ("when", 0, ColumnContent::Dates { format, range: ["1.1.2024", "28.2.2024"].map(str::to_owned) }),
        ("size", 50, ColumnContent::Numbers { range: [0.5, 9.5] }),
        ("kind", 0, ColumnContent::Categories { n_distinct: 3 }),
        ("version", 0, ColumnContent::LeftOut { n_distinct: Some(1) }),
    ];
    assert_eq!(found, expected);
    assert!(detected.summaries.iter().all(|of| of.n_rows == 200), "{:?}", detected.summaries);
    Ok(())
}
