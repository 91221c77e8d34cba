use brisk_table::{ColumnStatistics, printable};

/// One line for each column: its name, how many of `n_rows` values are missing, mean, standard deviation, minimum and maximum.
pub fn statistics_table(names: &[String], columns: &[ColumnStatistics], n_rows: usize) -> String {
    let heading = ["column", "missing", "mean", "std", "min", "max"].map(String::from);
    let lines = columns.iter().enumerate().map(|(col, column)| {
        let name = names.get(col).map_or(col.to_string(), |name| printable(name).to_string());
        let missing = (n_rows as u64).saturating_sub(column.count).to_string();
        let [mean, std, min, max] = [column.mean, column.std, column.min, column.max].map(short);
        [name, missing, mean, std, min, max]
    });
    let lines: Vec<[String; 6]> = std::iter::once(heading).chain(lines).collect();
    let widths: [usize; 6] = std::array::from_fn(|cell| lines.iter().map(|line| line[cell].chars().count()).max().unwrap_or(0));
    let printed = lines.iter().map(|line| {
        let numbers: String = line[1..].iter().zip(&widths[1..]).map(|(cell, width)| format!("  {cell:>width$}")).collect();
        format!("{:name$}{numbers}", line[0], name = widths[0])
    });
    printed.collect::<Vec<_>>().join("\n")
}

/// A number with about six digits.
fn short(value: f64) -> String {
    match value.abs() {
        _ if value.is_nan() => "-".to_owned(),
        size if value == value.trunc() && size < 1e9 => format!("{value}"),
        size if (1e-3..1e6).contains(&size) => format!("{value:.5}"),
        _ => format!("{value:.4e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let column = |count, mean| ColumnStatistics { count, mean, std: 0.5, min: -1e-9, max: 2.0 };
        let names = ["pt".to_owned(), "missing_energy".to_owned()];
        let table = statistics_table(&names, &[column(10, 1.25), column(0, f64::NAN)], 10);
        let expected = "\
column          missing     mean      std         min  max
pt                    0  1.25000  0.50000  -1.0000e-9    2
missing_energy       10        -  0.50000  -1.0000e-9    2";
        assert_eq!(table, expected);
    }
}
