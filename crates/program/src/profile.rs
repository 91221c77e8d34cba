//! The time of each kernel, compared with the roofline of its device.

pub(crate) mod roofline;

#[cfg(test)]
mod tests;

use std::fmt;
use std::io::{self, Write};
use std::time::Instant;

use brisk_kernels::Cost;

use crate::device_info::DeviceInfo;
use crate::profile::roofline::Roofline;

/// The time spent in each kernel during some replays, measured by [`Executable::profile`](crate::Executable::profile).
///
/// Its `Display` is a table, the slowest kernel first. [`write_chrome_trace`](Self::write_chrome_trace) is for `chrome://tracing`
/// and Perfetto.
///
/// # Examples
/// ```
/// use brisk_program::{Device, Persistent, Program, kernels::{DType, Map}};
///
/// let mut program = Program::new("sum");
/// let [a, b, y] = ["a", "b", "y"].map(|name| program.persistent(&Persistent::new(name, DType::F32, 1000)));
/// program.push(Map::binary(1000, |a, b| a + b), &[a, b, y])?;
/// let profile = Device::cpu()?.compile(&program)?.profile(5)?;
/// let add = &profile.kernels()[0];
/// assert_eq!((add.name, add.n_calls, add.bytes, add.flops), ("map", 5, 5 * 12_000, 5 * 1000));
/// println!("{profile}");
/// # Ok::<(), brisk_program::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    program: String,
    device: DeviceInfo,
    n_replays: usize,
    timer: Timer,
    roofline: Roofline,
    /// The program's kernels, in its order.
    steps: Vec<ProfiledStep>,
    spans: Vec<Span>,
}

/// How the times of a [`Profile`] were measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Timer {
    /// The processor's clock, read between kernels: on the CPU.
    Clock,
    /// The GPU's timestamps, at the beginning and end of a pass that holds one kernel.
    Timestamps,
    /// The processor's clock, around a submit of one kernel and the wait for it, which is included: on a GPU without timestamps.
    Waits,
}

/// One kernel of a program.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ProfiledStep {
    pub(crate) name: &'static str,
    pub(crate) cost: Cost,
    /// Labels of its dispatches.
    pub(crate) dispatches: Vec<&'static str>,
}

/// When one kernel ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    /// The index among the program's kernels.
    pub(crate) step: usize,
    pub(crate) start_ns: u64,
    pub(crate) len_ns: u64,
}

/// All calls of one kernel with the same sizes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelProfile {
    /// The kernel.
    pub name: &'static str,
    /// The number of calls in all replays.
    pub n_calls: u64,
    /// The total time.
    pub total_ns: u64,
    /// The total of bytes that had to be read or written; see [`Cost`].
    pub bytes: u64,
    /// The total of floating-point operations.
    pub flops: u64,
    /// The labels of its dispatches on a GPU, which name the variant that ran: `kernels.matmul.tiled`. Empty if its twin ran.
    pub dispatches: Vec<&'static str>,
}

impl KernelProfile {
    /// The share of its time that the kernel would take if it only moved its bytes, or only computed, at the device's peak rate:
    /// 1 is the roofline. It can exceed 1 if data stay in cache.
    pub fn roofline_share(&self, roofline: &Roofline) -> f64 {
        let least_s = (self.bytes as f64 / roofline.copy_bytes_per_s).max(self.flops as f64 / roofline.flops_per_s);
        least_s / (1e-9 * self.total_ns.max(1) as f64)
    }

    /// The variant that ran, for the table: labels without their crate, or `twin`.
    fn form(&self) -> String {
        if self.dispatches.is_empty() {
            return "twin".to_owned();
        }
        let of_kernel = |label: &&'static str| label.split_once('.').map_or(*label, |(_, rest)| rest);
        self.dispatches.iter().map(of_kernel).collect::<Vec<_>>().join(" + ")
    }
}

impl Profile {
    pub(crate) fn new(
        program: String,
        device: DeviceInfo,
        n_replays: usize,
        roofline: Roofline,
        steps: Vec<ProfiledStep>,
        (timer, spans): (Timer, Vec<Span>),
    ) -> Self {
        Self { program, device, n_replays, timer, roofline, steps, spans }
    }

    /// The kernels, those that took longest first; calls with the same name, [`Cost`] and variant are added up.
    pub fn kernels(&self) -> Vec<KernelProfile> {
        let mut kernels: Vec<(Cost, KernelProfile)> = Vec::new();
        let row_of: Vec<usize> = self.steps.iter().map(|step| row(&mut kernels, step)).collect();
        for span in &self.spans {
            let (cost, kernel) = &mut kernels[row_of[span.step]];
            kernel.n_calls += 1;
            kernel.total_ns += span.len_ns;
            kernel.bytes = kernel.bytes.saturating_add(cost.bytes);
            kernel.flops = kernel.flops.saturating_add(cost.flops);
        }
        let mut kernels: Vec<_> = kernels.into_iter().map(|(_, kernel)| kernel).collect();
        kernels.sort_by_key(|kernel| std::cmp::Reverse(kernel.total_ns));
        kernels
    }

    /// The total time of all kernels in all replays.
    pub fn total_ns(&self) -> u64 {
        self.spans.iter().map(|span| span.len_ns).sum()
    }

    /// The number of replays.
    pub fn n_replays(&self) -> usize {
        self.n_replays
    }

    /// How the times were measured.
    pub fn timer(&self) -> Timer {
        self.timer
    }

    /// The peak rates of the device, for [`KernelProfile::roofline_share`].
    pub fn roofline(&self) -> &Roofline {
        &self.roofline
    }

    /// Writes each call as an event in the trace format of Chrome, which Perfetto reads too: JSON, times in µs from the first
    /// kernel's start.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_chrome_trace(&self, mut out: impl Write) -> io::Result<()> {
        let thread = serde_json::json!({
            "name": "process_name", "ph": "M", "pid": 0, "tid": 0,
            "args": { "name": format!("{} on {}", self.program, self.device) },
        });
        write!(out, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{thread}")?;
        for &Span { step, start_ns, len_ns } in &self.spans {
            let ProfiledStep { name, cost: Cost { flops, bytes }, dispatches } = &self.steps[step];
            let event = serde_json::json!({
                "name": name, "cat": "kernel", "ph": "X", "pid": 0, "tid": 0,
                "ts": start_ns as f64 / 1e3, "dur": len_ns as f64 / 1e3,
                "args": { "step": step, "bytes": bytes, "flops": flops, "dispatches": dispatches },
            });
            write!(out, ",\n{event}")?;
        }
        out.write_all(b"\n]}\n")
    }
}

/// The row of kernels with the name, cost and dispatches of `step`.
fn row(kernels: &mut Vec<(Cost, KernelProfile)>, step: &ProfiledStep) -> usize {
    let ProfiledStep { name, cost, dispatches } = step;
    let is_same = |(other, kernel): &(Cost, KernelProfile)| (kernel.name, other, &kernel.dispatches) == (*name, cost, dispatches);
    kernels.iter().position(is_same).unwrap_or_else(|| {
        let dispatches = dispatches.clone();
        kernels.push((*cost, KernelProfile { name, n_calls: 0, total_ns: 0, bytes: 0, flops: 0, dispatches }));
        kernels.len() - 1
    })
}

impl fmt::Display for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Clock => "the clock",
            Self::Timestamps => "the GPU's timestamps",
            Self::Waits => "the clock, a submit and a wait per kernel",
        })
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { program, device, n_replays, timer, roofline, .. } = self;
        let total_ns = self.total_ns();
        let ms_a_replay = 1e-6 * total_ns as f64 / (*n_replays).max(1) as f64;
        writeln!(f, "{program} on {device}: {n_replays} replays of {ms_a_replay:.3} ms, by {timer}; {roofline}")?;
        let width = self.steps.iter().map(|step| step.name.len()).max().unwrap_or(0).max("kernel".len());
        writeln!(
            f,
            "{:width$} {:>7} {:>10} {:>6} {:>10} {:>8} {:>9} {:>9}  form",
            "kernel", "calls", "ms", "share", "us/call", "GB/s", "GFLOP/s", "roofline"
        )?;
        for kernel in &self.kernels() {
            let &KernelProfile { name, n_calls, total_ns: ns, bytes, flops, .. } = kernel;
            let (ms, share) = (1e-6 * ns as f64, 100.0 * ns as f64 / total_ns.max(1) as f64);
            let us_a_call = 1e-3 * ns as f64 / n_calls.max(1) as f64;
            // One byte per nanosecond is one gigabyte per second.
            let [gb_per_s, gflop_per_s] = [bytes, flops].map(|work| work as f64 / ns.max(1) as f64);
            let roofline = 100.0 * kernel.roofline_share(roofline);
            writeln!(
                f,
                "{name:width$} {n_calls:>7} {ms:>10.3} {share:>5.1}% {us_a_call:>10.2} {gb_per_s:>8.2} {gflop_per_s:>9.2} {roofline:>8.1}%  {}",
                kernel.form()
            )?;
        }
        Ok(())
    }
}

/// Nanoseconds since `start`.
pub(crate) fn ns_since(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
