//! The closing lines of a run, for people.

use crate::number::grouped;

/// Two aligned columns, one line per row.
///
/// # Examples
/// ```
/// use brisk_report::closing_table;
///
/// let (loss, accuracy) = (0.3217, 0.914);
/// let table = closing_table(&[("loss", format!("{loss:.3}")), ("accuracy", format!("{accuracy:.3}"))]);
/// assert_eq!(table, "loss      0.322\naccuracy  0.914\n");
/// ```
pub fn closing_table(rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    rows.iter().map(|(name, value)| format!("{name:width$}  {value}").trim_end().to_owned() + "\n").collect()
}

/// A whole number with a comma every three digits: `10,500,000`.
pub fn thousands(n: u64) -> String {
    grouped(&n.to_string(), ',')
}

/// A rate to whole rows, `205,312`; below ten, with one decimal. What is not a finite rate is a dash.
pub fn rows_per_second(rate: f64) -> String {
    match rate {
        rate if !rate.is_finite() || rate < 0.0 => "-".to_owned(),
        rate if rate < 9.95 => format!("{rate:.1}"),
        rate => thousands(rate.round() as u64),
    }
}

/// Bytes in units of 1,048,576, to a tenth: `12.5 MiB`.
pub fn mebibytes(n_bytes: u64) -> String {
    const MIB: u128 = 1 << 20;
    let tenths = (u128::from(n_bytes) * 10 + MIB / 2) / MIB;
    format!("{}.{} MiB", thousands((tenths / 10) as u64), tenths % 10)
}

/// A duration: `250 ms`, `12.3 s`, `3 min 24 s`, `2 h 05 min`. What is not a finite one is a dash.
pub fn seconds(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match seconds {
        seconds if !seconds.is_finite() || seconds < 0.0 => "-".to_owned(),
        seconds if seconds < 0.9995 => format!("{:.0} ms", seconds * 1e3),
        seconds if seconds < 59.95 => format!("{seconds:.1} s"),
        _ if whole < 3600 => format!("{} min {:02} s", whole / 60, whole % 60),
        // Whole minutes, rounded once more.
        _ => format!("{} h {:02} min", (whole + 30) / 3600, (whole + 30) / 60 % 60),
    }
}
