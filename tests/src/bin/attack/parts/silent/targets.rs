//! Targets that are easily taken for something else.

use anyhow::{Result, ensure};

use super::found::Found;
use super::tables::{TRAIN, part, text};
use super::{Row, computed, either, refused, refused_or_said, row, said};

/// Rows of a feature and the target that `target` writes.
fn targets(n: usize, target: impl Fn(usize) -> String) -> Vec<u8> {
    text("x,y", n, |i| format!("{:.4},{}", part(i, 0), target(i)))
}

/// The target in `out.json` is of this kind.
fn is_kind(kind: &'static str) -> impl Fn(&Found<'_>) -> Result<()> {
    move |found| {
        let found = found.json("out.json")?["task"].clone();
        ensure!(found == kind, "the target is taken as {found}, expected {kind}");
        Ok(())
    }
}

/// The model has this number of classes.
fn has_classes(n: usize) -> impl Fn(&Found<'_>) -> Result<()> {
    move |found| {
        let classes = found.json("model/model.json")?["target"]["classes"].clone();
        ensure!(classes.as_array().is_some_and(|classes| classes.len() == n), "the classes are {classes}, expected {n}");
        Ok(())
    }
}

pub(super) fn rows() -> Vec<Row> {
    let mut rows = vec![
        row("as many classes as rows", &[TRAIN], refused(&["`y`", "class"])).file("rows.csv", targets(300, |i| format!("c{i}"))),
        row("decimal commas in the target", &[TRAIN], either(&["`y`|column 2", "--decimal"], is_kind("number")))
            .file("rows.csv", text("x;y", 500, |i| format!("{i};{},{:02}", i % 90, i * 7 % 100))),
        row("one class only", &[TRAIN], refused(&["`y`|class"])).file("rows.csv", targets(200, |_| "yes".to_owned())),
        row("one number only", &[TRAIN], refused_or_said(&["`y`|target"], &["`y`|constant"]))
            .file("rows.csv", targets(200, |_| "3.5".to_owned())),
        row("labels with full stops, as in the test set of adult", &[TRAIN], said(&["`y`", "<=50K."]))
            .file("rows.csv", targets(200, |i| ["<=50K", ">50K", "<=50K.", ">50K."][i % 4].to_owned())),
        row("labels with spaces at the end", &[TRAIN], either(&["`y`|class"], has_classes(2)))
            .file("rows.csv", targets(200, |i| ["no", "yes", "no ", "yes "][i % 4].to_owned())),
        row("labels 1 and 1.0", &[TRAIN], computed(has_classes(2)))
            .file("rows.csv", targets(200, |i| ["0", "1", "0.0", "1.0"][i % 4].to_owned())),
        row("labels true, TRUE and True", &[TRAIN], said(&["`y`", "TRUE"]))
            .file("rows.csv", targets(200, |i| ["true", "false", "TRUE", "FALSE", "True", "False"][i % 6].to_owned())),
        row("labels -1 and 1", &[TRAIN], computed(has_classes(2)))
            .file("rows.csv", targets(200, |i| ["-1", "1"][i % 2].to_owned())),
        row("labels that are missing", &[TRAIN], said(&["`y`", "no value in 1 of 200 rows"]))
            .file("rows.csv", targets(200, |i| if i == 150 { String::new() } else { (i % 2).to_string() })),
        row("labels of text that are missing", &[TRAIN], refused_or_said(&["`y`", "line"], &["`y`"]))
            .file("rows.csv", targets(200, |i| if i == 150 { "?".to_owned() } else { ["no", "yes"][i % 2].to_owned() })),
        row("a target of numbers with leading zeros", &[TRAIN], computed(has_classes(4)))
            .file("rows.csv", targets(200, |i| ["01", "1", "02", "2"][i % 4].to_owned())),
        row("class labels of whole numbers above 2^24", &[&format!("{TRAIN} --task classes")], either(&["`y`"], has_classes(3)))
            .file("rows.csv", targets(300, |i| (16_777_216 + i % 3).to_string())),
        row(
            "class labels of whole numbers above 2^24, imported",
            &["import rows.csv out.safetensors --label y --label-kind classes"],
            either(&["`y`|line"], |found| found.classes(&["16777216", "16777217", "16777218"])),
        )
        .file("rows.csv", targets(300, |i| (16_777_216 + i % 3).to_string())),
        row("numbers to predict above 2^24", &["import rows.csv out.safetensors --label y"], refused_or_said(&["`y`"], &["`y`"]))
            .file("rows.csv", targets(100, |i| (1_700_000_000 + i).to_string())),
        row(
            "a target named label among other columns",
            &["tabular rows.csv --epochs 1 --model mlp --hidden 4 --out model --json out.json"],
            computed(|found| {
                let target = found.json("out.json")?["target"].clone();
                ensure!(target == "label", "the target is {target}");
                found.said(&["--target"])
            }),
        )
        .file("rows.csv", text("label,x,z", 200, |i| format!("{},{:.3},{:.3}", ["no", "yes"][i % 2], part(i, 0), part(i, 1)))),
        row(
            "a target that is the last of many columns",
            &["tabular rows.csv --epochs 1 --model mlp --hidden 4 --out model --json out.json"],
            said(&["--target"]),
        )
        .file("rows.csv", text("x,z,kind", 200, |i| format!("{:.3},{:.3},{}", part(i, 0), part(i, 1), ["no", "yes"][i % 2]))),
        row("a target and a column of text that is the target spelt otherwise", &[TRAIN], said(&["`copy`"]))
            .file("rows.csv", text("copy,x,y", 200, |i| format!("{},{:.3},{}", ["n", "j"][i % 2], part(i, 0), i % 2))),
    ];
    rows.push(
        row(
            "a target of small numbers",
            &[TRAIN],
            computed(|found| {
                let shown = found.ended.stdout.lines().find(|line| line.starts_with("rmse")).unwrap_or_default();
                let error = found.result("out.json", "test_rmse")?;
                let numbers: Vec<f64> = shown.split_whitespace().filter_map(|word| word.parse().ok()).collect();
                ensure!(
                    numbers.first().is_some_and(|shown| (shown - error).abs() < 0.01 * error),
                    "the error is {error}, and {shown:?} is printed"
                );
                Ok(())
            }),
        )
        .file("rows.csv", targets(300, |i| format!("{:.9}", 1e-3 + 1e-5 * part(i, 0)))),
    );
    for cell in ["inf", "12.5x", "-", "1e999", "12,5", "#DIV/0!", "unknown", "$4"] {
        let name = format!("one cell {cell:?} in a target of numbers");
        let target = move |i: usize| if i == 1700 { cell.to_owned() } else { format!("{:.5}", 9.0 * part(i, 1)) };
        let outcome = match cell {
            "-" | "#DIV/0!" => said(&["`y`", "no value in 1 of 2000 rows"]),
            _ => refused(&["`y`|column 2|3 columns|has 3", "line 1702|1702"]),
        };
        rows.push(row(name, &[TRAIN], outcome).file("rows.csv", targets(2000, target)));
    }
    rows
}
