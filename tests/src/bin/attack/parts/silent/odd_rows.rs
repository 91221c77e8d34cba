//! Odd files of rows: quoting, encodings, packing, numbers written in unusual ways, and second files that do not fit the first.

use std::io::Write as _;

use anyhow::{Context as _, Result, ensure};
use brisk_tabular::TabularModel;

use super::files::npy_in_order;
use super::found::Found;
use super::tables::{IMPORT, TRAIN, part, text};
use super::{Expected, Row, computed, either, refused, refused_or_said, row, said, terminated};

fn gzip(text: &[u8]) -> Result<Vec<u8>> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(text)?;
    Ok(packed.finish()?)
}

fn utf16(text: &str) -> Vec<u8> {
    [vec![0xff, 0xfe], text.encode_utf16().flat_map(u16::to_le_bytes).collect()].concat()
}

/// 200 rows of a city, a number and a class.
fn cities() -> Vec<u8> {
    text("city,x,y", 200, |i| format!("{},{:.3},{}", ["Bern", "Basel"][i % 2], part(i, 0), ["no", "yes"][i * 7 % 5 / 3]))
}

/// The predictions in two files are the same.
fn same_predictions(found: &Found<'_>) -> Result<()> {
    let [one, other] = ["one.csv", "out.csv"].map(|name| std::fs::read_to_string(found.dir.join(name)));
    let (one, other) = (one?, other?);
    ensure!(one == other, "the predictions differ: {one:.200} and {other:.200}");
    Ok(())
}

pub(super) fn rows() -> Vec<Row> {
    let mut rows = files_of_rows();
    rows.extend(numbers());
    rows.extend(arrays());
    rows.extend(second_files());
    rows.extend(models());
    rows
}

fn imported(name: &str, text: impl Into<Vec<u8>>, expected: Expected) -> Row {
    row(name, &[IMPORT], expected).file("rows.csv", text)
}

fn files_of_rows() -> Vec<Row> {
    let rows = "x,y\n1.5,0\n2.5,1\n3.5,0\n";
    let packed =
        |parts: &[&[u8]]| -> Vec<u8> { parts.iter().flat_map(|part| gzip(part).expect("a vector takes any bytes")).collect() };
    let as_packed = |name: &str, bytes: Vec<u8>, expected: Expected| {
        row(name, &["import rows.csv.gz out.safetensors --label y"], expected).file("rows.csv.gz", bytes)
    };
    let all = |found: &Found<'_>| {
        found.values("x", &[1.5, 2.5, 3.5])?;
        found.labels(&[0.0, 1.0, 0.0])
    };
    let cut = packed(&[rows.as_bytes()]);
    vec![
        imported("a quote that is not closed", "x,y\n1.5,0\n\"2.5,1\n3.5,0\n", refused(&["line 3", "quote"])),
        imported("a quote within a cell", "x,y\n1.5,0\n2\"5,1\n3.5,0\n", refused(&["line 3"])),
        imported("text after a quote", "x,y\n1.5,0\n\"2\"5,1\n3.5,0\n", refused(&["line 3"])),
        imported("lines without any cell", "x,y\n1.5,0\n\n2.5,1\n\n\n3.5,0\n", either(&["line 3"], all)),
        imported("lines of blanks", "x,y\n1.5,0\n   \n2.5,1\n3.5,0\n", either(&["line 3"], all)),
        imported("a line that is a comment", "x,y\n1.5,0\n# a comment\n2.5,1\n3.5,0\n", refused(&["line 3"])),
        imported("a last line without its end", "x,y\n1.5,0\n2.5,1\n3.5,0", computed(all)),
        imported("a last line that is cut", "x,y\n1.5,0\n2.5,1\n3.5", refused(&["line 4"])),
        imported(
            "a title before the header",
            "Report of 2024\nx,y\n1.5,0\n2.5,1\n3.5,0\n",
            refused_or_said(&["line|column"], &["line 1"]),
        ),
        imported("a line of units after the header", "x,y\nmm,-\n1.5,0\n2.5,1\n", refused(&["line 2"])),
        imported("UTF-16", utf16(rows), either(&["UTF-16|UTF-8|encod"], all)),
        imported("control characters in a header", "x\u{7},y\n1.5,0\n2.5,1\n", said(&["rows"])),
        imported("an archive that is called .csv", b"PK\x03\x04\x14\0\0\0\x08\0rows".to_vec(), refused(&["rows.csv"])),
        imported("a header and no rows", "x,y\n", refused(&["rows.csv", "no rows|0 rows|row"])),
        imported("a file without a byte", "", refused(&["rows.csv"])),
        as_packed("two packed files joined", packed(&[b"x,y\n1.5,0\n", b"2.5,1\n3.5,0\n"]), computed(all)),
        as_packed("a packed file that is cut", cut[..cut.len() - 9].to_vec(), refused(&["rows.csv.gz"])),
        as_packed("a packed file with other bytes after its end", [&cut[..], b"more"].concat(), refused(&["rows.csv.gz"])),
        as_packed("a packed file with zeros after its end", [&cut[..], &[0; 512]].concat(), either(&["rows.csv.gz"], all)),
        row(
            "rows that are not packed, named .gz",
            &["import rows.csv.gz out.safetensors --label y"],
            either(&["rows.csv.gz"], all),
        )
        .file("rows.csv.gz", rows),
        row(
            "a line break within a cell of text",
            &["import rows.csv out.safetensors --label y --categorical z"],
            computed(|found| found.n_rows(4)),
        )
        .file("rows.csv", "x,z,y\n1,\"a\nb\",0\n2,c,1\n3,\"a\nb\",0\n4,\"d,\"\"e\",1\n"),
        row("Latin-1 in a column of text", &[TRAIN], refused_or_said(&["line|UTF-8"], &["UTF-8|Latin"])).file("rows.csv", {
            let line = |i: usize| [&b"Z\xfcrich"[..], b"Bern"][i % 2].to_vec();
            let rest = |i: usize| format!(",{:.3},{}\n", part(i, 0), i * 7 % 5 / 3).into_bytes();
            [b"city,x,y\n".to_vec(), (0..200).flat_map(|i| [line(i), rest(i)].concat()).collect()].concat()
        }),
        row(
            "only columns of text",
            &[TRAIN],
            computed(|found| {
                let (numbers, categories) = (found.model_columns("numbers")?, found.model_columns("categories")?);
                ensure!(numbers.is_empty() && categories == ["a", "b"], "numbers {numbers:?}, categories {categories:?}");
                found.result("out.json", "test_accuracy").map(drop)
            }),
        )
        .file(
            "rows.csv",
            text("a,b,y", 200, |i| {
                let [a, b] = [i % 3, i / 3 % 4];
                format!("{},{},{}", ["u", "v", "w"][a], ["k", "l", "m", "n"][b], ["no", "yes"][(a + b + i / 12) % 2])
            }),
        ),
        row("two columns of one name, in a model", &[TRAIN], refused_or_said(&["`x`"], &["`x`"]))
            .file("rows.csv", text("x,x,y", 200, |i| format!("{:.3},{:.3},{}", part(i, 0), part(i, 1), i % 2))),
        row("one label that is named twice", &["import rows.csv out.safetensors --label y --label y"], refused(&["`y`|--label"]))
            .file("rows.csv", rows),
        row("a weight that is the label", &["import rows.csv out.safetensors --label y --weight y"], refused(&["`y`|--weight"]))
            .file("rows.csv", rows),
        row(
            "a third value of a label of two",
            &["import rows.csv out.safetensors --label y --label-kind binary"],
            refused(&["line 4"]),
        )
        .file("rows.csv", "x,y\n1.5,0\n2.5,1\n3.5,2\n"),
        row("every column left out", &[&format!("{TRAIN} --drop x")], refused(&["column|feature"]))
            .file("rows.csv", text("x,y", 200, |i| format!("{i}.5,{}", i % 2))),
        row("five rows", &[TRAIN], refused(&["rows"])).file("rows.csv", text("x,y", 5, |i| format!("{i}.5,{}", i % 2))),
        row("a class of one row", &[TRAIN], refused_or_said(&["rare"], &["rare"])).file(
            "rows.csv",
            text("x,y", 200, |i| format!("{:.3},{}", part(i, 0), if i == 77 { "rare" } else { ["no", "yes"][i % 2] })),
        ),
        row(
            "labels 0 and -0",
            &[TRAIN],
            computed(|found| {
                let classes = found.json("model/model.json")?["target"]["classes"].clone();
                ensure!(classes.as_array().is_some_and(|classes| classes.len() == 2), "the classes are {classes}");
                Ok(())
            }),
        )
        .file("rows.csv", text("x,y", 200, |i| format!("{:.3},{}", part(i, 0), ["0", "1", "-0", "1"][i % 4]))),
        row("two values for a target of three classes", &[&format!("{TRAIN} --task binary")], refused(&["`y`"]))
            .file("rows.csv", text("x,y", 200, |i| format!("{:.3},{}", part(i, 0), i % 3))),
        row("text for a target of numbers", &[&format!("{TRAIN} --task number")], refused(&["`y`"]))
            .file("rows.csv", text("x,y", 200, |i| format!("{:.3},{}", part(i, 0), ["no", "yes"][i % 2]))),
    ]
}

/// Numbers that are written in unusual ways are what they say, or an error.
fn numbers() -> Vec<Row> {
    let plain: [(&str, f32); 10] = [
        (".5", 0.5),
        ("5.", 5.0),
        ("+5", 5.0),
        ("1E+03", 1000.0),
        ("1e-3", 0.001),
        ("-.25", -0.25),
        ("00.5", 0.5),
        ("0.10000000000000000000000001", 0.1),
        ("123456.78125000000000000000000", 123_456.78),
        (" 2.5 ", 2.5),
    ];
    let mut rows = vec![imported(
        "numbers that are written in unusual ways",
        format!("x,y\n{}", plain.map(|(cell, _)| format!("{cell},0\n")).concat()),
        computed(move |found| found.values("x", &plain.map(|(_, value)| value))),
    )];
    for cell in [
        "1_000",
        "0b11",
        "0o7",
        "1e",
        "1e+",
        "e5",
        "1.2.3",
        "1d3",
        "\u{661}\u{662}",
        "\u{ff11}",
        "\u{bd}",
        "2^3",
        "1/2",
        "1 000",
        "--5",
        "+-5",
        "5-",
        "(5)",
        "5;",
        "1,5",
        "T",
    ] {
        let cell_in_quotes = format!("\"{cell}\"");
        rows.push(imported(
            &format!("one cell {cell:?} among numbers"),
            format!("x,y\n1.5,0\n{cell_in_quotes},1\n2.5,0\n"),
            refused(&["line 3"]),
        ));
    }
    rows
}

fn arrays() -> Vec<Row> {
    let array = |name: &str, bytes: Vec<u8>, expected: Expected| {
        row(name, &["import rows.npy out.safetensors --labels 0 --json out.json"], expected).file("rows.npy", bytes)
    };
    let values = |found: &Found<'_>| {
        let rows: Vec<f32> = found.table("out.safetensors")?.rows::<f32>(0..4)?.to_vec();
        let expected = [1.0, 2.0, 4.0, 5.0, 7.0, 8.0, 10.0, 11.0];
        ensure!(rows == expected, "the rows are {rows:?}, expected {expected:?}");
        found.labels(&[0.0, 3.0, 6.0, 9.0])
    };
    // Of `[4, 3]`, column by column.
    let by_columns = |i: usize| (3 * (i % 4) + i / 4) as f32;
    vec![
        array("an array in C's order", npy_in_order("<f4", "False", 4, |i| (i as f32).to_le_bytes().to_vec()), computed(values)),
        array(
            "an array in Fortran's order",
            npy_in_order("<f4", "True", 4, |i| by_columns(i).to_le_bytes().to_vec()),
            either(&["rows.npy", "ortran"], values),
        ),
        array(
            "an array whose highest bytes come first",
            npy_in_order(">f4", "False", 4, |i| (i as f32).to_be_bytes().to_vec()),
            either(&["rows.npy", ">f4"], values),
        ),
        array(
            "an array of f16",
            npy_in_order("<f2", "False", 4, |i| [0x0000_u16, 0x3c00, 0x4000, 0x4200][i % 4].to_le_bytes().to_vec()),
            either(&["rows.npy"], |found| found.labels(&[0.0, 3.0, 2.0, 1.0])),
        ),
        array("an array of complex numbers", npy_in_order("<c8", "False", 4, |_| vec![0; 8]), refused(&["rows.npy", "c8"])),
        array("an array of text", npy_in_order("<U1", "False", 4, |_| vec![49, 0, 0, 0]), refused(&["rows.npy", "U1"])),
        array("an array with more bytes than values", npy_in_order("<f4", "False", 4, |_| vec![0; 5]), refused(&["rows.npy"])),
        array("an array with fewer bytes than values", npy_in_order("<f4", "False", 4, |_| vec![0; 3]), refused(&["rows.npy"])),
        row("a feature that is given twice", &["import rows.svm out.safetensors"], refused(&["line 2"]))
            .file("rows.svm", "0 1:0.5 2:1\n1 1:0.5 1:0.75\n"),
        row(
            "features that are not in order",
            &["import rows.svm out.safetensors"],
            either(&["line 2"], |found| {
                let rows: Vec<f32> = found.table("out.safetensors")?.rows::<f32>(1..2)?.to_vec();
                ensure!(rows == [0.25, 0.75], "the second row is {rows:?}");
                Ok(())
            }),
        )
        .file("rows.svm", "0 1:0.5 2:1\n1 2:0.75 1:0.25\n"),
        row(
            "a feature of number 0",
            &["import rows.svm out.safetensors"],
            either(&["line 1"], |found| {
                let shape = found.table("out.safetensors")?.row_shape().to_vec();
                ensure!(shape == [3], "the rows are {shape:?}");
                Ok(())
            }),
        )
        .file("rows.svm", "0 0:0.5 2:1\n1 1:0.75\n"),
        row("several labels in a line", &["import rows.svm out.safetensors"], refused(&["line 1"]))
            .file("rows.svm", "1,3 1:0.5 2:1\n2 1:0.75\n"),
    ]
}

/// A second file that is imported like the first.
fn second_files() -> Vec<Row> {
    let first = "a,b,kind,y\n1,10,red,no\n2,20,green,yes\n3,30,red,no\n";
    let second = |name: &str, other: &str, expected: Expected| {
        let columns = "--label y --label-kind classes --categorical kind";
        let lines = [
            &format!("import rows.csv first.safetensors {columns}"),
            "import other.csv out.safetensors --like first.safetensors",
        ];
        row(format!("a second file {name}"), &lines, expected).file("rows.csv", first).file("other.csv", other)
    };
    vec![
        second(
            "with its columns in another order",
            "y,kind,b,a\nyes,green,40,4\nno,red,50,5\n",
            computed(|found| {
                found.columns(&["a", "b"])?;
                found.values("a", &[4.0, 5.0])?;
                found.values("b", &[40.0, 50.0])?;
                found.labels(&[1.0, 0.0])
            }),
        ),
        second("without one of the columns", "a,kind,y\n4,green,yes\n", refused(&["`b`|b"])),
        second("with a column more", "a,b,c,kind,y\n4,40,400,green,yes\n", either(&["`c`"], |found| found.values("b", &[40.0]))),
        second("with a value that the first does not have", "a,b,kind,y\n4,40,blue,yes\n", refused_or_said(&["blue"], &["kind"])),
        second("with a class that the first does not have", "a,b,kind,y\n4,40,red,maybe\n", refused(&["maybe"])),
        second("with a name in other letters", "A,b,kind,y\n4,40,red,no\n", refused(&["`a`|a"])),
        second("without labels", "a,b,kind\n4,40,red\n", refused(&["`y`|y|label"])),
        second("without a header", "4,40,red,no\n5,50,green,yes\n", refused(&["header|column|`a`"])),
        second(
            "whose classes come in another order",
            "a,b,kind,y\n4,40,red,yes\n5,50,red,no\n",
            computed(|found| {
                found.classes(&["no", "yes"])?;
                found.labels(&[1.0, 0.0])
            }),
        ),
        second("with decimal commas", "a;b;kind;y\n4,5;40;red;yes\n", refused(&["line 2"])),
    ]
}

/// Models, and rows that they predict.
fn models() -> Vec<Row> {
    let predicted = |name: &str, lines: &[&str], expected: Expected| {
        row(name, &[&[TRAIN], lines].concat(), expected).file("rows.csv", cities())
    };
    let (one, other) = ("predict model one.csv --out", "predict model other.csv --out");
    let rows_of = |header: &str, swapped: bool| {
        text(header, 20, |i| {
            let (city, x) = (["Bern", "Basel"][i % 2], format!("{:.3}", part(i, 5)));
            if swapped { format!("{x},7,{city}") } else { format!("{city},{x}") }
        })
    };
    let dated = || {
        text("when,x,y", 400, |i| {
            format!("20{:02}-{:02}-{:02},{:.3},{}", i % 20, i % 12 + 1, i % 28 + 1, part(i, 0), ["no", "yes"][i * 7 % 5 / 3])
        })
    };
    let with_dates = |name: &str, date: &str, expected: Expected| {
        row(format!("predictions for {name}"), &[TRAIN, "predict model new.csv --out out.csv"], expected)
            .file("rows.csv", dated())
            .file("new.csv", format!("when,x\n2024-05-06,0.5\n{date},0.5\n"))
    };
    let formulas = || text("x,y", 200, |i| format!("{:.3},{}", part(i, 0), ["=1+1", "@sum"][i % 2]));
    let header = |expected: &'static str| {
        computed(move |found| {
            let text = std::fs::read_to_string(found.dir.join("out.csv"))?;
            let header = text.lines().next().context("there is no header")?;
            ensure!(header == expected, "the header is {header}, expected {expected}");
            Ok(())
        })
    };
    let stopped = |name: &str, word: &'static str, n_rows: usize| {
        row(name, &["tabular rows.csv --target y --epochs 100000 --patience 100000 --out model"], terminated(&["stopped"]))
            .file("rows.csv", text("x,z,y", n_rows, |i| format!("{:.4},{:.4},{}", part(i, 0), part(i, 1), i * 7 % 5 / 3)))
            .stopped_at(word)
    };
    vec![
        stopped("training on rows that is asked to stop in the first epoch", "parameters:", 200_000),
        stopped("training on rows that is asked to stop later", "epoch 3", 500),
        predicted(
            "predictions for columns in another order, beside one more",
            &["predict model ordered.csv --out one.csv", "predict model other.csv --out out.csv"],
            computed(same_predictions),
        )
        .file("ordered.csv", rows_of("city,x", false))
        .file("other.csv", rows_of("x,more,city", true)),
        predicted(
            "predictions for a table and for the text that it is made from",
            &["predict model ordered.csv --out one.csv", "predict model ordered.csv.gz --out out.csv"],
            computed(same_predictions),
        )
        .file("ordered.csv", rows_of("city,x", false))
        .file("ordered.csv.gz", gzip(&rows_of("city,x", false)).expect("a vector takes any bytes")),
        predicted("predictions for two columns of one name", &["predict model new.csv --out out.csv"], refused(&["`x`"]))
            .file("new.csv", "city,x,x\nBern,0.5,0.75\n"),
        predicted("predictions for no rows", &["predict model new.csv --out out.csv"], refused(&["new.csv"]))
            .file("new.csv", "city,x\n"),
        predicted("predictions for rows without a header", &["predict model new.csv --out out.csv"], refused(&["`city`|header"]))
            .file("new.csv", "Bern,0.5\nBasel,0.25\n"),
        predicted(
            "parameters of another model of the same sizes",
            &["tabular rows.csv --target y --epochs 1 --model mlp --hidden 4 --seed 1 --out second"],
            said(&["second"]),
        )
        .then(|dir| {
            let name = "parameters.safetensors";
            std::fs::copy(dir.join("second").join(name), dir.join("model").join(name))?;
            let error = TabularModel::load(dir.join("model")).map(drop).err().context("the model is loaded")?.to_string();
            ensure!(error.contains(name) || error.contains("model.json"), "the error names no file: {error}");
            Ok(())
        }),
        predicted("predictions in the file of the rows", &[&format!("{one} one.csv")], refused(&["--out", "DATA"]))
            .file("one.csv", rows_of("city,x", false)),
        predicted(
            "predictions in a file of the model",
            &[&format!("{other} model/model.csv")],
            refused_or_said(&["--out", "MODEL"], &["model/model.csv"]),
        )
        .file("other.csv", rows_of("city,x", false)),
        with_dates("dates of another form", "06/05/2024", refused_or_said(&["`when`"], &["`when`"])),
        with_dates("dates as numbers", "45418", refused_or_said(&["`when`"], &["`when`"])),
        with_dates("dates that do not exist", "2024-02-30", refused_or_said(&["`when`"], &["`when`"])),
        with_dates("dates that are missing", "", said(&["rows"])),
        row("dates that do not exist", &[TRAIN], refused_or_said(&["`when`"], &["`when`"])).file(
            "rows.csv",
            text("when,x,y", 400, |i| format!("2024-02-{:02},{:.3},{}", i % 30 + 1, part(i, 0), ["no", "yes"][i * 7 % 5 / 3])),
        ),
        row(
            "names of classes that begin with =",
            &[TRAIN, "predict model new.csv --out out.csv"],
            header("y,probability_=1+1,probability_@sum"),
        )
        .file("rows.csv", formulas())
        .file("new.csv", "x\n0.5\n"),
        row(
            "names of classes that begin with =, for a spreadsheet",
            &[TRAIN, "predict model new.csv --out out.csv --spreadsheet"],
            computed(|found| {
                let text = std::fs::read_to_string(found.dir.join("out.csv"))?;
                let is_formula = text.lines().any(|line| line.starts_with(['=', '+', '-', '@']));
                ensure!(!is_formula, "a spreadsheet runs a formula of {text}");
                Ok(())
            }),
        )
        .file("rows.csv", formulas())
        .file("new.csv", "x\n0.5\n"),
    ]
}
