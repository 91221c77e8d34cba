//! How much a model needs each column.

use brisk_loader::{Rows, split};
use brisk_table::{DateFormat, Dictionary};
use brisk_tabular::{Columns, Decoding, Error, ImportanceOptions, Network, Preprocessing, Scaling, TabularModel, Target};
use brisk_train::Trainer;

use crate::gpu::cpu;
use crate::place::Place;
use crate::run::noise;

/// A number of which `y` is three times, one that says nothing, both with gaps; a colour; a day that says nothing.
fn table(n: usize) -> Result<(Columns, Rows), Error> {
    let dictionary = |name: &str, values: Vec<String>| Dictionary::new(name, values).expect("different values");
    let days: Vec<String> = (1..=28).map(|day| format!("2024-02-{day:02}")).collect();
    let categories = vec![dictionary("colour", vec!["red".into(), "green".into()]), dictionary("day", days)];
    let decoded = vec![("day".to_owned(), Decoding::Date(DateFormat::ISO))];
    let columns = Columns { categories, decoded, ..Columns::numbers(["a", "b"]) };
    let (mut features, mut labels, mut codes) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..n {
        let (a, colour) = (noise(row, 0), 1 + (row * 7 % 2) as u32);
        features.extend([if row % 13 == 0 { f32::NAN } else { a }, if row % 11 == 0 { f32::NAN } else { noise(row, 1) }]);
        labels.push(if row % 13 == 0 { 5.0 } else { 3.0 * a } + colour as f32);
        codes.extend([colour, 1 + (row * 5 % 28) as u32]);
    }
    let rows = Rows::new(features, labels, 2).and_then(|rows| rows.with_categories(codes, 2)).expect("whole rows");
    Ok((columns, rows))
}

#[test]
fn the_importance_of_a_column_is_that_of_all_its_features() -> Result<(), Error> {
    let (columns, rows) = table(3000)?;
    let [train, valid] = split(&rows, 3, [0.7, 0.3]).expect("fractions");
    let preprocessing = Preprocessing::fit(&columns, &train, Scaling::Standard)?;
    let target = Target::numbers("y", "train", &train)?;
    let mut model = TabularModel::new(5, preprocessing, target, Network::Mlp { hidden: vec![32] });
    let [train, valid] = [model.rows(&columns, &train)?.to_rows("train")?, model.rows(&columns, &valid)?.to_rows("valid")?];
    let task = model.task();
    Trainer::new(&cpu(2)).batch_rows(32).max_epochs(25).learning_rate(5e-3).fit(model.model_mut(), &*task, &train, &valid)?;

    let options = ImportanceOptions { seed: 4, ..ImportanceOptions::default() };
    let importance = model.measure_importance(&cpu(2), &valid, &options)?.expect("few columns").clone();
    assert_eq!((importance.score.as_str(), importance.n_rows, importance.n_repeats), ("rmse", 900, 5));
    let base = model.evaluate(&valid)?.get("rmse").expect("a number");
    assert!((importance.base - base).abs() < 1e-3 * base, "{importance:?}, {base}");
    let names: Vec<&str> = importance.columns.iter().map(|column| column.column.as_str()).collect();
    assert_eq!((names.len(), &names[..2]), (4, &["a", "colour"][..]), "{importance:?}");
    // Permuting doubles the variance that a column explains: here nearly all of it, in the unit of the target.
    let variance = |labels: &[f32]| {
        let mean = labels.iter().sum::<f32>() / labels.len() as f32;
        labels.iter().map(|label| (label - mean).powi(2)).sum::<f32>() / labels.len() as f32
    };
    let of_a: Vec<f32> = (0..3000).map(|row| if row % 13 == 0 { 5.0 } else { 3.0 * noise(row, 0) }).collect();
    let expected = f64::from((2.0 * variance(&of_a)).sqrt()) - base;
    let [a, colour, others @ ..] = &importance.columns[..] else { panic!("four columns") };
    assert!((a.mean - expected).abs() < 0.1 * expected && a.deviation < 0.1 * expected, "{a:?}, expected {expected}");
    assert!(colour.mean > 0.3, "{colour:?}");
    assert!(others.iter().all(|column| column.mean.abs() < 0.05), "{others:?}");

    // The same seed gives the same numbers, and the folder keeps them.
    assert_eq!(model.measure_importance(&cpu(1), &valid, &options)?.expect("few columns").columns[0].column, "a");
    let folder = tempfile::tempdir().expect("a temporary folder");
    model.save(folder.path())?;
    assert_eq!(TabularModel::load(folder.path())?.importance(), model.importance());
    let few = ImportanceOptions { max_predictions: 100, ..options };
    assert_eq!(model.measure_importance(&cpu(1), &valid, &few)?, None, "25 rows for each of four columns");
    Ok(())
}

#[test]
fn the_program_shows_what_is_important_and_what_is_a_leak() {
    let place = Place::new();
    let row = |row: usize| {
        let paid = 50.0 * noise(row, 0);
        format!("{},{paid},{},{}\n", noise(row, 1), noise(row, 2), 1.1 * paid.abs() + 0.1 * noise(row, 3))
    };
    place.write("rows.csv", "size,paid,age,price\n".to_owned() + &(0..600).map(row).collect::<String>());
    let fast = ["--model", "mlp", "--epochs", "40", "--hidden", "16", "--lr", "0.01", "--out", "model", "--json", "out.json"];
    let (output, stderr) = place.run("tabular", &[&["rows.csv"][..], &fast].concat());
    assert!(output.status.success(), "{stderr}");
    assert!(
        stderr.contains("column `paid` decides the predictions by itself") && stderr.contains("`--drop paid` leaves it out"),
        "{stderr}"
    );
    let results = place.json("out.json");
    let importance = &results["importance"];
    assert_eq!((&importance["score"], &importance["columns"][0]["column"]), (&"rmse".into(), &"paid".into()), "{results}");
    assert_eq!(importance["columns"].as_array().map(Vec::len), Some(3));
    assert!(results["warnings"].to_string().contains("`paid`"), "{results}");
    let shown = String::from_utf8(output.stdout).expect("results are UTF-8");
    assert!(shown.contains("rmse if permuted\npaid  "), "{shown}");
    assert_eq!(place.json("model/model.json")["importance"], *importance);
    let (_, stderr) = place.run("tabular", &[&["rows.csv", "--drop", "paid"][..], &fast].concat());
    assert!(!stderr.contains("decides the predictions"), "{stderr}");
}
