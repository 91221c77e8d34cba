//! Columns that are not what they look like.

use super::{Row, computed, either, refused, refused_or_said, row, said};

/// Trains a small model on `rows.csv`.
pub(super) const TRAIN: &str = "tabular rows.csv --target y --epochs 1 --model mlp --hidden 4 --out model --json out.json";

/// Imports `rows.csv` with the label `y`.
pub(super) const IMPORT: &str = "import rows.csv out.safetensors --label y --json out.json";

/// The text of a cell, by the number of its row.
type Cell = fn(usize) -> String;

/// Text of `n` rows.
pub(super) fn text(header: &str, n: usize, line: impl Fn(usize) -> String) -> Vec<u8> {
    let lines: String = (0..n).map(|i| line(i) + "\n").collect();
    format!("{header}\n{lines}").into_bytes()
}

/// A number from 0 to 1 that depends on row and column only.
pub(super) fn part(row: usize, col: usize) -> f64 {
    let mut bits = (row as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (col as u64 + 1).wrapping_mul(0xd1b5_4a32_d192_ed03);
    bits = (bits ^ (bits >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((bits ^ (bits >> 32)) >> 11) as f64 / (1_u64 << 53) as f64
}

/// 300 rows of `x`, `kind` and a class `y`, in which the cell of `x` in one row is `cell`.
fn one_cell(cell: &str, at: usize) -> Vec<u8> {
    text("x,kind,y", 300, |i| {
        let x = if i == at { cell.to_owned() } else { format!("{:.4}", 4.0 * part(i, 0)) };
        format!("{x},{},{}", ["red", "green"][i % 2], if part(i, 0) > 0.5 { "yes" } else { "no" })
    })
}

pub(super) fn rows() -> Vec<Row> {
    let mut rows = vec![
        row(
            "the index that pandas writes with to_csv",
            &[IMPORT],
            computed(|found| {
                found.columns(&["x"])?;
                found.said(&["index"])
            }),
        )
        .file("rows.csv", text(",x,y", 40, |i| format!("{i},{:.3},{}", part(i, 0), i / 20))),
        row(
            "the index that pandas writes with to_csv, in a model",
            &[TRAIN],
            computed(|found| {
                found.said(&["index"])?;
                found.is_number("x")?;
                found.is_left_out("")
            }),
        )
        .file("rows.csv", text(",x,y", 200, |i| format!("{i},{:.3},{}", part(i, 0), i / 100))),
        row("an index named Unnamed: 0", &[TRAIN], said(&["`Unnamed: 0`"]))
            .file("rows.csv", text("Unnamed: 0,x,y", 200, |i| format!("{i},{:.3},{}", part(i, 0), i / 100))),
        row("a column that counts the rows from 1", &[TRAIN], said(&["`number`"]))
            .file("rows.csv", text("number,x,y", 200, |i| format!("{},{:.3},{}", i + 1, part(i, 0), i / 100))),
        row("a column that alone predicts the target", &[TRAIN], said(&["`copy`"])).file(
            "rows.csv",
            text("x,copy,y", 300, |i| {
                let class = usize::from(part(i, 1) > 0.5);
                format!("{:.3},{},{class}", part(i, 0), 2 * class + 5)
            }),
        ),
        row("a column of text that alone predicts the target", &[TRAIN], said(&["`copy`"])).file(
            "rows.csv",
            text("x,copy,y", 300, |i| {
                let class = usize::from(part(i, 1) > 0.5);
                format!("{:.3},{},{}", part(i, 0), ["off", "on"][class], ["no", "yes"][class])
            }),
        ),
        row("a column that is missing where the target is 1", &[TRAIN], said(&["`amount`"])).file(
            "rows.csv",
            text("x,amount,y", 300, |i| {
                let class = usize::from(part(i, 1) > 0.5);
                let amount = if class == 1 { String::new() } else { format!("{:.2}", 900.0 * part(i, 2)) };
                format!("{:.3},{amount},{class}", part(i, 0))
            }),
        ),
        row(
            "identifiers, all different",
            &[TRAIN],
            computed(|found| {
                found.is_left_out("key")?;
                found.said(&["`key`"])
            }),
        )
        .file("rows.csv", text("key,x,y", 300, |i| format!("k{:06x},{:.3},{}", 7919 * i % 65_521, part(i, 0), i % 2))),
        row("a header with fewer columns than the rows", &[IMPORT], refused_or_said(&["line 2", "3", "2", "header"], &["index"]))
            .file("rows.csv", text("x,y", 40, |i| format!("Male,{:.3},{}", part(i, 0), i % 2))),
        row("a header with more columns than the rows", &[IMPORT], refused(&["line 2", "3", "2"]))
            .file("rows.csv", text("x,z,y", 40, |i| format!("{:.3},{}", part(i, 0), i % 2))),
        row("two columns of one name", &[IMPORT], refused_or_said(&["`x`"], &["`x`"]))
            .file("rows.csv", text("x,x,y", 40, |i| format!("{:.3},{:.3},{}", part(i, 0), part(i, 1), i % 2))),
        row(
            "an empty last column, as of a comma at the end of each line",
            &[IMPORT],
            either(&["line|column"], |found| found.columns(&["x"])),
        )
        .file("rows.csv", text("x,y,", 40, |i| format!("{:.3},{},", part(i, 0), i % 2))),
        row("a column without any value", &[TRAIN], refused_or_said(&["`empty`"], &["`empty`"]))
            .file("rows.csv", text("x,empty,y", 200, |i| format!("{:.3},,{}", part(i, 0), i % 2))),
        row(
            "a column without any value, filled with its mean",
            &["import rows.csv out.safetensors --label y --missing mean"],
            refused_or_said(&["`empty`"], &["`empty`"]),
        )
        .file("rows.csv", text("x,empty,y", 40, |i| format!("{:.3},,{}", part(i, 0), i % 2))),
        row(
            "lines that end with a carriage return only",
            &[IMPORT],
            either(&["carriage return|line end|CR"], |found| found.columns(&["x"])),
        )
        .file(
            "rows.csv",
            String::from_utf8(text("x,y", 40, |i| format!("{i}.5,{}", i % 2))).unwrap_or_default().replace('\n', "\r"),
        ),
        row(
            "lines that end with CR LF and LF",
            &[IMPORT],
            computed(|found| {
                found.columns(&["x"])?;
                found.labels(&[0.0, 1.0, 0.0, 1.0])
            }),
        )
        .file("rows.csv", "x,y\r\n1,0\n2,1\r\n3,0\n4,1\r\n"),
        row("a byte order mark within the file, as of two files joined", &[IMPORT], refused(&["line 4"]))
            .file("rows.csv", "\u{feff}x,y\n1,0\n2,1\n\u{feff}3,0\n4,1\n"),
        row("a second header within the file", &[IMPORT], refused(&["line 4"]))
            .file("rows.csv", "x,y\n1,0\n2,1\nx,y\n3,0\n4,1\n"),
        row("a NUL byte within a number", &[IMPORT], refused(&["line 3"])).file("rows.csv", "x,y\n1,0\n2\u{0}5,1\n3,0\n"),
        row("tabs between the cells of a .csv", &[IMPORT], computed(|found| found.columns(&["x", "z"])))
            .file("rows.csv", text("x\tz\ty", 40, |i| format!("{i}\t{}.5\t{}", i * i, i % 2))),
        row(
            "spaces after the delimiters",
            &[IMPORT],
            computed(|found| {
                found.columns(&["x"])?;
                found.labels(&[0.0, 1.0, 0.0])
            }),
        )
        .file("rows.csv", "x, y\n1, 0\n2, 1\n3, 0\n"),
        row("a line of totals at the end", &[IMPORT], refused(&["line 5", "Total"]))
            .file("rows.csv", "x,y\n1,0\n2,1\n3,0\nTotal,1\n"),
        row("quoted numbers", &[IMPORT], computed(|found| found.values("x", &[1.5, -2.0, 3e3])))
            .file("rows.csv", "x,y\n\"1.5\",0\n\"-2\",1\n\"3e3\",0\n"),
    ];
    // One word in a column of numbers, near the start and near the end.
    let missing = [
        "-", ".", "#DIV/0!", "#N/A", "#VALUE!", "\\N", "<NA>", "N/A", "n/a", "NA", "NaN", "nan", "NULL", "null", "None", "?", "",
    ];
    let odd = [
        "--",
        "unknown",
        "\u{2212}3.5",
        "\u{a0}3.5",
        "3,5",
        "3.5x",
        "inf",
        "1e999",
        "0x10",
        "3.5%",
        "$3.5",
        "TRUE",
        "1.234,5",
        "'3.5",
    ];
    for word in missing.into_iter().chain(odd) {
        for at in [1, 290] {
            let name = format!("one cell {word:?} in row {at} of a column of numbers");
            rows.push(
                row(name, &[TRAIN], either(&["`x`|column 1|4 columns|has 4", "line"], |found| found.is_number("x")))
                    .file("rows.csv", one_cell(word, at)),
            );
        }
    }
    // A column of what is written like text, but is a number.
    let as_numbers: [(&str, Cell); 8] = [
        ("decimal commas", |i| format!("{},{:02}", i % 9, i * 7 % 100)),
        ("U+2212 as the sign", |i| format!("\u{2212}{}.{:02}", i % 9, i * 7 % 100)),
        ("no-break spaces between thousands", |i| format!("{}\u{a0}{:03}", i % 9 + 1, i * 37 % 1000)),
        ("commas between thousands", |i| format!("\"{},{:03}\"", i % 9 + 1, i * 37 % 1000)),
        ("per cent signs", |i| format!("{}.{}%", i % 90, i % 10)),
        ("currency signs", |i| format!("${}.{:02}", i % 90, i * 7 % 100)),
        ("currency in front", |i| format!("EUR {}.{:02}", i % 90, i * 7 % 100)),
        ("apostrophes in front", |i| format!("'{}.{:02}", i % 90, i * 7 % 100)),
    ];
    for (what, cell) in as_numbers {
        let delimiter = if what == "decimal commas" { ";" } else { "," };
        let line = move |i: usize| format!("{}{delimiter}{}{delimiter}{}", cell(i), i * 11 % 50, ["no", "yes"][i * 7 % 5 / 3]);
        let header = ["x", "z", "y"].join(delimiter);
        let expected = either(&["`x`|column 1"], |found| found.is_number("x"));
        rows.push(row(format!("a column of numbers with {what}"), &[TRAIN], expected).file("rows.csv", text(&header, 300, line)));
    }
    // Dates are features of their own or left out, but not categories.
    let dates: [(&str, Cell); 9] = [
        ("ISO dates", |i| format!("20{:02}-{:02}-{:02}", i % 20, i % 12 + 1, i % 28 + 1)),
        ("ISO dates and times", |i| format!("2024-{:02}-{:02}T{:02}:{:02}:00Z", i % 12 + 1, i % 28 + 1, i % 24, i * 7 % 60)),
        ("dates and times with a space", |i| {
            format!("2024-{:02}-{:02} {:02}:{:02}:00", i % 12 + 1, i % 28 + 1, i % 24, i * 7 % 60)
        }),
        ("ISO dates and times with an offset", |i| format!("2024-{:02}-{:02}T{:02}:00:00+02:00", i % 12 + 1, i % 28 + 1, i % 24)),
        ("US dates", |i| format!("{}/{}/2024", i % 12 + 1, i % 28 + 1)),
        ("European dates", |i| format!("{:02}.{:02}.2024", i % 28 + 1, i % 12 + 1)),
        ("dates with names of months", |i| format!("{} {} 2024", i % 28 + 1, ["Jan", "Feb", "Mar"][i % 3])),
        ("times of day", |i| format!("{:02}:{:02}", i % 24, i * 7 % 60)),
        ("months", |i| format!("20{:02}-{:02}", i % 20, i % 12 + 1)),
    ];
    for (what, cell) in dates {
        let expected = either(&["`when`"], |found| {
            found.is_no_category("when")?;
            found.said(&["`when"])
        });
        let line = move |i: usize| format!("{},{:.3},{}", cell(i), part(i, 0), ["no", "yes"][i * 7 % 5 / 3]);
        rows.push(row(format!("a column of {what}"), &[TRAIN], expected).file("rows.csv", text("when,x,y", 400, line)));
    }
    rows
}
