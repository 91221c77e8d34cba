//! `cargo xtask chart`: recorded measurements compared with PyTorch's, as a picture.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use serde_json::Value;

/// Draws the speed of brisk compared with PyTorch, from files that `cargo xtask bench --json` wrote
///
/// One bar for each case that was compared with PyTorch. If PyTorch was measured in several variants, the bar is for its fastest.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The measurements
    #[arg(required = true, value_name = "JSON")]
    records: Vec<PathBuf>,
    /// Draws only cases that contain TEXT; can be given several times
    #[arg(long = "case", value_name = "TEXT")]
    cases: Vec<String>,
    /// The file to write
    #[arg(long, value_name = "SVG")]
    output: PathBuf,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let mut bars: Vec<Bar> = Vec::new();
    for path in &options.records {
        let name = path.display();
        let text = fs::read_to_string(path).with_context(|| format!("{name}: cannot read the measurements"))?;
        let rows: Vec<Value> =
            serde_json::from_str(&text).with_context(|| format!("{name}: expected a JSON array that `bench --json` wrote"))?;
        add_bars(&mut bars, &rows, &options.cases);
    }
    ensure!(!bars.is_empty(), "none of these cases was compared with PyTorch; measure with `--peers`");
    bars.sort_by(|a, b| b.ratio.total_cmp(&a.ratio));
    let device = bars[0].device.clone();
    if let Some(other) = bars.iter().find(|bar| bar.device != device) {
        bail!("measured on {device} and on {}: draw the measurements of one device", other.device);
    }
    fs::write(&options.output, svg(&bars)).with_context(|| format!("{}: cannot write the picture", options.output.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// A case, and how many times as fast as PyTorch it is.
#[derive(Debug)]
struct Bar {
    case: String,
    device: String,
    ratio: f64,
}

/// Adds the cases of one file. Of a case with several measurements in the file, the one with the lowest ratio is kept; the same
/// case of another file gets its own bar.
fn add_bars(bars: &mut Vec<Bar>, rows: &[Value], cases: &[String]) {
    let before = bars.len();
    for row in rows {
        let text = |key: &str| row[key].as_str().unwrap_or_default();
        let (case, ratio) = (text("case").trim_start_matches("twin, "), row["ratio"].as_f64());
        let (true, Some(ratio)) =
            (text("reference").starts_with("PyTorch") || text("reference").starts_with("torchvision"), ratio)
        else {
            continue;
        };
        if !cases.is_empty() && !cases.iter().any(|wanted| case.contains(wanted.as_str())) {
            continue;
        }
        match bars[before..].iter_mut().find(|bar| bar.case == case) {
            Some(bar) => bar.ratio = bar.ratio.min(ratio),
            None => bars.push(Bar { case: case.to_owned(), device: text("device").to_owned(), ratio }),
        }
    }
}

const WIDTH: f64 = 840.0;
const LEFT: f64 = 400.0;
const RIGHT: f64 = 770.0;
const HEAD: f64 = 64.0;
const ROW: f64 = 26.0;

/// The picture. It follows the light or dark colour scheme of the viewer.
fn svg(bars: &[Bar]) -> String {
    let height = HEAD + ROW * bars.len() as f64 + 16.0;
    let most = bars.iter().map(|bar| bar.ratio).fold(1.0, f64::max);
    let x = |ratio: f64| LEFT + ratio / most * (RIGHT - LEFT);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" role=\"img\" \
         font-family=\"system-ui, sans-serif\" font-size=\"13\">\n<style>\n\
         .page {{ fill: #ffffff }} text {{ fill: #1f2933 }} .quiet {{ fill: #697586 }} .bar {{ fill: #2f6fdf }} .slower {{ fill: #a9b6c8 }} .one {{ stroke: #697586 }}\n\
         @media (prefers-color-scheme: dark) {{ .page {{ fill: #14181f }} text {{ fill: #e6e9ee }} .quiet {{ fill: #98a2b3 }} .bar {{ fill: #6d9df2 }} .slower {{ fill: #4a5667 }} }}\n\
         </style>\n<rect class=\"page\" width=\"{WIDTH}\" height=\"{height}\"/>\n"
    );
    svg += "<text x=\"20\" y=\"28\" font-size=\"16\" font-weight=\"600\">Speed compared with PyTorch</text>\n";
    svg += &format!("<text class=\"quiet\" x=\"20\" y=\"47\">{}</text>\n", escaped(&bars[0].device));
    svg += &format!("<text class=\"quiet\" x=\"{:.1}\" y=\"47\" text-anchor=\"middle\">PyTorch</text>\n", x(1.0));
    for (i, Bar { case, ratio, .. }) in bars.iter().enumerate() {
        let y = HEAD + ROW * i as f64;
        let class = if *ratio < 1.0 { "slower" } else { "bar" };
        svg += &format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}<title>{}</title></text>\n\
             <rect class=\"{class}\" x=\"{LEFT}\" y=\"{:.1}\" width=\"{:.1}\" height=\"16\" rx=\"2\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" font-weight=\"600\">{ratio:.*}×</text>\n",
            LEFT - 12.0,
            y + 17.0,
            escaped(&shortened(case)),
            escaped(case),
            y + 4.0,
            x(*ratio) - LEFT,
            x(*ratio).max(x(1.0)) + 8.0,
            y + 17.0,
            if *ratio < 10.0 { 2 } else { 0 },
        );
    }
    let one = x(1.0);
    svg + &format!(
        "<line class=\"one\" x1=\"{one:.1}\" y1=\"{:.1}\" x2=\"{one:.1}\" y2=\"{:.1}\" stroke-dasharray=\"3 3\"/>\n</svg>\n",
        HEAD - 8.0,
        height - 8.0
    )
}

/// The longest name that fits beside the bars.
const NAME_CHARS: usize = 54;

fn shortened(name: &str) -> String {
    match name.char_indices().nth(NAME_CHARS) {
        None => name.to_owned(),
        Some((end, _)) => format!("{}…", name[..end].trim_end()),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(case: &str, reference: &str, ratio: f64) -> Value {
        json!({ "case": case, "reference": reference, "ratio": ratio, "device": "cpu" })
    }

    #[test]
    fn a_case_is_compared_with_the_fastest_form_of_pytorch() {
        let rows = [
            row("twin, add", "limit:memcpy", 0.7),
            row("twin, add", "PyTorch, default layout", 2.0),
            row("twin, add", "PyTorch, channels last", 1.5),
            row("tanh", "PyTorch", 4.0),
        ];
        let mut bars = Vec::new();
        add_bars(&mut bars, &rows, &[]);
        let found: Vec<_> = bars.iter().map(|bar| (bar.case.as_str(), bar.ratio)).collect();
        assert_eq!(found, [("add", 1.5), ("tanh", 4.0)]);
        bars.clear();
        add_bars(&mut bars, &rows, &["tan".to_owned()]);
        assert_eq!(bars.len(), 1);
        let svg = svg(&bars);
        assert!(svg.contains(">tanh<title>") && svg.contains(">4.00×</text>") && svg.ends_with("</svg>\n"), "{svg}");
    }

    #[test]
    fn measurements_of_two_devices_are_refused() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let records = ["cpu", "gpu"].map(|device| {
            let path = folder.path().join(device);
            let rows = json!([{ "case": "add", "reference": "PyTorch", "ratio": 1.0, "device": device }]);
            fs::write(&path, rows.to_string()).expect("it can be written");
            path
        });
        let output = folder.path().join("chart.svg");
        let options = Options { records: records.to_vec(), cases: Vec::new(), output: output.clone() };
        let error = run(&options).expect_err("two devices").to_string();
        assert!(error.contains("measured on cpu and on gpu") && !output.exists(), "{error}");
    }
}
