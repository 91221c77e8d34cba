use std::fmt;
use std::process::Command;

use brisk_program::Device;
use serde_json::{Value, json};

/// One line of figures: ours, what it is held against, and the ratio of the two.
pub(crate) struct Row {
    pub(crate) suite: &'static str,
    pub(crate) case: String,
    /// One figure a round.
    pub(crate) ours: Vec<f64>,
    pub(crate) unit: &'static str,
    /// A peer's name, or `limit:flops`, with its figures, round by round.
    pub(crate) reference: Option<(String, Vec<f64>)>,
    /// What the ratio is to reach.
    pub(crate) target: Option<f64>,
}

impl Row {
    pub(crate) fn heading(device: &Device) -> String {
        format!(
            "on {}, commit {}\n{:<34} {:>12} {:>7}  {:<34} {:>12} {:>7} {:>7}",
            device.info(),
            commit(),
            "case",
            "ours",
            "spread",
            "against",
            "its figure",
            "ratio",
            "target"
        )
    }

    /// The median over the rounds of ours by theirs, both of the same round.
    fn ratio(&self) -> Option<f64> {
        let (_, theirs) = self.reference.as_ref()?;
        Some(median(&self.ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect::<Vec<_>>()))
    }

    /// Half the distance between the fastest and the slowest round, by the median.
    fn spread(&self) -> f64 {
        let (low, high) = self.ours.iter().fold((f64::MAX, 0.0_f64), |(low, high), &x| (low.min(x), high.max(x)));
        (high - low) / 2.0 / median(&self.ours)
    }

    pub(crate) fn json(&self, device: &Device) -> Value {
        let reference = self.reference.as_ref();
        json!({
            "suite": self.suite, "case": self.case, "ours": median(&self.ours), "unit": self.unit,
            "reference": reference.map(|(name, _)| name), "reference_value": reference.map(|(_, figures)| median(figures)),
            "ratio": self.ratio(), "target": self.target, "met": self.ratio().zip(self.target).map(|(ratio, target)| ratio >= target),
            "spread": self.spread(), "command": std::env::args().skip(1).collect::<Vec<_>>().join(" "), "commit": commit(),
            "device": device.info().to_string(),
        })
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, figure) = self.reference.as_ref().map_or(("", f64::NAN), |(name, figures)| (name.as_str(), median(figures)));
        let ratio = self.ratio().map_or(String::new(), |ratio| format!("{ratio:.2}x"));
        let target = self.target.map_or(String::new(), |target| format!("{target}x"));
        let case = format!("{} {}", self.suite, self.case);
        let ours = format!("{:.0}", median(&self.ours));
        let figure = if figure.is_nan() { String::new() } else { format!("{figure:.0}") };
        write!(
            f,
            "{case:<34} {ours:>12} {:>6.0}%  {name:<34} {figure:>12} {ratio:>7} {target:>7} {}",
            100.0 * self.spread(),
            self.unit
        )
    }
}

pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    if n == 0 { f64::NAN } else { (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0 }
}

/// The commit measured, with `+` if the checkout has changes.
fn commit() -> String {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).current_dir(env!("CARGO_MANIFEST_DIR")).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|changes| !changes.is_empty());
    git(&["rev-parse", "--short", "HEAD"]).map_or("unknown".to_owned(), |hash| if changed { hash + "+" } else { hash })
}
