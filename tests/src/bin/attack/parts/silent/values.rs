//! Numbers that lose digits, and codes that are no numbers.

use anyhow::ensure;

use super::tables::{IMPORT, TRAIN, part, text};
use super::{Row, computed, either, refused, refused_or_said, row, said};

/// A column `t` of large numbers one apart: all values stay different, or a warning names the column.
fn one_apart(name: &str, first: u64) -> Row {
    let expected = computed(|found| {
        let table = found.table("out.safetensors")?;
        let values: &[f32] = table.rows(0..table.n_rows())?;
        let is_distinct = values.windows(2).all(|pair| pair[0] != pair[1]);
        ensure!(is_distinct || found.said(&["`t`"]).is_ok(), "neighbours are equal, and no warning names `t`");
        Ok(())
    });
    row(name, &[IMPORT], expected).file("rows.csv", text("t,y", 50, |i| format!("{},{}", first + i as u64, i % 2)))
}

pub(super) fn rows() -> Vec<Row> {
    let codes = |column: &'static str| {
        computed(move |found| {
            let numbers = found.model_columns("numbers")?;
            ensure!(!numbers.iter().any(|name| name == column) || found.said(&["`code`"]).is_ok(), "`{column}` is a number");
            Ok(())
        })
    };
    let mut rows = vec![
        one_apart("seconds since 1970", 1_700_000_000),
        one_apart("milliseconds since 1970", 1_700_000_000_000),
        one_apart("whole numbers above 2^24", 16_777_216),
        one_apart("whole numbers above 2^53", 9_007_199_254_740_993),
        one_apart("times as of a date of 14 digits", 20_240_131_120_000),
        row("codes with leading zeros", &[TRAIN], codes("code")).file(
            "rows.csv",
            text("code,x,y", 300, |i| format!("{},{:.3},{}", ["01234", "1234", "99", "00099"][i % 4], part(i, 0), i * 7 % 5 / 3)),
        ),
        row("codes with leading zeros, quoted", &[TRAIN], codes("code")).file(
            "rows.csv",
            text("code,x,y", 300, |i| {
                format!("\"{}\",{:.3},{}", ["01234", "1234", "99", "00099"][i % 4], part(i, 0), i * 7 % 5 / 3)
            }),
        ),
        row("infinity in a feature", &[IMPORT], refused(&["line 3"])).file("rows.csv", "x,y\n1,0\ninf,1\n2,0\n"),
        row("Infinity in a feature", &[IMPORT], refused(&["line 3"])).file("rows.csv", "x,y\n1,0\n-Infinity,1\n2,0\n"),
        row("a number beyond f32", &[IMPORT], refused(&["line 3"])).file("rows.csv", "x,y\n1,0\n1e39,1\n2,0\n"),
        row("a number beyond f16", &["import rows.csv out.safetensors --label y --dtype f16"], refused(&["line 3"]))
            .file("rows.csv", "x,y\n1,0\n70000,1\n2,0\n"),
        row(
            "whole numbers that f16 rounds",
            &["import rows.csv out.safetensors --label y --dtype f16"],
            refused_or_said(&["`x`"], &["`x`"]),
        )
        .file("rows.csv", text("x,y", 50, |i| format!("{},{}", 4097 + 2 * i, i % 2))),
        row(
            "a decimal comma in scientific notation",
            &["import rows.csv out.safetensors --label y --decimal comma"],
            computed(|found| found.values("x", &[1500.0, -0.25])),
        )
        .file("rows.csv", "x;y\n1,5e3;0\n-2,5E-1;1\n"),
        row(
            "decimal commas and points between thousands",
            &["import rows.csv out.safetensors --label y --decimal comma"],
            either(&["line 2"], |found| found.values("x", &[1234.5, 2.5])),
        )
        .file("rows.csv", "x;y\n1.234,5;0\n2,5;1\n"),
        row(
            "decimal points in a file of decimal commas",
            &["import rows.csv out.safetensors --label y --decimal comma"],
            refused(&["line 3"]),
        )
        .file("rows.csv", "x;y\n1,5;0\n2.5;1\n3,5;0\n"),
        row("a weight below 0", &["import rows.csv out.safetensors --label y --weight w"], refused(&["line 3"]))
            .file("rows.csv", "x,w,y\n1,1,0\n2,-1,1\n"),
        row(
            "a weight that is NaN",
            &["import rows.csv out.safetensors --label y --weight w --missing keep"],
            refused(&["line 3"]),
        )
        .file("rows.csv", "x,w,y\n1,1,0\n2,nan,1\n"),
        row(
            "a weight that is missing",
            &["import rows.csv out.safetensors --label y --weight w --missing mean"],
            refused(&["line 3"]),
        )
        .file("rows.csv", "x,w,y\n1,1,0\n2,,1\n"),
        row(
            "classes that differ in case, imported",
            &["import rows.csv out.safetensors --label y --label-kind classes"],
            said(&["`y`", "TRUE"]),
        )
        .file("rows.csv", text("x,y", 40, |i| format!("{i}.5,{}", ["true", "false", "TRUE"][i % 3]))),
        row(
            "classes that differ in a full stop, imported",
            &["import rows.csv out.safetensors --label y --label-kind classes"],
            said(&["`y`", "<=50K."]),
        )
        .file("rows.csv", text("x,y", 40, |i| format!("{i}.5,{}", ["<=50K", ">50K", "<=50K."][i % 3]))),
        row("values that differ in case, in a model", &[TRAIN], said(&["`city`", "BERN"])).file(
            "rows.csv",
            text("city,x,y", 200, |i| format!("{},{:.3},{}", ["Bern", "BERN", "Basel"][i % 3], part(i, 0), i * 7 % 5 / 3)),
        ),
        row(
            "weights that are all 0",
            &[
                "import rows.csv out.safetensors --label y --weight w",
                "higgs --train out.safetensors --test out.safetensors --epochs 1 --hidden 4",
            ],
            refused(&["weight"]),
        )
        .file("rows.csv", text("x,w,y", 60, |i| format!("{:.3},0,{}", part(i, 0), i % 2))),
        row(
            "text in two forms of Unicode",
            &[TRAIN],
            computed(|found| {
                let model = found.json("model/model.json")?;
                let values = &model["preprocessing"]["categories"][0]["values"];
                ensure!(values.as_array().is_some_and(|values| values.len() == 2), "the values of `city` are {values}");
                Ok(())
            }),
        )
        .file(
            "rows.csv",
            text("city,x,y", 200, |i| {
                format!("{},{:.3},{}", ["Z\u{fc}rich", "Zu\u{308}rich", "Bern"][i % 3], part(i, 0), i * 7 % 5 / 3)
            }),
        ),
        row(
            "text with spaces at its ends",
            &[TRAIN],
            computed(|found| {
                let model = found.json("model/model.json")?;
                let values = &model["preprocessing"]["categories"][0]["values"];
                ensure!(
                    values.as_array().is_some_and(|values| values.len() == 2) || found.said(&["`city`"]).is_ok(),
                    "the values of `city` are {values}"
                );
                Ok(())
            }),
        )
        .file(
            "rows.csv",
            text("city,x,y", 200, |i| {
                format!("{},{:.3},{}", ["Bern", "Bern ", " Bern", "Basel"][i % 4], part(i, 0), i * 7 % 5 / 3)
            }),
        ),
    ];
    // Prediction from unusual rows.
    let train =
        || text("city,x,y", 200, |i| format!("{},{:.3},{}", ["Bern", "Basel"][i % 2], part(i, 0), ["no", "yes"][i * 7 % 5 / 3]));
    let predict = "predict model new.csv --out out.csv";
    let mut predicted = |name: &str, line: &str, expected, new: &str| {
        rows.push(row(name, &[TRAIN, line], expected).file("rows.csv", train()).file("new.csv", new));
    };
    predicted("one row whose text is missing", predict, computed(|found| found.said(&["rows"])), "city,x\n?,0.5\n");
    predicted("rows whose text is empty", predict, computed(|found| found.said(&["rows"])), "city,x\n,0.5\n,0.25\n");
    predicted("rows whose number is missing", predict, computed(|found| found.said(&["rows"])), "city,x\nBern,\nBasel,\n");
    predicted("values that training did not have", predict, said(&["`city`"]), "city,x\nGenf,0.5\nBern,0.25\n");
    predicted("text in the column of numbers", predict, refused(&["`x`", "line 2"]), "city,x\nBern,high\n");
    predicted("a column of another case", predict, refused(&["`city`"]), "City,x\nBern,0.5\n");
    predicted("a number beyond f32 to predict from", predict, refused(&["line 2"]), "city,x\nBern,1e39\n");
    predicted("infinity to predict from", predict, refused(&["line 2|row 0"]), "city,x\nBern,inf\n");
    predicted("decimal commas to predict from", predict, refused(&["`x`|column 2"]), "city;x\nBern;0,5\nBasel;0,25\n");
    predicted(
        "decimal commas to predict from, which are named",
        "predict model new.csv --out out.csv --decimal ,",
        computed(|found| found.said(&["rows"])),
        "city;x\nBern;0,5\nBasel;0,25\n",
    );
    predicted(
        "a word for missing numbers to predict from, which is named",
        "predict model new.csv --out out.csv --missing-value unknown",
        computed(|found| found.said(&["rows"])),
        "city,x\nBern,unknown\nBasel,0.25\n",
    );
    rows
}
