//! The page of a run: it is well-formed, has the content that was added, and a browser draws it.

use std::io::Write as _;
use std::process::Command;

use brisk_loader::Rows;
use brisk_metrics::Scored;
use brisk_report::{
    AxisScale, BarChart, Error, Histogram, ImageGrid, LineChart, MatrixChart, Panel, Report, ReportTable, Series,
};

/// Numbers from 0 to 1, the same every time.
fn numbers(n: usize, seed: u64) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1_u64 << 24) as f32
    };
    (0..n).map(|_| next()).collect()
}

/// A page with every kind of panel.
fn sample() -> Result<Report, Error> {
    let n_epochs = 18;
    let by_epoch = |f: &dyn Fn(f64) -> f64| (0..n_epochs).map(|epoch| f(f64::from(epoch))).collect::<Vec<f64>>();
    let noise = numbers(4000, 1);
    let train_loss = by_epoch(&|e| 0.32 + 0.5 * (-e / 4.0).exp() - 0.004 * e);
    let valid_loss = by_epoch(&|e| 0.40 + 0.4 * (-e / 3.0).exp() + 0.0012 * (e - 9.0).powi(2));
    let accuracy = by_epoch(&|e| 0.91 - 0.2 * (-e / 3.0).exp());
    let speed = by_epoch(&|e| 1.9e6 + 4e4 * (e * 1.7).sin());
    let lr: Vec<f64> = (0..3000).map(|step| 3e-3 * (std::f64::consts::PI * f64::from(step) / 3000.0).sin()).collect();
    let scale: Vec<f64> = (0..3000).map(|step| 65536.0 * 2_f64.powi(step / 900)).collect();

    let labels: Vec<f32> = noise.iter().map(|x| x.round()).collect();
    let logits: Vec<f32> = numbers(4000, 2).iter().zip(&labels).map(|(x, label)| 6.0 * x - 3.6 + 1.8 * label).collect();
    let classes: Vec<f32> = noise.iter().map(|x| (9.99 * x).floor()).collect();
    let mut class_logits = numbers(40_000, 3);
    classes.iter().enumerate().for_each(|(row, &class)| class_logits[row * 10 + class as usize] += 0.45);
    let targets: Vec<f32> = noise.iter().map(|x| 40.0 * x * x + 5.0).collect();
    let predictions: Vec<f32> = targets.iter().zip(numbers(4000, 4)).map(|(target, x)| target * 0.95 + 6.0 * x - 2.0).collect();
    let names: Vec<String> =
        ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"].map(String::from).into();

    let mut report = Report::new("higgs-20261122-0415");
    report.subtitle("28-300-300-300-1, 4 000 rows for validation, f16 on two replicas");
    report.figure("Validation AUC", "0.8794").figure("Validation accuracy", "0.9081").figure("Best epoch", "9 of 18");
    report.figure("Rows per second", "1.92 M").figure("Time", "4 min 12 s");
    report.best_epoch(9).section("Training").epochs(&[
        ("train_loss", &train_loss),
        ("valid_loss", &valid_loss),
        ("valid_accuracy", &accuracy),
        ("rows_per_second", &speed),
    ]);
    report.section("Steps").steps("Learning rate", 0, &lr).steps("Loss scale", 0, &scale);
    let sweep = (0..60).map(|i| [10_f64.powf(-6.0 + f64::from(i) / 10.0), 0.7 - 0.3 / (1.0 + (f64::from(30 - i) / 4.0).exp())]);
    let finder = LineChart::new("Learning-rate finder", "learning rate", [Series::new("loss", sweep)]);
    let (scales, mark) = ([AxisScale::Log, AxisScale::Linear], Some((1e-3, "suggested 1e-3".to_owned())));
    report.panel(LineChart { y_label: "loss".to_owned(), scales, mark, ..finder });
    report
        .section("Validation rows")
        .classification(&Scored::binary(&logits, &labels), &["background".into(), "signal <b>".into()])?;
    report.section("Ten classes").classification(&Scored::classes(&class_logits, 10, &classes), &names)?;
    let letters: Vec<f32> = noise.iter().map(|x| (25.99 * x).floor()).collect();
    let mut letter_logits = numbers(26 * 4000, 5);
    letters.iter().enumerate().for_each(|(row, &letter)| letter_logits[row * 26 + letter as usize] += 0.8);
    report.section("Letters").classification(&Scored::classes(&letter_logits, 26, &letters), &[])?;
    let several = labels[..3000].repeat(2);
    let columns = Scored::columns(&class_logits[..6000], &several, 3);
    report.section("Several labels").classification(&columns, &[])?;
    report.section("Regression").regression(&Scored::values(&predictions, &targets))?;
    let kernels = [
        ("matmul_tiled 1024x300x300", 41.2),
        ("matmul_tiled 300x1024x300", 38.9),
        ("adam", 6.1),
        ("gather_rows", 3.3),
        ("map_reduce", 2.2),
    ];
    report.section("Profile").panel(BarChart::new("Kernels of a step", "ms", kernels));
    report
        .section("Configuration and environment")
        .table("Settings", &[("batch_rows", "1024"), ("precision", "f16"), ("schedule", "one cycle of all steps up to 0.003")]);
    report.table("Environment", &[("device", "llvmpipe (LLVM 15.0.6, 256 bits)"), ("threads", "2"), ("brisk", "0.1.0")]);
    Ok(report)
}

/// Parses the page as XML and returns the titles of its panels, and checks what every page promises.
#[track_caller]
fn check_page(html: &str) -> Vec<String> {
    let xml = html.strip_prefix("<!DOCTYPE html>").expect("an HTML page");
    let page = roxmltree::Document::parse(xml).expect("well-formed");
    for node in page.descendants().filter(roxmltree::Node::is_element) {
        let name = node.tag_name().name();
        assert!(!["script", "link", "iframe", "object"].contains(&name), "the page contains a {name}");
        for attribute in node.attributes() {
            let value = attribute.value();
            if (name, attribute.name()) == ("img", "src") {
                assert!(value.starts_with("data:image/png;base64,iVBORw0KGgo"), "an image is part of the page: {value}");
                continue;
            }
            assert!(!["href", "src", "onload", "style"].contains(&attribute.name()), "{name} has {}", attribute.name());
            assert!(!value.contains("NaN") && !value.contains("inf"), "{name} has {}={value:?}", attribute.name());
        }
        if name == "svg" {
            check_chart(node);
        }
    }
    assert!(!html.contains("url(") && !html.contains("@import"), "the page loads something");
    let panels = page.descendants().filter(|node| node.tag_name().name() == "h3");
    panels.map(|title| title.text().unwrap_or_default().to_owned()).collect()
}

/// All shapes are within the chart.
#[track_caller]
fn check_chart(svg: roxmltree::Node<'_, '_>) {
    let numbers = |text: &str| -> Vec<f64> {
        text.split(|char: char| !char.is_ascii_digit() && char != '.' && char != '-')
            .filter_map(|number| number.parse().ok())
            .collect()
    };
    let size = numbers(svg.attribute("viewBox").expect("a size"));
    let name = svg.attribute("aria-label").expect("a label");
    for shape in svg.descendants() {
        let points = match (shape.tag_name().name(), shape.attribute("class").unwrap_or_default()) {
            ("path", class) if class.starts_with("line") => numbers(shape.attribute("d").expect("a path")),
            ("circle", _) => {
                ["cx", "cy"].map(|at| shape.attribute(at).and_then(|at| at.parse().ok()).expect("a number")).to_vec()
            }
            ("rect", _) => {
                let of = |at: &str| shape.attribute(at).and_then(|at| at.parse::<f64>().ok()).expect("a number");
                assert!(of("width") > 0.0 && of("height") >= 0.0, "{name}: a rectangle of no size");
                vec![of("x") + of("width") / 2.0, of("y") + of("height")]
            }
            _ => continue,
        };
        for point in points.chunks(2) {
            let is_within = (-2.0..=size[2] + 2.0).contains(&point[0]) && (-2.0..=size[3] + 2.0).contains(&point[1]);
            assert!(is_within, "{name}: {point:?} is outside of {size:?}");
        }
    }
}

#[test]
fn a_page_has_its_panels() {
    let html = sample().expect("a page").to_html();
    // For viewing: target/tmp/report.html.
    std::fs::write(std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("report.html"), &html).expect("written");
    let expected = [
        "Loss",
        "Accuracy",
        "Rows per second",
        "Learning rate",
        "Loss scale",
        "Learning-rate finder",
        "ROC curve · AUC 0.7548",
        "Precision and recall · AP 0.7824",
        "Calibration · error 0.1634",
        "Confusion matrix",
        "Scores by label",
        "Confusion matrix",
        "Calibration · error 0.3808",
        "Confusion matrix",
        "Calibration · error 0.7606",
        "ROC curves",
        "Predictions",
        "Residuals",
        "Kernels of a step",
        "Settings",
        "Environment",
    ];
    assert_eq!(check_page(&html), expected, "the panels");
    assert!(html.contains("epoch 9\ntraining: 0.3557\nvalidation: 0.429<"), "values below the pointer");
    assert!(html.len() < 1_000_000, "{} bytes", html.len());
}

#[test]
fn a_page_is_replaced_as_a_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("report.html");
    let mut report = Report::new("first");
    report.write(&path).expect("written");
    report.subtitle("again").write(&path).expect("written again");
    let html = std::fs::read_to_string(&path).expect("a file");
    assert_eq!(html, report.to_html(), "the last page");
    assert_eq!(std::fs::read_dir(&folder).expect("the folder").count(), 1, "no temporary file is left");
    let error = report.write(folder.path().join("none").join("report.html")).expect_err("no such folder");
    assert!(matches!(error, Error::Write(brisk_atomic_file::WriteError::NoFolder { .. })), "{error}");
}

#[test]
fn text_is_escaped() {
    let mut report = Report::new("<script>alert(\"1\")</script> & co\u{1}");
    report.section("a < b").table("</table>", &[("<td>", "\u{0}&amp;")]).panel(BarChart::new("bars", "<ms>", [("<b>", 1.0)]));
    let html = report.to_html();
    assert_eq!(check_page(&html), ["</table>", "bars"], "the panels");
    assert!(html.contains("<h1>&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; co\u{fffd}</h1>"), "the title");
}

#[test]
fn odd_values_draw_something() {
    let odd: [&[f64]; 7] =
        [&[], &[f64::NAN], &[1.0], &[0.0, 0.0], &[5.0, f64::NAN, f64::INFINITY, 5.0], &[-1e300, 1e300], &[1e-300, 2e-300]];
    let mut report = Report::new("");
    for (index, values) in odd.into_iter().enumerate() {
        report.steps(&format!("steps {index}"), 10, values).epochs(&[("loss", values), ("train_loss", values)]);
        let line = Series::new("line", values.iter().enumerate().map(|(x, &y)| [x as f64, y]));
        let (scales, mark) = ([AxisScale::Log; 2], Some((f64::NAN, "nowhere".to_owned())));
        report.panel(LineChart { scales, mark, ..LineChart::new("log", "", [line]) });
        let bars = BarChart::new("bars", "ms", values.iter().map(|&value| ("bar", value)));
        let svg = Panel::from(bars.clone()).to_svg().expect("a chart");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "only finite values: {svg}");
        report.panel(bars);
        report.panel(Histogram::new("counts", "value", 10, [("values", values.to_vec())]));
    }
    report.panel(MatrixChart::new("no classes", &[], vec![])).panel(MatrixChart::new("nothing", &[], vec![0.0; 9]));
    check_page(&report.to_html());
}

#[test]
fn many_values_stay_small() {
    let spike = |step: usize| if step == 123_456 { 9.5 } else { (step % 7) as f64 / 10.0 };
    let values: Vec<f64> = (0..300_000).map(spike).collect();
    let mut report = Report::new("long");
    report.steps("loss", 0, &values).panel(MatrixChart::new("classes", &[], vec![1.0; 100 * 100]));
    let html = report.to_html();
    check_page(&html);
    assert!(html.len() < 5_000_000, "{} bytes", html.len());
    // A spike is drawn although a hundred steps or more share each pixel.
    let path = html.split("class=\"line").nth(1).and_then(|rest| rest.split("d=\"").nth(1)).expect("a line");
    let path = path.split('"').next().expect("a path");
    let heights = path.split(['M', 'L']).filter_map(|point| point.split(' ').nth(1)?.parse::<f64>().ok());
    assert!(heights.fold(f64::INFINITY, f64::min) < 30.0, "the highest point is near the top");
}

#[test]
fn a_chart_is_an_svg_file() {
    let line = |name: &str, slope: f64| Series::new(name, (1..=9).map(|x| [f64::from(x), slope / f64::from(x)]));
    let training = Series { is_muted: true, ..line("training", 1.0) };
    let lines = LineChart::new("Loss & more", "epoch", [training, line("validation", 1.5)]);
    let bars = BarChart::new("Kernels", "ms", [("matmul", 3.0), ("adam", 1.0)]);
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("chart.svg");
    for panel in [Panel::from(lines), bars.into(), MatrixChart::new("Classes", &[], vec![3.0, 1.0, 0.0, 4.0]).into()] {
        let svg = panel.to_svg().expect("a chart");
        let file = roxmltree::Document::parse(&svg).expect("well-formed");
        check_chart(file.descendants().filter(|node| node.tag_name().name() == "svg").nth(1).expect("the chart"));
        if matches!(panel, Panel::Lines(_)) {
            let texts: Vec<&str> =
                file.descendants().filter(|node| node.tag_name().name() == "text").filter_map(|node| node.text()).collect();
            assert_eq!(texts[..3], ["Loss & more", "validation", "training"], "title and legend");
            std::fs::write(&path, svg).expect("written");
        }
    }
    let table = ReportTable::new("Settings", [("seed".to_owned(), "7".to_owned())]);
    assert_eq!(Panel::from(table).to_svg(), None, "a table is not drawn");
}

#[test]
fn a_table_may_have_columns() {
    let mut report = Report::new("table");
    let rows = [("a <b>", "number", "0 to 1"), ("c", "category", "3")];
    let rows = rows.map(|(name, kind, values)| [name, kind, values].map(str::to_owned).to_vec());
    report.panel(ReportTable::of_columns("Columns", &["name", "kind", "values"], rows));
    let html = report.to_html();
    assert_eq!(check_page(&html), ["Columns"]);
    assert!(html.contains("<thead><tr><th>name</th><th>kind</th><th>values</th></tr></thead>"), "{html}");
    assert!(html.contains("<tr><th>a &lt;b&gt;</th><td>number</td><td>0 to 1</td></tr>"), "{html}");
}

#[test]
fn wrong_predictions_are_images_with_the_most_confident_first() {
    // Row 1 is predicted correctly; row 2 is the most confident of the wrong ones, then row 0.
    let logits = [0.0, 1.0, 0.0, 3.0, 0.0, 0.0, 0.0, 0.0, 9.0, 0.0, 0.0, 0.5];
    let labels = [0.0, 0.0, 1.0, 0.0];
    let scored = Scored::classes(&logits, 3, &labels);
    let pixels: Vec<u8> = (0..4 * 12).collect();
    let rows = Rows::new(pixels.clone(), labels.to_vec(), 12).expect("rows");
    let names: Vec<String> = ["ant", "bee <b>", "cat"].map(String::from).into();
    let grid = ImageGrid::wrong_predictions(&rows, [2, 2, 3], &scored, &names, 2).expect("images");
    assert!(!grid.is_empty(), "three are wrong");
    let mut report = Report::new("images");
    report.panel(grid);
    let html = report.to_html();
    assert_eq!(check_page(&html), ["Most confident wrong predictions, of 3"]);
    let found: Vec<&str> = html.split("<figcaption>").skip(1).filter_map(|text| text.split("</figcaption>").next()).collect();
    let expected = ["cat<small>100.0 %, labelled bee &lt;b&gt;</small>", "bee &lt;b&gt;<small>57.6 %, labelled ant</small>"];
    assert_eq!(found, expected);
    let by_hand = ImageGrid::new("Most confident wrong predictions, of 3");
    let image = |grid: ImageGrid, row: usize, caption, note| {
        grid.image([2, 2], &pixels[12 * row..][..12], caption, note).expect("an image")
    };
    let by_hand = image(by_hand, 2, "cat", "100.0 %, labelled bee <b>");
    let by_hand = image(by_hand, 0, "bee <b>", "57.6 %, labelled ant");
    let mut expected = Report::new("images");
    expected.panel(by_hand);
    assert!(html == expected.to_html(), "the pixels of rows 2 and 0");
    let error = ImageGrid::wrong_predictions(&rows, [5, 1, 3], &scored, &[], 2).expect_err("15 pixels").to_string();
    assert!(error.contains("12"), "{error}");
}

#[test]
fn a_threshold_is_a_probability() {
    let (scores, labels) = ([0.5, -0.5], [1.0, 0.0]);
    for threshold in [7.0, -0.1, f32::NAN] {
        let mut report = Report::new("page");
        let error = report.classification_above(threshold, &Scored::binary(&scores, &labels), &[]).expect_err("no probability");
        assert!(error.to_string().contains("`threshold` is"), "{error}");
    }
}

#[test]
fn rows_that_do_not_fit_are_refused() {
    let mut report = Report::new("refused");
    let error = report.classification(&Scored::binary(&[f32::NAN], &[1.0]), &[]).expect_err("a NaN");
    assert!(matches!(error, Error::Metric(brisk_metrics::Error::NanPrediction { row: 0, .. })), "{error}");
    let error = report.classification(&Scored::binary(&[1.0], &[0.5]), &[]).expect_err("no class");
    assert!(matches!(error, Error::Metric(brisk_metrics::Error::Label { row: 0, .. })), "{error}");
    assert!(report.regression(&Scored::classes(&[1.0, 2.0], 2, &[0.5])).is_err(), "two predictions of one label");
    // Rows of one class have no curves, but a confusion matrix.
    report.classification(&Scored::binary(&[1.0, -1.0], &[1.0, 1.0]), &[]).expect("one class");
    let panels = check_page(&report.to_html());
    assert_eq!(panels, ["Calibration · error 0.5000", "Confusion matrix", "Scores by label"], "the other charts");
}

/// The shapes that a browser has drawn, as each chart's `title WIDTHxHEIGHT n`, where `n` is the number of shapes that have a
/// size and a colour.
const MEASURE: &str = r#"<script>
const drawn = [...document.querySelectorAll("svg")].map(svg => {
  const shapes = [...svg.querySelectorAll("path.line, circle.point, rect[class^=fill]")].filter(shape => {
    const box = shape.getBoundingClientRect(), style = getComputedStyle(shape);
    return box.width + box.height > 0 && [style.fill, style.stroke].some(colour => colour.startsWith("rgb"));
  });
  const box = svg.getBoundingClientRect();
  return `${svg.getAttribute("aria-label")} ${Math.round(box.width)}x${Math.round(box.height)} ${shapes.length}`;
});
document.body.setAttribute("data-drawn", drawn.join("|"));
document.body.setAttribute("data-width", document.documentElement.scrollWidth);
</script></body>"#;

/// `BRISK_TEST_CHROMIUM`: `auto` (the default) draws the page if Chromium is installed, `require` fails if it is not, and `off`
/// does not look for it.
#[test]
fn a_browser_draws_every_chart() {
    let wish = std::env::var("BRISK_TEST_CHROMIUM").unwrap_or_else(|_| "auto".to_owned());
    assert!(
        ["off", "auto", "require"].contains(&wish.as_str()),
        "BRISK_TEST_CHROMIUM is `{wish}`, expected off, auto or require"
    );
    let is_there = |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success());
    let browser = if wish == "off" { None } else { ["chromium", "chromium-browser", "google-chrome"].into_iter().find(is_there) };
    let Some(browser) = browser else {
        assert!(wish != "require", "BRISK_TEST_CHROMIUM=require: Chromium is not installed; `apt-get install chromium`");
        // Not `eprintln!`, whose output the test harness captures.
        drop(writeln!(
            std::io::stderr(),
            "\nTHE REPORT IS NOT DRAWN BY A BROWSER: Chromium is not installed, or BRISK_TEST_CHROMIUM=off"
        ));
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("report.html");
    let html = sample().expect("a page").to_html();
    let n_charts = html.matches("<svg").count();
    std::fs::write(&path, html.replace("</body>", MEASURE)).expect("written");
    let options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1240,1000", "--timeout=30000", "--dump-dom"];
    let profile = format!("--user-data-dir={}", folder.path().join("profile").display());
    let output = Command::new(browser).args(options).arg(profile).arg(&path).output().expect("the browser starts");
    let dom = String::from_utf8_lossy(&output.stdout);
    let attribute =
        |name: &str| dom.split(&format!("{name}=\"")).nth(1).and_then(|rest| rest.split('"').next()).map(str::to_owned);
    let drawn =
        attribute("data-drawn").unwrap_or_else(|| panic!("nothing was drawn: {}", String::from_utf8_lossy(&output.stderr)));
    let charts: Vec<&str> = drawn.split('|').collect();
    assert_eq!(charts.len(), n_charts, "{drawn}");
    for chart in charts {
        let mut words = chart.rsplit(' ');
        let n_shapes: usize = words.next().and_then(|n| n.parse().ok()).expect("a number of shapes");
        let (width, height) = words.next().and_then(|size| size.split_once('x')).expect("a size");
        let [width, height]: [usize; 2] = [width, height].map(|size| size.parse().expect("a number"));
        assert!(n_shapes > 0 && width > 250 && height > 100, "{chart}");
    }
    let width: usize = attribute("data-width").and_then(|width| width.parse().ok()).expect("a width");
    assert!(width <= 1240, "the page is {width} wide");
}
