//! Numbers whose size makes them wrong: too large or too small for 32 bits, far from the others, or far from those of training.

use anyhow::{Result, ensure};

use super::found::Found;
use super::tables::{IMPORT, TRAIN, part, text};
use super::{Row, computed, refused, row, said};

const PREDICT: &str = "predict model new.csv --out out.csv";

/// A target of `base` and a fraction of four digits, which the feature determines: it is a number, and is predicted with its
/// digits.
fn large_target(base: f64) -> Row {
    let target = move |i: usize| base + part(i, 0);
    let check = move |found: &Found<'_>| -> Result<()> {
        let kind = found.json("out.json")?["task"].clone();
        ensure!(kind == "number", "the target is taken as {kind}");
        let predicted = std::fs::read_to_string(found.dir.join("out.csv"))?;
        let predicted = predicted.lines().skip(1).map(str::parse).collect::<Result<Vec<f64>, _>>()?;
        let error = predicted.iter().enumerate().map(|(i, number)| (number - target(i)).abs()).sum::<f64>() / 600.0;
        ensure!(predicted.len() == 600 && error < 0.1, "the mean error is {error}");
        Ok(())
    };
    let train = "tabular new.csv --target y --epochs 20 --model mlp --hidden 16 --lr 0.01 --out model --json out.json";
    row(format!("a target of {base:e} and a fraction"), &[train, PREDICT], computed(check))
        .file("new.csv", text("x,z,y", 600, |i| format!("{:.4},{:.4},{:.4}", part(i, 0), part(i, 1), target(i))))
}

/// No warning is printed.
fn no_warning(found: &Found<'_>) -> Result<()> {
    ensure!(found.said(&["warning"]).is_err(), "there is a warning");
    Ok(())
}

pub(super) fn rows() -> Vec<Row> {
    let mut rows = vec![large_target(1e6), large_target(1e7), large_target(1.7e9)];
    rows.extend(odd_values());
    rows.extend(imports());
    rows.extend(predictions());
    rows
}

fn odd_values() -> Vec<Row> {
    let labels = |odd: &'static str| {
        text("x,y", 3000, move |i| format!("{:.4},{}", part(i, 0), if i == 2100 { odd } else { ["0", "1"][i % 2] }))
    };
    let marked = |i: usize, col: usize, mark: &str| if i % 10 == 4 { mark.to_owned() } else { format!("{:.4}", part(i, col)) };
    let mut rows = vec![
        row("a fraction among labels 0 and 1", &[TRAIN], refused(&["`y`", "line 2102", "0.5", "--task number"]))
            .file("rows.csv", labels("0.5")),
        row("a single 2 among labels 0 and 1", &[TRAIN], said(&["`y`", "\"2\" in 1 of 3000"])).file("rows.csv", labels("2")),
        row("a cell of 1e30 in a feature", &[TRAIN], said(&["`x`", "1e30", "line 9", "--missing-value 1e30"])).file(
            "rows.csv",
            text("x,y", 600, |i| {
                let x = part(i, 0);
                format!("{},{}", if i == 7 { "1e30".to_owned() } else { format!("{x:.4}") }, u8::from(x > 0.5))
            }),
        ),
        row("features of 1e-39", &[TRAIN], said(&["`x`", "too small"]))
            .file("rows.csv", text("x,y", 300, |i| format!("{:.4}e-39,{}", part(i, 0), u8::from(part(i, 0) > 0.5)))),
        row("features of 1e-50", &[TRAIN], said(&["`x`", "too small"]))
            .file("rows.csv", text("x,z,y", 300, |i| format!("{:.4}e-50,{:.4},{}", part(i, 0), part(i, 1), i % 2))),
        row("a target of 1e-39", &[TRAIN], said(&["`y`", "too small"]))
            .file("rows.csv", text("x,y", 300, |i| format!("{:.4},{:.4}e-39", part(i, 0), part(i, 0)))),
    ];
    for mark in ["-9999", "-999", "999999", "99999"] {
        let words = ["line 6", &format!("--missing-value {mark}")];
        rows.push(
            row(format!("{mark} in every tenth cell of a target"), &[TRAIN], said(&[&["`y`"][..], &words].concat()))
                .file("rows.csv", text("x,y", 600, |i| format!("{:.4},{}", part(i, 0), marked(i, 1, mark)))),
        );
        rows.push(
            row(format!("{mark} in every tenth cell of a feature"), &[TRAIN], said(&[&["`x`"][..], &words].concat()))
                .file("rows.csv", text("x,y", 600, |i| format!("{},{:.4}", marked(i, 0, mark), part(i, 1)))),
        );
        rows.push(
            row(
                format!("{mark} in a target, where it means a missing value"),
                &[&format!("{TRAIN} --missing-value {mark}")],
                said(&["`y`", "no value in 60 of 600 rows", "left out"]),
            )
            .file("rows.csv", text("x,y", 600, |i| format!("{:.4},{}", part(i, 0), marked(i, 1, mark)))),
        );
    }
    // Text that stands for numbers, nearly all of it different.
    type Cell = fn(usize) -> String;
    let texts: [(&str, Cell); 3] = [
        ("ISO weeks", |i| format!("{}-W{:02}", 2010 + i / 52, i % 52 + 1)),
        ("durations", |i| format!("{}h{:02}m", i / 60, i % 60)),
        ("latitudes", |i| format!("{}\u{b0}{:02}'N", 40 + i / 60, i % 60)),
    ];
    for (what, cell) in texts {
        let expected = computed(|found| {
            found.is_left_out("when")?;
            found.said(&["`when`"])
        });
        let line = move |i: usize| format!("{},{:.3},{}", cell(i), part(i, 0), i % 2);
        rows.push(row(format!("a column of {what}"), &[TRAIN], expected).file("rows.csv", text("when,x,y", 400, line)));
    }
    rows
}

fn imports() -> Vec<Row> {
    let weighted = "import rows.csv out.safetensors --label y --weight w";
    let tiny = |i: usize| format!("{}e-50", i + 1);
    vec![
        row("fractions of 10000000.1234", &[IMPORT], said(&["`x`", "digits", "--offset"]))
            .file("rows.csv", text("x,y", 100, |i| format!("{:.4},{}", 1e7 + part(i, 0), i % 2))),
        row("labels of 10000000.1234", &[IMPORT], said(&["`y`", "digits", "--offset"]))
            .file("rows.csv", text("x,y", 100, |i| format!("{:.4},{:.4}", part(i, 0), 1e7 + part(i, 1)))),
        row(
            "labels of 10000000.1234, with an offset",
            &["import rows.csv out.safetensors --label y --offset y=10000000"],
            computed(|found| {
                no_warning(found)?;
                found.labels(&[0.125, 0.25, 0.5])
            }),
        )
        .file("rows.csv", "x,y\n7,10000000.125\n3,10000000.25\n5,10000000.5\n"),
        row("fractions of 1000.1234 in f16", &["import rows.csv out.safetensors --label y --dtype f16"], said(&["`x`", "f16"]))
            .file("rows.csv", text("x,y", 100, |i| format!("{:.4},{}", 1000.1234 + part(i, 0), i % 2))),
        row("ordinary fractions", &[IMPORT], computed(no_warning))
            .file("rows.csv", text("x,z,y", 100, |i| format!("{:.4},0.{},{}", 100.0 + part(i, 0), i % 3, i % 2))),
        row("features that are 0 in f32", &[weighted], said(&["`x`", "too small"]))
            .file("rows.csv", text("x,w,y", 50, |i| format!("{},1,{}", tiny(i), i % 2))),
        row("labels that are 0 in f32", &[weighted], said(&["`y`", "too small"]))
            .file("rows.csv", text("x,w,y", 50, |i| format!("{:.4},1,{}", part(i, 0), tiny(i)))),
        row("weights that are 0 in f32", &[weighted], said(&["`w`", "too small"]))
            .file("rows.csv", text("x,w,y", 50, |i| format!("{:.4},{},{}", part(i, 0), tiny(i), i % 2))),
        row("years as the names of columns", &["import rows.csv out.safetensors"], said(&["line 1", "--header present"]))
            .file("rows.csv", text("2019,2020,2021", 50, |i| format!("{:.3},{:.3},{:.3}", part(i, 0), part(i, 1), part(i, 2)))),
        row(
            "years as the names of columns, in a model",
            &["tabular rows.csv --epochs 1 --model mlp --hidden 4 --out model"],
            said(&["line 1", "--header present"]),
        )
        .file("rows.csv", text("2019,2020,2021", 90, |i| format!("{:.3},{:.3},{:.3}", part(i, 0), part(i, 1), part(i, 2)))),
    ]
}

/// Rows to predict that are unlike those of training.
fn predictions() -> Vec<Row> {
    let line = |i: usize| {
        let (seconds, day) = (1_700_000_000 + i * 37 % 9000, i % 28 + 1);
        format!("{seconds},20{:02}-{:02}-{day:02},{:.4}", i % 25, i % 12 + 1, part(i, 0))
    };
    let cases = [
        ("milliseconds instead of seconds", "t,when,x\n1700000000000,2024-01-01,0.5\n", said(&["warning", "`t`", "1 of 1"])),
        ("a date of the year 2124", "t,when,x\n1700000000,2124-01-01,0.5\n", said(&["warning", "`when_year`", "2024"])),
        ("5e20 instead of a share", "t,when,x\n1700000000,2024-01-01,5e20\n", said(&["warning", "`x`"])),
        ("values like those of training", "t,when,x\n1700000500,2025-01-01,0.7\n", computed(no_warning)),
        ("no column of time stamps", "when,x\n2024-01-01,0.5\n", refused(&["`t`", "numbers"])),
        ("no column of dates", "t,x\n1700000500,0.5\n", refused(&["`when`", "dates"])),
    ];
    let trained = |(name, new, expected): (&str, &str, _)| {
        row(format!("to predict from: {name}"), &[TRAIN, PREDICT], expected)
            .file("rows.csv", text("t,when,x,y", 400, |i| format!("{},{:.4}", line(i), part(i, 1))))
            .file("new.csv", new)
    };
    cases.into_iter().map(trained).collect()
}
