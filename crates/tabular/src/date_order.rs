use std::fmt;

use brisk_table::{ColumnKind, ColumnSurvey, DateFormat};

/// Which of two numbers of a date is the day, where no cell of a column has one above 12 that would say so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DateOrder {
    /// 3 April is `03/04/2024`.
    DayFirst,
    /// 4 March is `03/04/2024`.
    MonthFirst,
}

impl DateOrder {
    fn of(format: DateFormat) -> Self {
        if format.is_day_first() { Self::DayFirst } else { Self::MonthFirst }
    }

    /// The order in those columns of a file whose cells say it, if it is the same in all of them.
    pub(super) fn of_columns(columns: &[ColumnSurvey]) -> Option<Self> {
        let dates = columns.iter().filter(|column| column.kind() == ColumnKind::Dates && !is_open(column));
        let mut orders = dates.filter_map(|column| column.date_formats().next().filter(|format| format.swapped().is_some()));
        let first = Self::of(orders.next()?);
        orders.all(|format| Self::of(format) == first).then_some(first)
    }

    /// The format of a column of dates, in this order where its cells do not say it.
    pub(super) fn format_of(order: Option<Self>, column: &ColumnSurvey) -> DateFormat {
        let first = column.date_formats().next().unwrap_or(DateFormat::ISO);
        column.date_formats().find(|format| order == Some(Self::of(*format))).unwrap_or(first)
    }

    /// A date of a column whose cells do not say the order, and the order in which it is read.
    pub(super) fn of_open(order: Option<Self>, column: &ColumnSurvey) -> (String, Self) {
        let format = Self::format_of(order, column);
        let example = column.not_numbers.first().map_or_else(|| format.example(), |cell| cell.text.clone());
        (example, Self::of(format))
    }

    /// The other one.
    pub fn other(self) -> Self {
        match self {
            Self::DayFirst => Self::MonthFirst,
            Self::MonthFirst => Self::DayFirst,
        }
    }
}

/// Its name: `day-first` or `month-first`.
impl fmt::Display for DateOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DayFirst => "day-first",
            Self::MonthFirst => "month-first",
        })
    }
}

/// Whether a column has dates of which no cell says in which order day and month are.
pub(super) fn is_open(column: &ColumnSurvey) -> bool {
    column.kind() == ColumnKind::Dates && column.date_formats().count() > 1
}
