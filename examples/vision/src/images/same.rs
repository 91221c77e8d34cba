use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{DefaultHasher, Hasher as _};

use anyhow::Result;
use brisk_table::Table;

use super::source::ImageNames;

/// A table of images with the label and the name of each.
#[derive(Debug)]
pub(super) struct NamedRows<'t> {
    /// Which set it is: `training`.
    pub(super) set: &'static str,
    pub(super) table: &'t Table,
    pub(super) labels: Vec<f32>,
    pub(super) names: &'t ImageNames,
}

/// Images of the same pixels in two classes, or in two of the `sets`, in words: how many, and the first of them.
///
/// # Errors
/// If rows cannot be read.
pub(super) fn same_images(sets: &[NamedRows<'_>]) -> Result<Vec<String>> {
    // The first set and row of each image, by a hash of its pixels, and what was found of each kind.
    let mut first: HashMap<u64, (usize, usize)> = HashMap::new();
    let mut found: Vec<((usize, usize, bool), usize, String)> = Vec::new();
    for (set, rows) in sets.iter().enumerate() {
        for row in 0..rows.table.n_rows() {
            let mut hasher = DefaultHasher::new();
            hasher.write(rows.table.rows::<u8>(row..row + 1)?);
            let (other_set, other_row) = match first.entry(hasher.finish()) {
                Entry::Vacant(entry) => {
                    entry.insert((set, row));
                    continue;
                }
                Entry::Occupied(entry) => *entry.get(),
            };
            let other = &sets[other_set];
            let is_relabelled = rows.labels[row] != other.labels[other_row];
            if set == other_set && !is_relabelled {
                continue;
            }
            let kind = (other_set, set, is_relabelled);
            match found.iter_mut().find(|(known, ..)| *known == kind) {
                Some((_, n, _)) => *n += 1,
                None => found.push((kind, 1, format!("{} and {}", other.names.of(other_row), rows.names.of(row)))),
            }
        }
    }
    let said = found.into_iter().map(|((other_set, set, is_relabelled), n, example)| {
        let (images, are) = if n == 1 { ("image", "is") } else { ("images", "are") };
        let place = if set == other_set {
            format!("of the {} set {are} in two classes", sets[set].set)
        } else {
            let class = if is_relabelled { " in another class" } else { "" };
            format!("of the {} set {are} in the {} set{class} as well", sets[set].set, sets[other_set].set)
        };
        format!("{n} {images} {place}, such as {example}")
    });
    Ok(said.collect())
}
