//! Numbers of tables that are easily computed wrongly: large, tiny, far from the others, or far from those of training.

use std::path::PathBuf;
use std::{fs, iter};

use brisk_loader::split;
use brisk_table::ImportWarning;
use brisk_tabular::{
    Columns, DetectOptions, Detected, Error, FarValues, Network, Preprocessing, Scaling, Splitting, TabularModel, TabularWarning,
    TargetKind, TextOptions, ThresholdMetric,
};
use brisk_train::Trainer;
use tempfile::TempDir;

use crate::gpu::cpu;
use crate::run::noise;

/// A folder for files.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    fn write(&self, name: &str, header: &str, n: usize, line: impl Fn(usize) -> String) -> PathBuf {
        let path = self.0.path().join(name);
        let lines: String = (0..n).map(|row| line(row) + "\n").collect();
        fs::write(&path, format!("{header}\n{lines}")).expect("it can be written");
        path
    }

    fn detect(&self, header: &str, n: usize, line: impl Fn(usize) -> String) -> Result<Detected, Error> {
        TabularModel::detect(self.write("rows.csv", header, n, line), &DetectOptions::default())
    }
}

/// A number from 0 to 1.
fn part(row: usize, col: usize) -> f32 {
    (noise(row, col) * 7919.0).rem_euclid(1.0)
}

/// A model of all rows, which is trained for some epochs.
fn model(detected: Detected, n_epochs: usize) -> Result<TabularModel, Error> {
    let Detected { table, columns, target, .. } = detected;
    let [train, valid] = split(&table, 3, [0.8, 0.2]).expect("fractions");
    let preprocessing = Preprocessing::fit(&columns, &train, Scaling::Standard)?;
    let mut model = TabularModel::new(5, preprocessing, target.fitted_to("train", &train)?, Network::Mlp { hidden: vec![32] });
    let [train, valid] = [model.rows(&columns, &train)?, model.rows(&columns, &valid)?];
    let task = model.task();
    Trainer::new(&cpu(2)).batch_rows(32).max_epochs(n_epochs).learning_rate(5e-3).fit(
        model.model_mut(),
        &*task,
        &train,
        &valid,
    )?;
    Ok(model)
}

/// The only warning.
#[track_caller]
fn only(warnings: &[TabularWarning]) -> &TabularWarning {
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    &warnings[0]
}

#[test]
fn a_large_target_keeps_its_digits() -> Result<(), Error> {
    let place = Place::new();
    let numbers = |row: usize| [part(row, 0), part(row, 1)].map(f64::from);
    for base in [1e6, 1e7, 1.7e9] {
        let target = |row: usize| {
            let [x, z] = numbers(row);
            base + ((0.6 * x + 0.4 * z) * 1e4).round() / 1e4
        };
        let detected = place.detect("x,z,y", 600, |row| {
            let [x, z] = numbers(row);
            format!("{x:.4},{z:.4},{:.4}", target(row))
        })?;
        assert_eq!((detected.target.kind(), &detected.warnings[..]), (TargetKind::Number, &[][..]), "{base}");
        assert!((detected.target.offset() - base).abs() <= 1.0, "{}", detected.target.offset());
        let model = model(detected, 20)?;
        let folder = place.0.path().join("model");
        model.save(&folder)?;
        let model = TabularModel::load(&folder)?;
        let rows = model.read_rows(place.0.path().join("rows.csv"))?;
        let predictions = model.predictor(&cpu(1))?.predict(&rows.columns, &rows.table)?;
        let error = (0..600).map(|row| (predictions.numbers()[row] - target(row)).abs()).sum::<f64>() / 600.0;
        assert!(error < 0.05, "{base}: {error}");
    }
    Ok(())
}

#[test]
fn a_target_of_classes_but_for_a_few_cells_is_refused_with_their_lines() -> Result<(), Error> {
    let place = Place::new();
    let detect = |n: usize, odd: &'static str| {
        place.detect("x,y", n, move |row| format!("{},{}", part(row, 0), if row == 800 { odd } else { ["0", "1"][row % 2] }))
    };
    let error = detect(1000, "0.5").expect_err("it is neither a number nor a class");
    let Error::FewLabels(few) = &error else { panic!("{error}") };
    assert_eq!((few.target.as_str(), &few.labels[..], few.n_rows), ("y", &[0.0, 1.0][..], 999));
    assert_eq!((few.counted, few.cells[0].line, few.cells[0].text.as_str()), ("line", 802, "0.5"));
    let options = DetectOptions { task: Some(TargetKind::Number), ..DetectOptions::default() };
    assert_eq!(TabularModel::detect(place.0.path().join("rows.csv"), &options)?.target.kind(), TargetKind::Number);
    // A whole number is a class, but a rare one.
    let rare = TabularWarning::RareClass { column: "y".into(), class: "2".into(), n_rows: 1, n_all: 2000 };
    assert_eq!(only(&detect(2000, "2")?.warnings), &rare);
    assert_eq!(detect(1000, "1")?.warnings, []);
    // Many different fractions are numbers.
    let numbers =
        place.detect("x,y", 1000, |row| format!("{},{}", part(row, 0), if row % 3 == 0 { part(row, 1) } else { 0.0 }))?;
    assert_eq!(numbers.target.kind(), TargetKind::Number);
    Ok(())
}

#[test]
fn columns_and_classes_that_say_little_are_told() -> Result<(), Error> {
    let place = Place::new();
    for value in ["7", "same"] {
        let detected = place.detect("x,c,y", 60, |row| format!("{},{value},{}", part(row, 0), part(row, 1)))?;
        assert_eq!(only(&detected.warnings), &TabularWarning::Import(ImportWarning::SameValue { columns: vec!["c".into()] }));
    }
    // Missing values tell rows apart.
    let detected = place.detect("x,c,y", 60, |row| format!("{},{},{}", part(row, 0), ["7", ""][row % 2], part(row, 1)))?;
    assert_eq!(detected.warnings, []);

    let classes = |n_rare: usize| move |row: usize| if row < n_rare { "c" } else { ["a", "b"][row % 2] };
    for (n_rare, is_told) in [(1, true), (2, true), (3, false)] {
        let class = classes(n_rare);
        let detected = place.detect("x,y", 100, |row| format!("{},{}", part(row, 0), class(row)))?;
        let rare = TabularWarning::RareClass { column: "y".into(), class: "c".into(), n_rows: n_rare as u64, n_all: 100 };
        assert_eq!(detected.warnings, if is_told { vec![rare] } else { Vec::new() }, "{n_rare}");
    }
    Ok(())
}

#[test]
fn rows_without_a_target_are_left_out() -> Result<(), Error> {
    let place = Place::new();
    let write = |kind: fn(usize) -> String| {
        let label = move |row: usize| if row % 10 == 3 { String::new() } else { kind(row) };
        place.write("rows.csv", "x,who,day,y", 100, |row| format!("{},p{},{row},{}", part(row, 0), row / 5, label(row)))
    };
    let unlabelled = TabularWarning::Unlabelled { column: "y".into(), n_rows: 10, n_all: 100 };
    let options = DetectOptions { target: Some("y".into()), drop: vec!["who".into(), "day".into()], ..DetectOptions::default() };
    let kinds: [fn(usize) -> String; 2] = [|row| part(row, 1).to_string(), |row| ["lo", "hi"][row % 2].to_owned()];
    for kind in kinds {
        let detected = TabularModel::detect(write(kind), &options)?;
        assert_eq!((only(&detected.warnings), detected.table.n_rows()), (&unlabelled, 90));
        // What rows are split by is that of the rows which are left.
        let by_group = DetectOptions { drop: vec!["day".into()], group: Some("who".into()), ..options.clone() };
        let detected = TabularModel::detect(write(kind), &by_group)?;
        let Splitting::Groups { groups, .. } = &detected.splitting else { panic!("{:?}", detected.splitting) };
        let of_first: Vec<bool> = groups.iter().map(|group| *group == groups[0]).collect();
        assert_eq!((groups.len(), of_first[..4].to_vec(), of_first[4]), (90, vec![true; 4], false));
    }
    Ok(())
}

#[test]
fn outliers_and_marks_of_missing_values_are_told() -> Result<(), Error> {
    let place = Place::new();
    let x = |row: usize| if row == 7 { "1e30".to_owned() } else { part(row, 0).to_string() };
    let detected = place.detect("x,y", 600, |row| format!("{},{}", x(row), part(row, 1)))?;
    let TabularWarning::Outlier { column, value, n_rows: 1, first: 9, counted: "line", others } = only(&detected.warnings) else {
        panic!("{:?}", detected.warnings)
    };
    assert_eq!((column.as_str(), value.as_str()), ("x", "1e30"));
    assert!(others[0] >= 0.0 && others[1] <= 1.0, "{others:?}");

    for mark in ["-9999", "999999", "-99.0"] {
        let marked = |row: usize, col: usize| if row % 10 == 4 { mark.to_owned() } else { part(row, col).to_string() };
        let target = place.detect("x,y", 600, |row| format!("{},{}", part(row, 0), marked(row, 1)))?;
        let TabularWarning::Outlier { column, n_rows: 60, first: 6, .. } = only(&target.warnings) else {
            panic!("{mark}: {:?}", target.warnings)
        };
        assert_eq!(column, "y");
        let text = TextOptions { missing_values: vec![mark.to_owned()], ..TextOptions::default() };
        let options = DetectOptions { target: Some("y".into()), text, ..DetectOptions::default() };
        let without = TabularModel::detect(place.0.path().join("rows.csv"), &options)?;
        assert_eq!(only(&without.warnings), &TabularWarning::Unlabelled { column: "y".into(), n_rows: 60, n_all: 600 });
        let path = place.write("rows.csv", "x,y", 600, |row| format!("{},{}", marked(row, 0), part(row, 1)));
        let TabularWarning::Outlier { n_rows: 60, .. } = only(&TabularModel::detect(&path, &DetectOptions::default())?.warnings)
        else {
            panic!("{mark} in a feature")
        };
        assert_eq!(TabularModel::detect(&path, &options)?.warnings, [], "{mark} is missing");
    }
    Ok(())
}

#[test]
fn tiny_numbers_are_no_constant() -> Result<(), Error> {
    let place = Place::new();
    let exponents = |exponent: i32| place.detect("x,y", 300, move |row| format!("{}e{exponent},{}", part(row, 0), row % 2));
    let detected = exponents(-39)?;
    let preprocessing = Preprocessing::fit(&detected.columns, &detected.table, Scaling::Standard)?;
    let rows = preprocessing.over(&detected.columns, &detected.table)?.to_rows("train")?;
    let deviation = (rows.features().iter().map(|x| x * x).sum::<f32>() / 300.0).sqrt();
    assert!((deviation - 1.0).abs() < 0.01, "{deviation}");
    for exponent in [-39, -50] {
        let warnings = exponents(exponent)?.warnings;
        assert!(
            matches!(only(&warnings), TabularWarning::Import(ImportWarning::Tiny { column, .. }) if column == "x"),
            "{warnings:?}"
        );
    }
    assert_eq!(exponents(-30)?.warnings, []);
    Ok(())
}

#[test]
fn values_far_from_those_of_training_are_told() -> Result<(), Error> {
    let place = Place::new();
    let line = |row: usize| {
        let (seconds, day) = (1_700_000_000 + row * 37 % 9000, row % 28 + 1);
        format!("{seconds},20{:02}-{:02}-{day:02},{},5,{}", row % 25, row % 12 + 1, part(row, 0), part(row, 1))
    };
    let model = model(place.detect("t,when,x,same,y", 400, line)?, 1)?;
    let far = |name: &str, row: &str| -> Result<Vec<FarValues>, Error> {
        // Without the target.
        let (ordinary, _) = line(3).rsplit_once(',').map(|(cells, y)| (cells.to_owned(), y.to_owned())).expect("several cells");
        let path = place.write(name, "t,when,x,same", 2, |at| if at == 1 { row.to_owned() } else { ordinary.clone() });
        Ok(model.read_rows(path)?.unfamiliar.far)
    };
    assert_eq!(far("same.csv", "1700009500,2025-01-01,1.5,5")?, []);
    for (row, column, example) in [
        ("1700000000000,2024-01-01,0.5,5", "t", 1.7e12),
        ("1700000000,2024-01-01,5e20,5", "x", f64::from(5e20_f32)),
        ("1700000000,2024-01-01,0.5,6", "same", 6.0),
        ("1700000000,2124-01-01,0.5,5", "when_year", 2124.0),
    ] {
        let found = far("new.csv", row)?;
        let FarValues { n_rows, n_present, row, .. } = &found[0];
        assert_eq!((found[0].column.as_str(), n_rows, n_present, row), (column, &1, &2, &1), "{found:?}");
        assert!((found[0].example / example - 1.0).abs() < 1e-6, "{found:?}");
        assert!(found.len() == 1 || column == "when_year", "{found:?}");
    }
    let trained = far("new.csv", "1700000000,2124-01-01,0.5,5")?.remove(0).trained;
    assert_eq!(trained, [2000.0, 2024.0]);
    Ok(())
}

#[test]
fn a_missing_column_is_named_by_what_it_was_in_training() -> Result<(), Error> {
    let place = Place::new();
    let line = |row: usize| format!("{},20{:02}-01-01,{},{}", 1_700_000_000 + row, row % 20, ["a", "b"][row % 2], part(row, 1));
    let model = model(place.detect("t,when,kind,y", 400, line)?, 1)?;
    for (header, kind) in [("when,kind", "columns of numbers"), ("t,kind", "columns of dates"), ("t,when", "categorical columns")]
    {
        let cells = header.split(',').map(|name| if name == "when" { "2024-01-01" } else { "1" }).collect::<Vec<_>>().join(",");
        let error = model.read_rows(place.write("new.csv", header, 3, |_| cells.clone())).expect_err("a column is missing");
        assert!(error.to_string().contains(kind), "{error}");
    }
    Ok(())
}

/// Weeks, durations and coordinates are text. If nearly all differ, they are left out as identifiers are.
#[test]
fn text_that_stands_for_numbers_is_left_out_with_a_warning() -> Result<(), Error> {
    let place = Place::new();
    type Cell = fn(usize) -> String;
    let cells: [(&str, Cell); 3] = [
        ("week", |row| format!("{}-W{:02}", 2010 + row / 52, row % 52 + 1)),
        ("duration", |row| format!("{}h{:02}m", row / 60, row % 60)),
        ("latitude", |row| format!("{}\u{b0}{:02}'N", 40 + row / 60, row % 60)),
    ];
    for (name, cell) in cells {
        let detected = place.detect(&format!("{name},x,y"), 500, |row| format!("{},{},{}", cell(row), part(row, 0), row % 2))?;
        assert_eq!(detected.columns, Columns::numbers(["x"]), "{name}");
        let warning = only(&detected.warnings);
        assert!(matches!(warning, TabularWarning::Identifier { column, .. } if column == name), "{warning}");
    }
    Ok(())
}

/// The first row is a row, but it is said that its numbers look like names.
#[test]
fn a_header_of_years_is_told() -> Result<(), Error> {
    let place = Place::new();
    let line =
        |row: usize| iter::once(part(row, 0)).chain([part(row, 1), part(row, 2)]).map(|x| x.to_string()).collect::<Vec<_>>();
    let detected = place.detect("2019,2020,2021", 50, |row| line(row).join(","))?;
    let told = |detected: &Detected| {
        detected
            .warnings
            .iter()
            .any(|found| matches!(found, TabularWarning::Import(ImportWarning::NumbersAsNames { line: 1, .. })))
    };
    assert!(told(&detected) && detected.table.n_rows() == 51, "{:?}", detected.warnings);
    Ok(())
}

/// A file of Parquet: text, a number, a duration, a number, text. Columns are those of the file, whatever their types, and a
/// column of a type that is not read has to be left out.
#[cfg(feature = "all-formats")]
#[test]
fn columns_of_a_typed_file_are_counted_in_its_order() -> Result<(), Error> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/table/tests/columns/durations.parquet");
    let detect = |target: Option<&str>, drop: &[&str]| {
        let drop = drop.iter().map(|&name| name.to_owned()).collect();
        TabularModel::detect(&path, &DetectOptions { target: target.map(str::to_owned), drop, ..DetectOptions::default() })
    };
    for (target, drop, expected) in [
        (Some("1"), &["day"][..], "x"),
        (Some("0"), &["2"], "city"),
        (Some("4"), &["day", "x"], "kind"),
        (None, &["day"], "y"),
        (None, &["day", "3"], "kind"),
    ] {
        let found = detect(target, drop)?;
        assert_eq!(found.target.name(), expected, "{target:?} without {drop:?}");
        let n_columns = found.columns.numbers.len() + found.columns.categories.len();
        assert_eq!(n_columns, 4 - drop.len(), "{target:?} without {drop:?}: {:?}", found.columns);
    }
    for drop in [&[][..], &["x"], &["1"]] {
        let error = detect(None, drop).expect_err("the duration is left").to_string();
        assert!(error.contains("`day`") && error.contains("Duration"), "{error}");
    }
    Ok(())
}

/// The same data frame by `to_csv` and `to_parquet` of pandas 3.1: numbers with gaps, which are `f64` although whole, a column of
/// zeros, whole numbers beyond 2^53, dates of which some are 9999-12-31, text, and a target of 1.0 to 3.0 with gaps.
#[cfg(feature = "all-formats")]
#[test]
fn a_data_frame_is_the_same_as_csv_and_as_parquet() -> Result<(), Error> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/table/tests/columns");
    let missing_values = vec!["absent".to_owned(), "-0.04".to_owned(), "bonn".to_owned()];
    let text = TextOptions { missing_values, ..TextOptions::default() };
    for text in [TextOptions::default(), text] {
        let options = DetectOptions { text, ..DetectOptions::default() };
        let [csv, parquet] = ["pandas.csv", "pandas.parquet"].map(|name| TabularModel::detect(folder.join(name), &options));
        let (csv, parquet) = (csv?, parquet?);
        assert_eq!((csv.target.kind(), csv.target.classes()), (TargetKind::Classes, &["1", "2", "3"].map(String::from)[..]));
        assert_eq!((&csv.target, &csv.columns), (&parquet.target, &parquet.columns));
        assert_eq!(csv.warnings, parquet.warnings);
        for expected in ["`none` the same value", "`id` has whole numbers up to", "`sold` has 9999-12-31 in 19 rows"] {
            let expected = expected.replace("`none` the", "column `none` has the");
            assert!(csv.warnings.iter().any(|found| found.to_string().contains(&expected)), "{expected}: {:?}", csv.warnings);
        }
        assert_eq!((&csv.unused_missing_values, csv.table.n_rows()), (&parquet.unused_missing_values, parquet.table.n_rows()));
        let unused = options.text.missing_values.first().cloned();
        assert_eq!(csv.unused_missing_values, Vec::from_iter(unused));
        let bits = |table: &brisk_table::Table| -> Vec<u32> {
            let all = 0..table.n_rows();
            let values = table.rows::<f32>(all.clone()).expect("features").iter().chain(table.labels::<f32>().expect("labels"));
            let codes = table.categories(all).expect("categories").iter().copied();
            values.map(|value| value.to_bits()).chain(codes).collect()
        };
        assert!(bits(&csv.table) == bits(&parquet.table), "the rows differ");
    }
    Ok(())
}

#[test]
fn training_again_removes_what_was_fitted_to_predictions() -> Result<(), Error> {
    let place = Place::new();
    let detected = place.detect("x,y", 200, |row| format!("{},{}", part(row, 0), u8::from(part(row, 0) > 0.4)))?;
    let columns = detected.columns.clone();
    let mut model = model(detected, 2)?;
    let detected = TabularModel::detect(place.0.path().join("rows.csv"), &DetectOptions::default())?;
    let rows = model.rows(&columns, &detected.table)?.to_rows("all")?;
    model.calibrate(&rows, &rows)?;
    model.choose_threshold(ThresholdMetric::F1, &rows)?;
    model.set_scores(vec![("test_auc".to_owned(), 0.9)]);
    model.model_mut();
    assert_eq!((model.calibration(), model.threshold(), model.scores()), (None, None, &[][..]));
    Ok(())
}
