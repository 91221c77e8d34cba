//! The table of the columns on the page: their values, the input of the network that each becomes, and their importance.

use brisk_examples::tabular::number;
use brisk_report::{ReportTable, thousands};
use brisk_tabular::{ColumnContent, ColumnScale, ColumnSummary, Detected, NumberColumn, Reading, TabularModel};

/// The most columns that are shown.
const MAX_SHOWN: usize = 500;

const HEADER: [&str; 6] = ["column", "kind", "missing", "values", "input of the network", "importance"];

/// A row for each column but the target, in the order of the file; `None` if nothing is known of them.
pub(crate) fn table(detected: &Detected, model: &TabularModel) -> Option<ReportTable> {
    let summaries = &detected.summaries[..];
    let mut rows: Vec<Vec<String>> = summaries.iter().take(MAX_SHOWN).map(|column| row(detected, model, column)).collect();
    if summaries.len() > MAX_SHOWN {
        rows.push(vec![format!("and {} more", thousands((summaries.len() - MAX_SHOWN) as u64))]);
    }
    (!rows.is_empty()).then(|| ReportTable::of_columns("Columns of the table", &HEADER, rows))
}

fn row(
    detected: &Detected,
    model: &TabularModel,
    ColumnSummary { column, n_rows, n_missing, content, .. }: &ColumnSummary,
) -> Vec<String> {
    let (mut kind, values) = match content {
        ColumnContent::Numbers { range: [min, max] } if min.is_nan() || max.is_nan() => ("number".to_owned(), "none".to_owned()),
        ColumnContent::Numbers { range } => ("number".to_owned(), format!("{} to {}", shown(range[0]), shown(range[1]))),
        ColumnContent::Dates { format, range: [first, last] } => (format!("date, {format}"), format!("{first} to {last}")),
        ColumnContent::Categories { n_distinct } => ("category".to_owned(), different(*n_distinct)),
        ColumnContent::LeftOut { n_distinct } => (String::new(), n_distinct.map_or_else(|| "-".to_owned(), different)),
        _ => (String::new(), "-".to_owned()),
    };
    let input = input(model, column);
    if input.is_none() {
        let reason = format!("left out: {}", why_left_out(detected, model, column));
        kind = if kind.is_empty() { reason } else { format!("{kind}, {reason}") };
    }
    let missing = match n_missing {
        0 => "none".to_owned(),
        _ => format!("{:.1} %", 100.0 * *n_missing as f64 / *n_rows as f64),
    };
    let importance = model.importance().and_then(|all| all.columns.iter().find(|other| other.column == *column));
    let importance = importance.map(|of| format!("{} \u{b1} {}", number(of.mean), number(of.deviation)));
    let [input, importance] = [input, importance].map(|text| text.unwrap_or_else(|| "-".to_owned()));
    vec![column.clone(), kind, missing, values, input, importance]
}

/// What a column is for the network; `None` if it is left out.
fn input(model: &TabularModel, column: &str) -> Option<String> {
    let preprocessing = model.preprocessing();
    let numbers: Vec<&NumberColumn> = preprocessing.numbers().iter().filter(|number| number.column == column).collect();
    let Some(first) = numbers.first() else {
        let dictionary = preprocessing.categories().iter().find(|dictionary| dictionary.name() == column)?;
        let rare = preprocessing.rare_values().find(|(name, _)| *name == column);
        let rare =
            rare.map_or_else(String::new, |(_, n_rare)| format!(", one for {} rare and unknown ones", thousands(n_rare as u64)));
        return Some(format!("embedding of {}{rare}", different(dictionary.values().len() as u64)));
    };
    let parts = numbers.iter().filter_map(|number| match number.reading {
        Reading::Date { part, .. } => Some(part.name().to_owned()),
        Reading::Offset { offset } => Some(format!("difference to {}", shown(offset))),
        _ => None,
    });
    let mut steps: Vec<String> = parts.collect();
    steps.push(match first.scale {
        ColumnScale::Standard { .. } => "standardised".to_owned(),
        ColumnScale::Quantile { .. } => "as quantiles of a normal distribution".to_owned(),
    });
    steps.extend(first.has_indicator.then(|| "missing ones marked".to_owned()));
    Some(steps.join(", "))
}

/// Why a column is no input.
fn why_left_out(detected: &Detected, model: &TabularModel, column: &str) -> String {
    const LEFT_OUT: &str = "is left out: ";
    if model.preprocessing().left_out(&detected.columns).any(|other| other == column) {
        return "all training rows have the same value, or none".to_owned();
    }
    let of_column = detected.warnings.iter().filter(|warning| warning.column() == Some(column)).map(ToString::to_string);
    let reason = of_column.filter_map(|text| text.split_once(LEFT_OUT).map(|(_, reason)| reason.to_owned())).next();
    reason.unwrap_or_else(|| "an option says so".to_owned())
}

fn different(n: u64) -> String {
    format!("{} {}", thousands(n), if n == 1 { "value" } else { "different values" })
}

fn shown(number: f64) -> String {
    let is_plain = number == 0.0 || (1e-5..1e16).contains(&number.abs());
    if is_plain { number.to_string() } else { format!("{number:e}") }
}

#[cfg(test)]
mod tests {
    use super::{different, shown};

    #[test]
    fn numbers_are_short() {
        assert_eq!([shown(-3.5), shown(0.0), shown(2e30), shown(1e-7)], ["-3.5", "0", "2e30", "1e-7"]);
        assert_eq!([different(1), different(12_345)], ["1 value", "12,345 different values"]);
    }
}
