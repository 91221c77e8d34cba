//! The time of a step, kernel by kernel.

use brisk_nn::tensor::program::Profile;

use super::{BarChart, Panel, Table};
use crate::error::phrases::count;

/// Rows of the table; the chart has all kernels.
const N_ROWS: usize = 20;

/// A chart of the time per batch by kernel, and a table of the slowest calls with their rates.
pub(super) fn of(profile: &Profile) -> Vec<Panel> {
    let kernels = profile.kernels();
    let us_per_batch = |ns: u64| 1e-3 * ns as f64 / profile.n_replays().max(1) as f64;
    let mut bars: Vec<(&str, f64)> = Vec::new();
    for kernel in &kernels {
        let us = us_per_batch(kernel.total_ns);
        match bars.iter_mut().find(|(name, _)| *name == kernel.name) {
            Some((_, total)) => *total += us,
            None => bars.push((kernel.name, us)),
        }
    }
    let rows = kernels.iter().take(N_ROWS).map(|kernel| {
        let ns = kernel.total_ns.max(1) as f64;
        // A byte per nanosecond is a gigabyte per second.
        let [gb_per_s, gflop_per_s] = [kernel.bytes, kernel.flops].map(|work| work as f64 / ns);
        let name = kernel.dispatches.first().copied().unwrap_or(kernel.name);
        let n_calls = kernel.n_calls / profile.n_replays().max(1) as u64;
        let share = 100.0 * kernel.roofline_share(profile.roofline());
        let us = us_per_batch(kernel.total_ns);
        let value = format!(
            "{us:.1} µs in {}, {gb_per_s:.1} GB/s, {gflop_per_s:.1} GFLOP/s, {share:.0} % of the roofline",
            count(n_calls as usize, "call")
        );
        (name.to_owned(), value)
    });
    vec![
        BarChart::new("Time per batch by kernel", "µs", bars).into(),
        Table::new("Slowest kernels, per batch", rows.collect::<Vec<_>>()).into(),
    ]
}
