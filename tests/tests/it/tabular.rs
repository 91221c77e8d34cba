//! Models of tables: preprocessing, targets and model folders.

use std::fs;

use brisk_loader::{RowBuffers, RowSelection, RowSource, Rows, row_source_conformance, split};
use brisk_table::{DateFormat, Dictionary};
use brisk_tabular::{
    Columns, DatePart, Decoding, DetectOptions, Error, Network, Preprocessing, Reading, Scaling, TabularModel, Target, TargetKind,
};
use brisk_train::Trainer;

use crate::gpu::cpu;
use crate::run::noise;

const COLOURS: [&str; 3] = ["red", "green", "blue"];

fn dictionary(name: &str, values: &[&str]) -> Dictionary {
    Dictionary::new(name, values.iter().copied()).expect("different values")
}

/// Two numbers, of which the second is sometimes missing, and a colour.
fn columns() -> Columns {
    Columns { categories: vec![dictionary("colour", &COLOURS)], ..Columns::numbers(["size", "weight"]) }
}

/// Rows whose label is a function of all columns.
fn rows(n: usize, label: impl Fn(f32, f32, u32) -> f32) -> Rows {
    let (mut features, mut labels, mut codes) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..n {
        let (size, weight) = (100.0 + 20.0 * noise(row, 0), noise(row, 1));
        let code = 1 + (row * 7 % 3) as u32;
        let is_missing = row % 11 == 0;
        features.extend([size, if is_missing { f32::NAN } else { weight }]);
        labels.push(label(size, if is_missing { 0.0 } else { weight }, code));
        codes.push(code);
    }
    Rows::new(features, labels, 2).and_then(|rows| rows.with_categories(codes, 1)).expect("a label and a code for each row")
}

fn class(size: f32, weight: f32, code: u32) -> f32 {
    f32::from((size - 100.0) / 20.0 + weight + code as f32 > 2.0)
}

#[test]
fn preprocessed_rows_are_a_source() -> Result<(), Error> {
    let rows = rows(300, class);
    for scaling in [Scaling::Standard, Scaling::Quantile] {
        let preprocessing = Preprocessing::fit(&columns(), &rows, scaling)?;
        let over = preprocessing.over(&columns(), &rows)?;
        row_source_conformance(&over);
        assert_eq!(preprocessing.feature_names(), ["size", "weight", "weight_missing"]);
        let collected = over.to_rows("train")?;
        let column = |col: usize| collected.features().iter().skip(col).step_by(3).copied().collect::<Vec<f32>>();
        for col in [0, 1] {
            let mean = column(col).iter().sum::<f32>() / 300.0;
            assert!(mean.abs() < 0.05, "{scaling:?}, column {col}: {mean}");
        }
        let missing: Vec<usize> = (0..300).filter(|&row| column(2)[row] == 1.0).collect();
        assert_eq!(missing, (0..300).step_by(11).collect::<Vec<_>>());
        assert_eq!(collected.categories(), rows.categories());
    }
    Ok(())
}

#[test]
fn columns_are_found_by_name_and_values_by_their_text() -> Result<(), Error> {
    let train = rows(100, class);
    let preprocessing = Preprocessing::fit(&columns(), &train, Scaling::Standard)?;
    // Columns in a different order, one more column, a dictionary in a different order with an unknown value.
    let others = Columns {
        categories: vec![dictionary("shape", &["round"]), dictionary("colour", &["blue", "pink", "red"])],
        ..Columns::numbers(["weight", "price", "size"])
    };
    let row =
        Rows::new(vec![0.5, 9.0, 100.0], vec![0.0], 3).and_then(|rows| rows.with_categories(vec![1, 2], 2)).expect("one row");
    let over = preprocessing.over(&others, &row)?;
    let (mut x, mut y, mut code) = ([0.0; 3], [0.0], [9]);
    over.gather(RowSelection::Numbers(&[0]), RowBuffers::new(&mut x, &mut y)).expect("row 0");
    over.gather(RowSelection::Numbers(&[0]), RowBuffers { categories: Some(&mut code), ..RowBuffers::default() }).expect("row 0");
    let same = Rows::new(vec![100.0, 0.5], vec![0.0], 2).and_then(|rows| rows.with_categories(vec![3], 1)).expect("one row");
    let expected = preprocessing.over(&columns(), &same)?.to_rows("same")?;
    assert_eq!((&x[..], code), (expected.features(), [0]), "`pink` is unknown");

    let error = preprocessing.over(&Columns::numbers(["weight", "a"]), &rows_of(2)).expect_err("columns are missing");
    let Error::MissingColumns { names, found, .. } = &error else { panic!("{error}") };
    assert_eq!(
        (&names[..], &found[..]),
        (&["size".to_owned(), "colour".to_owned()][..], &["weight".to_owned(), "a".to_owned()][..])
    );
    let error = preprocessing.over(&Columns::numbers(["weight", "size", "colour"]), &rows_of(3)).expect_err("colours are text");
    assert!(error.to_string().contains("column `colour` has numbers, the model was trained with text"), "{error}");
    let error = preprocessing.over(&Columns::numbers(["weight"]), &rows_of(3)).expect_err("one name for three columns");
    assert!(error.to_string().contains("1 columns of numbers are named, the rows have 3"), "{error}");
    Ok(())
}

fn rows_of(n_cols: usize) -> Rows {
    Rows::new(vec![1.0; n_cols], vec![0.0], n_cols).expect("one row")
}

#[test]
fn columns_that_cannot_be_used_are_named() {
    let fit = |columns: &Columns, rows: &Rows| Preprocessing::fit(columns, rows, Scaling::Quantile).expect_err("it is of no use");
    let rows = |features: Vec<f32>, n_cols: usize| {
        let labels = vec![0.0; features.len() / n_cols];
        Rows::new(features, labels, n_cols).expect("a label for each row")
    };
    let error = fit(&Columns::numbers(["a", "b"]), &rows(vec![1.0, f32::NAN, 2.0, f32::NAN], 2));
    assert_eq!(error.to_string(), "column `b` has no value in any of 2 training rows; drop it");
    let error = fit(&Columns::numbers(["a"]), &rows(vec![1.0, f32::INFINITY], 1));
    assert!(matches!(error, Error::Infinite { row: 1, .. }), "{error}");
    let n = 20_000;
    let names: Vec<String> = (0..n).map(|i| format!("person {i}")).collect();
    let people =
        Columns { categories: vec![Dictionary::new("name", names).expect("different names")], ..Columns::numbers(["a"]) };
    let error =
        fit(&people, &rows(vec![1.0; n], 1).with_categories((1..=n as u32).collect::<Vec<_>>(), 1).expect("a code a row"));
    assert!(error.to_string().contains("column `name` has 20000 different values in 20000 training rows"), "{error}");
}

#[test]
fn targets_are_told_apart_by_their_labels() -> Result<(), Error> {
    let labelled = |labels: &[f32]| Rows::new(vec![0.0; labels.len()], labels.to_vec(), 1).expect("a feature for each label");
    let detect = |labels: &[f32], names: &[&str], kind| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        Target::detect("y", &names, kind, &labelled(labels))
    };
    assert_eq!(detect(&[0.0, 1.0, 1.0], &[], None)?.kind(), TargetKind::Binary);
    let binary = detect(&[2.5, 1.5, 1.5], &[], None)?;
    assert_eq!(
        (binary.kind(), binary.classes(), binary.label(2.5)),
        (TargetKind::Binary, &["1.5".to_owned(), "2.5".to_owned()][..], 1.0)
    );
    assert_eq!(detect(&[3.0, 5.0, 9.0].repeat(5), &[], None)?.label(9.0), 2.0);
    assert_eq!(detect(&[3.0, 5.0, 9.0].repeat(4), &[], None)?.kind(), TargetKind::Number, "fewer than five rows of each");
    assert_eq!(detect(&[0.0, 1.0, 2.0], &["a", "b", "c"], None)?.classes(), ["a", "b", "c"]);
    assert_eq!(detect(&[0.5, 1.0, 2.0], &[], None)?.kind(), TargetKind::Number);
    assert_eq!(detect(&(0..30).map(|i| i as f32).collect::<Vec<_>>(), &[], None)?.kind(), TargetKind::Number);
    assert_eq!(detect(&[0.0, 1.0, 1.0], &[], Some(TargetKind::Number))?.kind(), TargetKind::Number);

    let message = |result: Result<Target, Error>| result.expect_err("it is wrong").to_string();
    assert!(message(detect(&[1.0, 1.0], &[], None)).contains("2 rows all have the label 1"), "one class");
    assert!(message(detect(&[1.0, f32::NAN], &[], None)).contains("row 1"), "NaN");
    assert!(message(detect(&[1.0, 2.0, 3.0], &[], Some(TargetKind::Binary))).contains("3 different labels"), "three labels");
    assert!(message(detect(&[0.0, 1.0], &["a", "b"], Some(TargetKind::Number))).contains("classes with names"), "names");

    let prices = labelled(&[100.0, 300.0]);
    let target = Target::numbers("price", "train", &prices)?;
    assert_eq!([100.0, 200.0, 300.0].map(|price| target.label(price)), [-1.0, 0.0, 1.0]);
    Ok(())
}

/// Trains a model of the classes.
fn trained(network: Network) -> Result<TabularModel, Error> {
    let rows = rows(2000, class);
    let [train, valid] = split(&rows, 3, [0.8, 0.2]).expect("fractions");
    let preprocessing = Preprocessing::fit(&columns(), &train, Scaling::Standard)?;
    let target = Target::detect("y", &[], None, &rows)?.fitted_to("train", &train)?;
    let mut model = TabularModel::new(5, preprocessing, target, network);
    let [train, valid] = [model.rows(&columns(), &train)?, model.rows(&columns(), &valid)?];
    let task = model.task();
    Trainer::new(&cpu(2)).batch_rows(32).max_epochs(8).learning_rate(5e-3).fit(model.model_mut(), &*task, &train, &valid)?;
    let (scores, trivial) = (model.evaluate(&valid)?, model.evaluate_constant(&train, &valid)?);
    assert!(scores.get("accuracy").is_some_and(|accuracy| accuracy > 0.95), "{scores}");
    assert_eq!(trivial.get("auc"), Some(0.5), "a constant tells nothing apart");
    model.set_scores(scores.values);
    Ok(model)
}

#[test]
fn a_model_folder_predicts_as_the_model_did() -> Result<(), Error> {
    let networks = [Network::Mlp { hidden: vec![32] }, Network::ResidualMlp { width: 16, hidden: 32, n_blocks: 2 }];
    for network in networks {
        let (folder, model) = (tempfile::tempdir().expect("a temporary folder"), trained(network)?);
        let path = folder.path().join("new/model");
        model.save(&path)?;
        let loaded = TabularModel::load(&path)?;
        assert_eq!(
            (loaded.preprocessing(), loaded.target(), loaded.network()),
            (model.preprocessing(), model.target(), model.network())
        );
        assert_eq!(loaded.scores(), model.scores());
        let rows = rows(500, class);
        let [found, expected] =
            [&loaded, &model].map(|model| model.predictor(&cpu(1)).and_then(|model| model.predict(&columns(), &rows)));
        let (found, expected) = (found?, expected?);
        assert_eq!(found, expected);
        let right = (0..500).filter(|&row| found.numbers()[row] == f64::from(rows.labels()[row])).count();
        assert!(right > 475, "{right} of 500");
        assert_eq!(found.class(0), Some(if found.numbers()[0] > 0.5 { "1" } else { "0" }));
        assert!(found.probabilities().chunks_exact(2).all(|p| (p[0] + p[1] - 1.0).abs() < 1e-6), "probabilities add up to 1");
    }
    Ok(())
}

/// Rows are read as the model needs them, and what cannot be read is named by file and line.
#[test]
fn a_value_that_cannot_be_read_is_named_by_file_and_line() -> Result<(), Error> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("it can be written");
        path
    };
    let days: String = (1..=28).map(|day| format!("2024-01-{day:02},{day},{}\n", 3 * day)).collect();
    let train = file("train.csv", &format!("sold,rooms,price\n{days}"));
    let detected = TabularModel::detect(train, &DetectOptions::default())?;
    let preprocessing = Preprocessing::fit(&detected.columns, &detected.table, Scaling::Standard)?;
    let target = detected.target.fitted_to("train", &detected.table)?;
    let model = TabularModel::new(1, preprocessing, target, Network::Mlp { hidden: vec![4] });

    let new = file("new.csv", "rooms,sold\n1,2024-02-01\n\n2,\"2024-02-02\"\n3,soon\n4,soon\n");
    let error = model.read_rows(&new).expect_err("`soon` is not a date");
    let Error::Value(wrong) = &error else { panic!("{error}") };
    assert_eq!((wrong.path.as_deref(), wrong.line, wrong.row), (Some(new.as_path()), Some(5), Some(2)), "{error}");
    assert_eq!((wrong.column.as_str(), wrong.found.as_str()), ("sold", "soon"));
    assert!(error.to_string().contains("new.csv: line 5, column `sold`"), "{error}");
    let error = model.read_rows(file("other.csv", "rooms,sold\n1,2024-02-01\nx,2024-02-01\n")).expect_err("`x` is no number");
    assert!(error.to_string().contains("other.csv") && error.to_string().contains("line 3"), "{error}");
    Ok(())
}

#[test]
fn folders_that_are_no_model_are_refused() -> Result<(), Error> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let load = || TabularModel::load(folder.path()).expect_err("it is no model").to_string();
    assert!(load().contains("model.json: not found; the folder of a model has"), "{}", load());
    let model = trained(Network::Mlp { hidden: vec![8] })?;
    model.save(folder.path())?;
    let (description, parameters) = (folder.path().join("model.json"), folder.path().join("parameters.safetensors"));
    let text = fs::read_to_string(&description).expect("it was written");

    let replace = |from: &str, to: &str| {
        assert!(text.contains(from), "{text}");
        fs::write(&description, text.replacen(from, to, 1)).expect("it can be written");
        load()
    };
    let error = replace("\"format\": 8", "\"format\": 7");
    assert!(error.contains("the model has format 7, this version of brisk reads format 8"), "{error}");
    let error = replace("\"kind\": \"mlp\"", "\"kind\": \"cnn\"");
    assert!(
        error.contains("`network") && error.contains("unknown variant `cnn`, expected one of `mlp`, `resnet`, `tabm`"),
        "{error}"
    );
    let error = replace("\"scaling\"", "\"scalings\"");
    assert!(error.contains("`preprocessing") && error.contains("unknown field `scalings`"), "{error}");
    assert!(replace("{", "[").contains("is not JSON"));
    fs::write(&description, &text).expect("it can be written");

    let other = tempfile::tempdir().expect("a temporary folder");
    trained(Network::Mlp { hidden: vec![9] })?.save(other.path())?;
    fs::copy(other.path().join("parameters.safetensors"), &parameters).expect("it can be copied");
    assert!(load().contains("the two files are of different models"), "{}", load());
    fs::remove_file(&parameters).expect("it is there");
    assert!(load().contains("parameters.safetensors: not found"), "{}", load());
    Ok(())
}

#[test]
fn values_that_no_model_has_are_refused_by_name() -> Result<(), Error> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let model = trained(Network::Mlp { hidden: vec![8] })?;
    model.save(folder.path())?;
    let path = folder.path().join("model.json");
    let text = fs::read_to_string(&path).expect("it was written");
    let saved: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let check = |pointer: &str, value: serde_json::Value, words: &[&str]| {
        let mut changed = saved.clone();
        *changed.pointer_mut(pointer).expect("it is there") = value;
        fs::write(&path, format!("{changed:#}\n")).expect("it can be written");
        let error = TabularModel::load(folder.path()).expect_err("it is wrong").to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{pointer}: {error}");
    };
    for std in [0.0, -1.0, 1e39] {
        check("/preprocessing/numbers/0/scale/std", std.into(), &["model.json", "preprocessing.numbers[0].scale.std"]);
    }
    check("/preprocessing/numbers/0/range", vec![3.0, 1.0].into(), &["preprocessing.numbers[0].range", "ascending"]);
    check("/preprocessing/numbers/0/column", "weight".into(), &["column `weight` twice"]);
    check("/preprocessing/categories/0/name", "weight".into(), &["column `weight` twice"]);
    check("/preprocessing/categories/0/values/0", "blue".into(), &["\"blue\" twice"]);
    check("/target/classes/0", "1".into(), &["target.classes", "\"1\" twice"]);
    check("/target/labels/0", 7.into(), &["target.labels"]);
    check("/network/hidden", vec![1_048_576; 50].into(), &["`network` has at least", "bytes of parameters"]);
    let blocks = serde_json::json!({ "kind": "resnet", "width": 64, "hidden": 64, "blocks": 1 << 20 });
    check("/network", blocks, &["`network` has at least", "bytes of parameters"]);
    // Any other change, for example of a mean.
    check("/preprocessing/numbers/0/mean", 3.into(), &["model.json", "checksum"]);
    fs::write(&path, &text).expect("it can be written");
    TabularModel::load(folder.path()).map(drop)
}

#[test]
fn any_flipped_bit_of_a_model_folder_is_an_error() -> Result<(), Error> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    trained(Network::Mlp { hidden: vec![4] })?.save(folder.path())?;
    for name in ["model.json", "parameters.safetensors"] {
        let path = folder.path().join(name);
        let mut bytes = fs::read(&path).expect("it was written");
        for i in 0..250 {
            let bit = (noise(i, 3).abs().fract() * 1e6) as usize % (8 * bytes.len());
            bytes[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &bytes).expect("it can be written");
            assert!(TabularModel::load(folder.path()).is_err(), "{name}, bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        fs::write(&path, &bytes).expect("it can be written");
    }
    TabularModel::load(folder.path()).map(drop)
}

#[test]
fn text_is_compared_after_normalization_and_unseen_values_are_counted() -> Result<(), Error> {
    let columns = |values: &[&str]| Columns { categories: vec![dictionary("city", values)], ..Columns::numbers(["size"]) };
    let rows = |codes: Vec<u32>| {
        Rows::new(vec![1.0; codes.len()], vec![0.0; codes.len()], 1)
            .and_then(|rows| rows.with_categories(codes, 1))
            .expect("rows")
    };
    // Composed, and decomposed as on a Mac.
    let preprocessing =
        Preprocessing::fit(&columns(&["Z\u{fc}rich", "Zu\u{308}rich", "Bern"]), &rows(vec![1, 2, 3]), Scaling::Standard)?;
    assert_eq!(preprocessing.categories()[0].values(), ["Z\u{fc}rich", "Bern"]);
    let others = columns(&["Zu\u{308}rich", "Atlantis", "Utopia"]);
    let over = preprocessing.over(&others, rows(vec![1, 2, 3, 2, 0]))?;
    let mut codes = [9; 5];
    over.gather(RowSelection::Numbers(&[0, 1, 2, 3, 4]), RowBuffers { categories: Some(&mut codes), ..RowBuffers::default() })
        .expect("five rows");
    assert_eq!(codes, [1, 0, 0, 0, 0]);
    let unseen = &over.unseen_values()?[0];
    assert_eq!(
        (&unseen.column[..], unseen.n_rows, unseen.n_values, unseen.n_present, unseen.are_all()),
        ("city", 3, 2, 4, false)
    );
    let over = preprocessing.over(&others, rows(vec![2, 3]))?;
    assert!(over.unseen_values()?[0].are_all(), "all values are unseen");
    Ok(())
}

#[test]
fn dates_are_decoded_and_wrong_ones_refused() -> Result<(), Error> {
    let days = dictionary("day", &["2024-02-28", "2024-03-01T12:00"]);
    let columns = Columns {
        categories: vec![days],
        decoded: vec![("day".to_owned(), Decoding::Date(DateFormat::ISO))],
        ..Columns::default()
    };
    let rows = |codes: Vec<u32>| {
        let n = codes.len();
        Rows::new(Vec::<f32>::new(), vec![0.0; n], 0).and_then(|rows| rows.with_categories(codes, 1)).expect("rows")
    };
    let preprocessing = Preprocessing::fit(&columns, &rows(vec![1, 2]), Scaling::Standard)?;
    assert_eq!(preprocessing.feature_names(), ["day_year", "day_month", "day_weekday", "day_hour", "day_days"]);
    let raw = preprocessing.numbers().iter().map(|column| (column.mean, column.reading)).collect::<Vec<_>>();
    let part = |part| Reading::Date { part, format: DateFormat::ISO };
    assert_eq!(raw[1], (2.5, part(DatePart::Month)));
    assert_eq!(raw[4], (1.25, part(DatePart::Days(19_781))));
    let wrong = Columns { categories: vec![dictionary("day", &["2024-02-28", "soon"])], ..columns };
    let error = preprocessing.over(&wrong, rows(vec![1, 1, 2])).expect_err("`soon` is no date").to_string();
    assert!(error.contains("row 2, column `day`: found \"soon\""), "{error}");
    Ok(())
}
