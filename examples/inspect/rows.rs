use anyhow::Result;
use brisk_loader::{Chunk, RowMemory, RowSource};
use brisk_table::{Dictionary, Error, printable};

/// The maximum number of columns that are shown of a wide row.
const N_SHOWN: usize = 8;

/// The first rows, one per line: labels, categories, features.
pub(crate) fn first<S: RowSource<Feature = f32, Error = Error>>(
    source: &S,
    n_rows: usize,
    names: &[String],
    dictionaries: &[Dictionary],
    classes: &[String],
) -> Result<String> {
    let (n_cols, n_labels, n_categories) = (source.n_cols(), source.n_labels(), source.n_categories());
    let mut memory = RowMemory::new(source.layout(), n_rows);
    let Chunk { features, labels, categories, .. } = memory.read(source, 0..n_rows)?;

    let n_features = n_cols.min(N_SHOWN);
    let mut heading = vec!["row".to_owned()];
    heading.extend((0..n_labels).map(|label| if n_labels == 1 { "label".to_owned() } else { format!("label {label}") }));
    let shown = |text: &str| printable(text).to_string();
    heading.extend(
        (0..n_categories).map(|col| dictionaries.get(col).map_or(format!("category {col}"), |column| shown(column.name()))),
    );
    heading.extend((0..n_features).map(|col| names.get(col).map_or(col.to_string(), |name| shown(name))));
    let line = |row: usize| {
        let mut cells = vec![row.to_string()];
        cells.extend(labels[row * n_labels..][..n_labels].iter().map(|&label| {
            let class = classes.get(label as usize).filter(|_| label >= 0.0);
            class.map_or(label.to_string(), |class| shown(class))
        }));
        cells.extend(categories[row * n_categories..][..n_categories].iter().enumerate().map(|(col, &code)| {
            let value = dictionaries.get(col).and_then(|column| column.value(code));
            value.map_or(if code == 0 { "-".to_owned() } else { code.to_string() }, shown)
        }));
        cells.extend(features[row * n_cols..][..n_features].iter().map(f32::to_string));
        cells
    };
    let lines: Vec<Vec<String>> = std::iter::once(heading).chain((0..n_rows).map(line)).collect();
    let width = |cell: usize| lines.iter().map(|line| line[cell].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..lines[0].len()).map(width).collect();
    let more = if n_cols > n_features { "  …" } else { "" };
    let printed = lines.iter().map(|line| {
        let cells: Vec<String> = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}")).collect();
        cells.join("  ") + more
    });
    Ok(printed.collect::<Vec<_>>().join("\n"))
}
