use crate::html::escaped;

/// Names and values, such as settings or the machine of a run; or rows of several cells.
#[derive(Clone, Debug)]
pub struct ReportTable {
    pub(crate) title: String,
    /// The names of the columns, if there are more than a name and a value.
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl ReportTable {
    /// A table of names and values.
    pub fn new(title: impl Into<String>, rows: impl IntoIterator<Item = (String, String)>) -> Self {
        let rows = rows.into_iter().map(|(name, value)| vec![name, value]).collect();
        Self { title: title.into(), header: Vec::new(), rows }
    }

    /// A table whose columns have names, across the page. The first cell of a row is its name.
    pub fn of_columns<N: ToString>(title: impl Into<String>, header: &[N], rows: impl IntoIterator<Item = Vec<String>>) -> Self {
        let header = header.iter().map(ToString::to_string).collect();
        Self { title: title.into(), header, rows: rows.into_iter().collect() }
    }

    pub(crate) fn has_header(&self) -> bool {
        !self.header.is_empty()
    }

    pub(crate) fn html(&self) -> String {
        let cells = |names: &[String], values: &[String]| {
            let name = |text: &String| format!("<th>{}</th>", escaped(text));
            let value = |text: &String| format!("<td>{}</td>", escaped(text));
            names.iter().map(name).chain(values.iter().map(value)).collect::<String>()
        };
        let row = |row: &Vec<String>| {
            let (name, values) = row.split_at(row.len().min(1));
            format!("<tr>{}</tr>", cells(name, values))
        };
        let body = self.rows.iter().map(row).collect::<String>();
        if !self.has_header() {
            return format!("<table><tbody>{body}</tbody></table>");
        }
        let header = cells(&self.header, &[]);
        format!("<table class=\"wide\"><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>")
    }
}
