use crate::html::escaped;

/// Names and values: settings, or the machine of a run.
#[derive(Clone, Debug)]
pub struct ReportTable {
    pub(crate) title: String,
    rows: Vec<(String, String)>,
}

impl ReportTable {
    /// A table of `rows`.
    pub fn new(title: impl Into<String>, rows: impl IntoIterator<Item = (String, String)>) -> Self {
        Self { title: title.into(), rows: rows.into_iter().collect() }
    }

    pub(crate) fn html(&self) -> String {
        let row = |(name, value): &(String, String)| format!("<tr><th>{}</th><td>{}</td></tr>", escaped(name), escaped(value));
        format!("<table><tbody>{}</tbody></table>", self.rows.iter().map(row).collect::<String>())
    }
}
