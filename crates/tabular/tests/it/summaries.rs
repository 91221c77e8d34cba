//! What the columns of a file have.

use std::fs;

use brisk_table::DateFormat;
use brisk_tabular::{ColumnContent, DetectOptions, Error, TabularModel, TabularWarning};

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

#[test]
fn a_row_of_totals_is_named() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("rows.csv");
    let rows = || (0..60).map(|row| (row * 7 % 60, f64::from(row * 11 % 60) + 0.25));
    let text = rows().fold("shop,a,y\n".to_owned(), |text, (a, y)| text + &format!("s{},{a},{y}\n", a % 3));
    let (a, y) = rows().fold((0, 0.0), |(a, y), row| (a + row.0, y + row.1));
    for (last, n_warnings) in [(format!("Total,{a},{y}\n"), 1), (format!("Total,{a},{}\n", y / 2.0), 0)] {
        fs::write(&path, text.clone() + &last)?;
        let found = TabularModel::detect(&path, &DetectOptions::default())?.warnings;
        let totals: Vec<_> =
            found.iter().filter(|found| matches!(found, TabularWarning::Totals { columns } if columns.len() == 2)).collect();
        assert_eq!(totals.len(), n_warnings, "{last}: {found:?}");
    }
    Ok(())
}

#[test]
fn a_target_of_numbers_with_units_is_refused_with_the_first_of_them() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("rows.csv");
    fs::write(&path, (0..200).fold("a,y\n".to_owned(), |text, row| text + &format!("{row}.5,{}.5 kg\n", row % 50)))?;
    let error = TabularModel::detect(&path, &DetectOptions::default()).expect_err("numbers with units");
    let Error::OddCells(odd) = &error else { panic!("{error}") };
    assert_eq!((odd.cells[0].line, odd.cells[0].text.as_str(), odd.is_target), (2, "0.5 kg", true), "{error}");
    Ok(())
}
