use std::fmt;
use std::process::Command;

use brisk_program::DeviceInfo;
use serde_json::{Value, json};

/// Lines of figures that were measured on one device.
pub(crate) struct Table {
    pub(crate) device: DeviceInfo,
    pub(crate) rows: Vec<Row>,
}

impl Table {
    /// The machine-readable form.
    pub(crate) fn json(&self) -> impl Iterator<Item = Value> + '_ {
        self.rows.iter().map(|row| row.json(&self.device))
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cells = ["work", "brisk", "spread", "against", "its figure", "ratio", "target"];
        let lines = ["---", "---:", "---:", "---", "---:", "---:", "---:"];
        writeln!(f, "\non {}, commit {}\n", self.device, commit())?;
        writeln!(f, "{}\n{}", line(cells.map(String::from)), line(lines.map(String::from)))?;
        self.rows.iter().try_for_each(|row| writeln!(f, "{row}"))
    }
}

/// One line of figures: brisk, the reference, and the ratio of the two.
pub(crate) struct Row {
    pub(crate) suite: &'static str,
    pub(crate) case: String,
    /// One figure per round, without prefixes: rows/s, B/s, B, s.
    pub(crate) ours: Vec<f64>,
    pub(crate) unit: &'static str,
    /// A peer's name, or `limit:flops`, with its figures, round by round.
    pub(crate) reference: Option<(String, Vec<f64>)>,
    /// The target of the ratio.
    pub(crate) target: Option<f64>,
    pub(crate) better: Better,
}

/// Which of two figures is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Better {
    /// The larger, for rates. The ratio is brisk divided by the reference.
    More,
    /// The smaller, for times, bytes and counts. The ratio is the reference divided by brisk, so that a larger ratio is better
    /// here as well.
    Less,
}

impl Row {
    /// A count with the maximum `limit`.
    pub(crate) fn at_most(suite: &'static str, case: String, ours: Vec<f64>, unit: &'static str, limit: f64) -> Self {
        let reference = Some((format!("limit:{}", told(limit, unit)), vec![limit; ours.len()]));
        Self { suite, case, ours, unit, reference, target: Some(1.0), better: Better::Less }
    }

    /// The median over the rounds of brisk divided by the reference, both of the same round.
    fn ratio(&self) -> Option<f64> {
        let (_, theirs) = self.reference.as_ref()?;
        let of_round = |(&ours, &theirs): (&f64, &f64)| match self.better {
            Better::More => ours / theirs,
            // A count of 0 with a limit of 0 is as good as possible.
            Better::Less if ours == theirs => 1.0,
            Better::Less => theirs / ours,
        };
        Some(median(&self.ours.iter().zip(theirs).map(of_round).collect::<Vec<_>>()))
    }

    /// Half of the difference between the fastest and the slowest round, relative to the median.
    fn spread(&self) -> f64 {
        let (low, high) = self.ours.iter().fold((f64::MAX, 0.0_f64), |(low, high), &x| (low.min(x), high.max(x)));
        if high == low { 0.0 } else { (high - low) / 2.0 / median(&self.ours) }
    }

    fn is_met(&self) -> Option<bool> {
        self.ratio().zip(self.target).map(|(ratio, target)| ratio >= target)
    }

    pub(crate) fn json(&self, device: &DeviceInfo) -> Value {
        let reference = self.reference.as_ref();
        let args: Vec<_> = std::env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
        json!({
            "suite": self.suite, "case": self.case, "ours": median(&self.ours), "unit": self.unit,
            "reference": reference.map(|(name, _)| name), "reference_value": reference.map(|(_, figures)| median(figures)),
            "ratio": self.ratio(), "target": self.target, "met": self.is_met(),
            "spread": self.spread(), "command": format!("cargo xtask bench {}", args.join(" ")), "commit": commit(),
            "device": device.to_string(),
        })
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, figure) = match &self.reference {
            Some((name, figures)) => (name.clone(), told(median(figures), self.unit)),
            None => Default::default(),
        };
        let ratio = match self.ratio() {
            Some(ratio) if ratio.is_infinite() => "∞".to_owned(),
            Some(ratio) => format!("{ratio:.2}x"),
            None => String::new(),
        };
        let met = self.is_met().map_or("", |is_met| if is_met { "" } else { ", not met" });
        let target = self.target.map_or(String::new(), |target| format!("{}x{met}", (100.0 * target).round() / 100.0));
        let spread = format!("{:.0}%", 100.0 * self.spread());
        f.write_str(&line([self.case.clone(), told(median(&self.ours), self.unit), spread, name, figure, ratio, target]))
    }
}

/// A line of a Markdown table whose columns are also aligned on a terminal.
fn line([case, ours, spread, reference, figure, ratio, target]: [String; 7]) -> String {
    format!("| {case:<60} | {ours:>14} | {spread:>6} | {reference:<38} | {figure:>14} | {ratio:>7} | {target:>14} |")
}

/// A figure with three digits and a prefix: `26.3 M rows/s`, `0.77 GB/s`, `1.3 ms`.
pub(crate) fn told(value: f64, unit: &str) -> String {
    let scales = [(1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ")];
    let (scale, prefix) = match unit {
        "s" => scales[3..].iter().copied().find(|(scale, _)| value >= *scale).unwrap_or((1e-6, "µ")),
        _ => scales[..4].iter().copied().find(|(scale, _)| value.abs() >= *scale).unwrap_or((1.0, "")),
    };
    let scaled = value / scale;
    let decimals = match scaled.abs() {
        x if x >= 99.95 || x == x.trunc() => 0,
        x if x >= 9.995 => 1,
        x if x >= 1.0 => 2,
        // 0.00126 of a quantity without a prefix.
        x => (2.0 - x.log10().floor()) as usize,
    };
    // Prefixes are used with symbols, not with words.
    let gap = if unit.starts_with("B") || ["s", "FLOP/s"].contains(&unit) || prefix.is_empty() { "" } else { " " };
    format!("{scaled:.decimals$} {prefix}{gap}{unit}").trim_end().to_owned()
}

pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    if n == 0 { f64::NAN } else { (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0 }
}

/// The measured commit, with `+` if the checkout has changes.
pub(crate) fn commit() -> String {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).current_dir(env!("CARGO_MANIFEST_DIR")).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|changes| !changes.is_empty());
    git(&["rev-parse", "--short", "HEAD"]).map_or("unknown".to_owned(), |hash| if changed { hash + "+" } else { hash })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(better: Better, ours: &[f64], theirs: &[f64], ratio: f64, is_met: bool) {
        let reference = Some(("a peer".to_owned(), theirs.to_vec()));
        let (ours, target) = (ours.to_vec(), Some(2.0));
        let row = Row { suite: "test", case: String::new(), ours, unit: "s", reference, target, better };
        assert_eq!((row.ratio(), row.is_met()), (Some(ratio), Some(is_met)));
    }

    #[test]
    fn a_greater_ratio_is_better_for_rates_and_for_times() {
        check(Better::More, &[6.0, 60.0, 5.0], &[3.0, 3.0, 4.0], 2.0, true);
        check(Better::More, &[3.0], &[4.0], 0.75, false);
        check(Better::Less, &[3.0], &[6.0], 2.0, true);
        check(Better::Less, &[6.0], &[3.0], 0.5, false);
    }

    #[test]
    fn none_is_as_good_as_none() {
        let row = |ours| Row::at_most("test", String::new(), vec![ours], "allocations", 0.0);
        assert_eq!(row(0.0).is_met(), Some(true));
        assert_eq!(row(1.0).is_met(), Some(false));
        assert_eq!(Row::at_most("test", String::new(), vec![0.0], "B", 1e6).is_met(), Some(true));
    }

    #[test]
    fn figures_have_three_digits_and_a_prefix() {
        assert_eq!(told(26_345_678.0, "rows/s"), "26.3 M rows/s");
        assert_eq!(told(1_024.0, "rows/s"), "1.02 k rows/s");
        assert_eq!(told(770e6, "B/s"), "770 MB/s");
        assert_eq!(told(0.001_3, "s"), "1.30 ms");
        assert_eq!(told(0.0, "allocations"), "0 allocations");
        assert_eq!(told(0.000_126_39, ""), "0.000126");
    }
}
