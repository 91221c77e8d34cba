//! Parts of messages.

use std::collections::BTreeSet;
use std::path::Path;

use super::difference::{ResumeDifference, ResumeMismatch};

/// The names of the kinds, each once.
pub(super) fn mismatches(differences: &[ResumeDifference]) -> String {
    let kinds: BTreeSet<ResumeMismatch> = differences.iter().map(|difference| difference.mismatch).collect();
    kinds.into_iter().map(ResumeMismatch::name).collect::<Vec<_>>().join(", ")
}

pub(super) fn written(checkpoint: Option<&Path>) -> String {
    checkpoint.map_or("no checkpoint was written".to_owned(), |path| format!("a checkpoint was written to {}", path.display()))
}

pub(super) fn stopped_early(n_epochs: usize) -> String {
    match n_epochs {
        0 => "stopped before the end of the first epoch".to_owned(),
        n => format!("stopped after {}, before the first validation", count(n, "epoch")),
    }
}

/// The reason of a problem with an object, which it names.
pub(crate) fn naming(object: &str, reason: &str) -> String {
    if reason.contains(object) { reason.to_owned() } else { format!("{object}: {reason}") }
}

/// `1 row`, `2 rows`.
pub(crate) fn count(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

/// `epoch 2`, `epochs 1 to 3`.
pub(crate) fn epochs(first: usize, last: usize) -> String {
    if first == last { format!("epoch {first}") } else { format!("epochs {first} to {last}") }
}

/// ` for 2 replicas, for each (parameters 4.0 GiB, gradients 4.0 GiB)`
pub(super) fn memory_parts(n_replicas: usize, parts: &[(&str, usize)]) -> String {
    let each = if n_replicas == 1 { String::new() } else { format!(" for {n_replicas} replicas, for each") };
    let parts: Vec<String> =
        parts.iter().filter(|(_, n_bytes)| *n_bytes > 0).map(|(what, n_bytes)| format!("{what} {}", bytes(*n_bytes))).collect();
    if parts.is_empty() { each } else { format!("{each} ({})", parts.join(", ")) }
}

/// Bytes as a whole number below a KiB, else with one decimal in KiB, MiB, GiB or TiB.
pub(crate) fn bytes(n_bytes: usize) -> String {
    const KIB: f64 = 1024.0;
    let n = n_bytes as f64;
    match n {
        n if n < KIB => format!("{n} bytes"),
        n if n < KIB.powi(2) => format!("{:.1} KiB", n / KIB),
        n if n < KIB.powi(3) => format!("{:.1} MiB", n / KIB.powi(2)),
        n if n < KIB.powi(4) => format!("{:.1} GiB", n / KIB.powi(3)),
        n => format!("{:.1} TiB", n / KIB.powi(4)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_the_unit_that_suits() {
        let expected = [(40, "40 bytes"), (4096, "4.0 KiB"), (1536 << 10, "1.5 MiB"), (3 << 30, "3.0 GiB"), (5 << 40, "5.0 TiB")];
        for (n_bytes, text) in expected {
            assert_eq!(bytes(n_bytes), text);
        }
    }

    #[test]
    fn memory_is_listed_by_parts() {
        let parts = [("parameters", 16 << 30), ("averaged parameters", 0), ("optimizer state", 32 << 30)];
        assert_eq!(memory_parts(1, &parts), " (parameters 16.0 GiB, optimizer state 32.0 GiB)");
        assert_eq!(memory_parts(2, &parts[..1]), " for 2 replicas, for each (parameters 16.0 GiB)");
        assert_eq!(memory_parts(1, &[]), "");
    }
}
