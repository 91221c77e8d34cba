use brisk_atomic_file::printable;

/// A value of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cell {
    /// A label: the number of it, from 0, where a row has several.
    Label(Option<usize>),
    /// A column, from 0.
    Column(usize),
    /// The code of a categorical column, from 0.
    Code(usize),
    /// The weight of the row.
    Weight,
}

impl Cell {
    /// `column 3 (`age`) of row 17`, `label 2 of row 3`.
    pub(super) fn in_row(self, row: usize, name: Option<&str>) -> String {
        let what = match self {
            Self::Label(None) => "the label".to_owned(),
            Self::Label(Some(label)) => format!("label {label}"),
            Self::Column(column) => format!("column {column}"),
            Self::Code(column) => format!("the code of categorical column {column}"),
            Self::Weight => "the weight".to_owned(),
        };
        let name = name.map_or(String::new(), |name| format!(" (`{}`)", printable(name)));
        format!("{what}{name} of row {row}")
    }
}
