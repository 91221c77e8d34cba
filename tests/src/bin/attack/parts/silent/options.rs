//! Options that a format has no use for, and columns whose names are numbers.

use super::files::{npy, png, tar};
use super::tables::text;
use super::{Expected, Row, computed, either, refused, row};

pub(super) fn rows() -> Vec<Row> {
    let numbers = || text("3,7,x,y", 40, |i| format!("{i},{},{},{}", 100 + i, 200 + i, i % 2));
    let csv = |name: &str, options: &str, expected: Expected| {
        let line = format!("import rows.csv out.safetensors --header present {options}");
        row(name, &[&line], expected).file("rows.csv", numbers())
    };
    let mut rows = vec![
        csv("a label whose name is the index of another column", "--label 3", refused(&["name:3", "index:3"])),
        csv(
            "a label whose name is the index of another column, which is said",
            "--label name:3",
            computed(|found| found.columns(&["7", "x", "y"])),
        ),
        csv(
            "a column to leave out whose name is a number",
            "--label y --drop name:3",
            computed(|found| found.columns(&["7", "x"])),
        ),
        csv("a weight whose name is a number", "--label y --weight 7", computed(|found| found.columns(&["3", "x"]))),
        csv("a column to leave out that does not exist", "--label y --drop z", refused(&["`z`"])),
        csv("a column of text that does not exist", "--label y --categorical z", refused(&["`z`"])),
        csv("indicators of a column that does not exist", "--label y --indicators z --missing mean", refused(&["`z`"])),
        csv("a label that is left out as well", "--label y --drop y", refused(&["`y`"])),
        row(
            "a column to leave out that is the target",
            &["tabular rows.csv --header present --target y --drop y --out model"],
            refused(&["`y`"]),
        )
        .file("rows.csv", numbers()),
        csv("two offsets for one column", "--label y --offset x=1 --offset x=2", refused(&["`x`", "offset"])),
        csv(
            "an offset for the label",
            "--label x --offset x=200",
            computed(|found| found.labels(&(0..40).map(|i| i as f32).collect::<Vec<_>>())),
        ),
        csv("an offset for a column of categories", "--label y --categorical x --offset x=1", refused(&["`x`", "offset"])),
        csv("a word for missing values, which are an error", "--label y --missing-value 12", refused(&["line"])),
    ];
    let like = "--like like.safetensors";
    let columns = [
        "--label 1",
        "--label-kind classes",
        "--weight 1",
        "--drop 1",
        "--categorical 1",
        "--categorical auto",
        "--missing mean",
        "--missing-value -9",
        "--indicators all",
        "--dtype f16",
        like,
    ];
    let arrays = ["--features a", "--labels 0", "--cifar-labels fine", "--cifar-set test", "--channels grey", "--size 8"];
    let text_options = ["--delimiter ;", "--decimal comma", "--header absent", "--skip-lines 1"];
    // What each format uses.
    let formats: [(&str, &str, &[&str]); 5] = [
        (
            "csv",
            "rows.csv",
            &[
                "--label",
                "--label-kind",
                "--weight",
                "--drop",
                "--categorical",
                "--missing",
                "--missing-value",
                "--indicators",
                "--dtype",
                "--like",
                "--delimiter",
                "--decimal",
                "--header",
                "--skip-lines",
            ],
        ),
        ("svmlight", "rows.svm", &["--label-kind", "--missing", "--dtype", "--like"]),
        ("npy", "rows.npy", &["--features", "--labels", "--missing", "--weight", "--like"]),
        ("images", "images", &["--like", "--channels", "--size"]),
        ("a tar of images", "images.tar", &["--like", "--channels", "--size"]),
    ];
    for (format, source, used) in formats {
        for option in columns.into_iter().chain(arrays).chain(text_options) {
            let name = option.split(' ').next().unwrap_or_default();
            if used.contains(&name) {
                continue;
            }
            let line = match format {
                "csv" => format!("import {source} out.safetensors --label y --header present {option}"),
                "npy" => format!("import {source} out.safetensors --labels 0 {option}"),
                _ => format!("import {source} out.safetensors {option}"),
            };
            rows.push(with_sources(row(
                format!("{name} with {format}"),
                &["import rows.csv like.safetensors --label y --header present", &line],
                refused(&[name]),
            )));
        }
    }
    // A table that does not exist is used by no format.
    for source in ["rows.csv", "rows.svm", "rows.npy", "images"] {
        let labels = match source {
            "rows.csv" => "--label 0 ",
            "rows.npy" => "--labels 0 ",
            _ => "",
        };
        let line = format!("import {source} out.safetensors {labels}--like nosuch.safetensors");
        rows.push(with_sources(row(format!("--like nosuch.safetensors with {source}"), &[&line], refused(&["nosuch|--like"]))));
    }
    rows.push(with_sources(
        row(
            "svmlight like a table of more columns",
            &["import wide.svm wide.safetensors", "import rows.svm out.safetensors --like wide.safetensors"],
            either(&["--like|columns"], |found| {
                let table = found.table("out.safetensors")?;
                anyhow::ensure!(table.row_shape() == [5], "the rows are {:?}, expected 5 columns", table.row_shape());
                Ok(())
            }),
        )
        .file("wide.svm", "0 1:1 5:2\n1 2:1\n"),
    ));
    for option in ["--header present", "--skip-lines 1", "--decimal comma", "--missing-value -9", "--drop x"] {
        let name = option.split(' ').next().unwrap_or_default();
        rows.push(
            row(
                format!("{name} with a table"),
                &[
                    "import rows.csv rows.safetensors --header present --label y --label-kind classes",
                    &format!("tabular rows.safetensors {option} --epochs 1 --model mlp --hidden 4 --out model"),
                ],
                refused(&[name]),
            )
            .file("rows.csv", numbers()),
        );
    }
    let line = "tabular rows.csv --model resnet --hidden 4 --out model";
    rows.push(row("units of layers that a network does not have", &[line], refused(&["--hidden"])).file("rows.csv", numbers()));
    for (mark, expected) in [(",", 1.5), ("comma", 1.5), (".", 15.0), ("point", 15.0)] {
        let (x, line) =
            (if expected == 1.5 { "1,5" } else { "15" }, format!("import rows.csv out.safetensors --label y --decimal {mark}"));
        rows.push(
            row(format!("--decimal {mark} in import"), &[&line], computed(move |found| found.values("x", &[expected, 2.0])))
                .file("rows.csv", format!("x;y\n{x};0\n2;1\n")),
        );
        let line =
            format!("tabular rows.csv --target y --epochs 1 --model mlp --hidden 4 --out model --json out.json --decimal {mark}");
        let mark = if expected == 1.5 { "," } else { "." };
        rows.push(
            row(format!("--decimal {mark} in tabular"), &[&line], computed(|found| found.is_number("x")))
                .file("rows.csv", text("x;y", 100, move |i| format!("{i}{mark}5;{}", i % 2))),
        );
    }
    rows.push(
        row(
            "how text is read, with a table to predict from",
            &[
                "import rows.csv rows.safetensors --header present --label y --label-kind classes",
                "tabular rows.safetensors --epochs 1 --model mlp --hidden 4 --out model",
                "predict model rows.safetensors --out out.csv --decimal ,",
            ],
            refused(&["--decimal"]),
        )
        .file("rows.csv", numbers()),
    );
    rows
}

/// The row with a source of each format beside it.
fn with_sources(row: Row) -> Row {
    let row = row.file("rows.csv", text("3,7,x,y", 40, |i| format!("{i},{},{},{}", 100 + i, 200 + i, i % 2)));
    let row = row.file("rows.svm", text("0 1:0.5 3:2", 20, |i| format!("{} 2:{i}", i % 2))).file("rows.npy", npy(20));
    let images = ["a/1.png", "a/2.png", "b/1.png"];
    images.iter().fold(row, |row, name| row.file(&format!("images/{name}"), png())).file("images.tar", tar(&images))
}
