//! Whether each class has rows in each of the sets that rows are split into.

use brisk_loader::{RowSource, Subset};
use brisk_table::Table;

use crate::error::{Error, failed};
use crate::recipe::Recipe;
use crate::target::Target;
use crate::validated::Validated;

/// The same parts, in which each class has a row in each part that is not meant to be empty, if it has as many; or else in the
/// first part, if that has none. `labels` are those of all rows, in `classes` the different ones.
pub(super) fn with_each_class<'a, const N: usize>(
    table: &'a Table,
    (labels, classes): (&[f32], &[f32]),
    parts: [Subset<&'a Table>; N],
    fractions: [f64; N],
) -> Result<[Subset<&'a Table>; N], Error> {
    let mut rows = parts.each_ref().map(|part| (0..part.n_rows() as u32).map(|row| part.row(row)).collect::<Vec<_>>());
    let filled: Vec<usize> = (0..N).filter(|&part| fractions[part] > 0.0).collect();
    let mut is_changed = false;
    for &class in classes {
        let is_of = |row: &u32| labels[*row as usize] == class;
        let mut counts = rows.each_ref().map(|rows| rows.iter().filter(|row| is_of(row)).count());
        let n_rows: usize = counts.iter().sum();
        let needy = if n_rows >= filled.len() { &filled[..] } else { &filled[..n_rows.min(1)] };
        for &part in needy {
            if counts[part] > 0 {
                continue;
            }
            let Some(from) = (0..N).max_by_key(|&other| counts[other]) else { continue };
            let Some(at) = rows[from].iter().rposition(is_of) else { continue };
            let row = rows[from].remove(at);
            let to = rows[part].partition_point(|&other| other < row);
            rows[part].insert(to, row);
            (counts[from], counts[part], is_changed) = (counts[from] - 1, 1, true);
        }
    }
    if !is_changed {
        return Ok(parts);
    }
    let mut rows = rows.into_iter();
    let parts: Result<Vec<_>, _> =
        (0..N).map(|_| Subset::of_rows(table, rows.next().unwrap_or_default()).map_err(failed("all"))).collect();
    parts?.try_into().map_err(|_| unreachable!("as many parts as before"))
}

/// Checks that validation rows with these labels are of both of two classes, if the metric that a recipe watches is of both.
pub(super) fn check_watched(target: &Target, recipes: &[Recipe], valid: &Validated) -> Result<(), Error> {
    let of_task = target.task().watched().to_owned();
    let mut watched = recipes.iter().map(|recipe| recipe.monitor.as_ref().unwrap_or(&of_task));
    match watched.find(|metric| metric.ends_with("auc")).and_then(|_| only_class(target, valid)) {
        Some((class, n_rows)) => Err(Error::WatchedClass { target: target.name().to_owned(), class, n_rows }),
        None => Ok(()),
    }
}

/// Checks that validation rows with these labels are of both of two classes, between which a threshold decides.
pub(super) fn check_threshold(target: &Target, valid: &Validated) -> Result<(), Error> {
    match only_class(target, valid) {
        Some((class, n_rows)) => Err(Error::ThresholdClass { target: target.name().to_owned(), class, n_rows }),
        None => Ok(()),
    }
}

/// The class of two that all rows have whose weight is not 0, and how many these are.
fn only_class(target: &Target, rows: &Validated) -> Option<(String, usize)> {
    let [no, yes] = target.classes() else { return None };
    let counted = (0..rows.labels.len()).filter(|&row| rows.weight(row) > 0.0);
    let mut counts = [0, 0];
    counted.for_each(|row| counts[usize::from(rows.labels[row] > 0.5)] += 1);
    match counts {
        [n_rows, 0] => Some((no.clone(), n_rows)),
        [0, n_rows] => Some((yes.clone(), n_rows)),
        _ => None,
    }
}
