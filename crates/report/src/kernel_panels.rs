//! The time of a step, kernel by kernel.

use crate::bar_chart::BarChart;
use crate::panel::Panel;
use crate::table::ReportTable;

/// The time that one call takes, or several calls that are alike, in each training step.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelTime {
    /// What is called, such as `matmul`: calls of one name share a bar.
    pub kernel: String,
    /// How it is called, for the table: `matmul_tiled`, for example.
    pub variant: String,
    /// Microseconds in a step, of all calls together.
    pub us: f64,
    /// How many calls a step has.
    pub n_calls: u64,
    /// Gigabytes read and written per second.
    pub gb_per_s: f64,
    /// Thousand millions of arithmetic operations per second.
    pub gflop_per_s: f64,
    /// The share of what the device can do at most, from 0 to 1.
    pub roofline_share: f64,
}

/// Rows of the table; the chart has all kernels.
const N_ROWS: usize = 20;

/// A chart of the time per batch by kernel, and a table of the first calls, which are the slowest, with their rates.
pub(crate) fn of(kernels: &[KernelTime]) -> [Panel; 2] {
    let mut bars: Vec<(&str, f64)> = Vec::new();
    for kernel in kernels {
        match bars.iter_mut().find(|(name, _)| *name == kernel.kernel) {
            Some((_, total)) => *total += kernel.us,
            None => bars.push((&kernel.kernel, kernel.us)),
        }
    }
    let rows = kernels.iter().take(N_ROWS).map(|kernel| {
        let KernelTime { us, gb_per_s, gflop_per_s, n_calls, .. } = kernel;
        let calls = if *n_calls == 1 { "call" } else { "calls" };
        let share = 100.0 * kernel.roofline_share;
        let rates = format!("{gb_per_s:.1} GB/s, {gflop_per_s:.1} GFLOP/s, {share:.0} % of the roofline");
        (kernel.variant.clone(), format!("{us:.1} µs in {n_calls} {calls}, {rates}"))
    });
    [BarChart::new("Time per batch by kernel", "µs", bars).into(), ReportTable::new("Slowest kernels, per batch", rows).into()]
}
