//! Rare values of categories.

use brisk_loader::Rows;
use brisk_nn::tensor::program::Device;
use brisk_table::Dictionary;
use brisk_tabular::{Columns, Error, Network, Preprocessing, PreprocessingOptions, TabularModel, Target};

/// Rows of one category, in which each of the values is as often as said; NFC makes the first two one.
fn table() -> (Columns, Rows) {
    let values = ["caf\u{e9}", "cafe\u{301}", "tea", "milk", "never"];
    let codes: Vec<u32> = [(1, 2), (2, 1), (3, 5), (4, 2), (0, 4)].into_iter().flat_map(|(code, n)| vec![code; n]).collect();
    let rows = Rows::new(vec![0.0; codes.len()], vec![0.0; codes.len()], 1).and_then(|rows| rows.with_categories(codes, 1));
    let columns =
        Columns { categories: vec![Dictionary::new("drink", values).expect("different values")], ..Columns::numbers(["x"]) };
    (columns, rows.expect("a code for each row"))
}

fn fit(min_category_rows: usize) -> Result<Preprocessing, Error> {
    let (columns, rows) = table();
    Preprocessing::fit_with(&columns, &rows, &PreprocessingOptions { min_category_rows, ..PreprocessingOptions::default() })
}

#[test]
fn rare_values_are_one_with_unknown_ones() -> Result<(), Error> {
    let (columns, rows) = table();
    for (min_rows, known, n_rare) in [(1, 3, 0), (2, 3, 0), (3, 2, 1), (4, 1, 2), (5, 1, 2)] {
        let preprocessing = fit(min_rows)?;
        let values = preprocessing.categories()[0].values();
        assert_eq!(
            values,
            &["caf\u{e9}", "tea", "milk"]
                .map(str::to_owned)
                .into_iter()
                .filter(|value| known > 1 || value == "tea")
                .take(known)
                .collect::<Vec<_>>()
        );
        assert_eq!(preprocessing.rare_values().map(|(_, n)| n).sum::<usize>(), n_rare, "{min_rows}");
        // Unknown is code 0, as missing is.
        let codes = preprocessing.over(&columns, &rows)?.to_rows("train")?;
        let n_unknown = codes.categories().iter().filter(|code| **code == 0).count();
        assert_eq!(n_unknown, [0, 4, 4, 6, 9, 9][min_rows], "{min_rows}");
    }
    let unseen = fit(4)?.over(&columns, &rows)?.unseen_values()?;
    assert_eq!((unseen[0].n_rows, unseen[0].n_values, unseen[0].min_rows), (5, 3, 4));
    assert!(unseen[0].to_string().contains("or in fewer than 4 rows"), "{}", unseen[0]);
    Ok(())
}

#[test]
fn a_column_of_rare_values_only_is_refused() {
    let error = fit(6).expect_err("no value is in 6 rows");
    assert!(matches!(&error, Error::RareValues { column, n_values: 3, largest: 5, min_rows: 6 } if column == "drink"), "{error}");
}

#[test]
fn a_predictor_takes_rows_with_other_codes() -> Result<(), Error> {
    let (columns, rows) = table();
    let target = Target::Number { name: "y".to_owned(), offset: 0.0, scale: Default::default(), mean: 0.0, std: 1.0 };
    let model = TabularModel::new(7, fit(1)?, target, Network::Mlp { hidden: vec![8] });
    let predictor = model.predictor(&Device::cpu().expect("a CPU"))?;
    let of = |values: [&str; 3], codes: Vec<u32>| {
        let dictionary = Dictionary::new("drink", values).expect("different values");
        let columns = Columns { categories: vec![dictionary], ..columns.clone() };
        let n = codes.len();
        let rows = Rows::new(vec![0.0; n], vec![0.0; n], 1).and_then(|rows| rows.with_categories(codes, 1)).expect("rows");
        Ok::<_, Error>(predictor.predict(&columns, &rows)?.numbers().to_vec())
    };
    let [tea, milk, unknown] = of(["tea", "milk", "beer"], vec![1, 2, 3])?[..] else { panic!("three rows") };
    assert!(tea != milk && milk != unknown && tea != unknown, "{tea} {milk} {unknown}");
    // The codes of the rows before stood for other values.
    assert_eq!(of(["beer", "tea", "milk"], vec![1, 2, 3])?, [unknown, tea, milk]);
    assert_eq!(of(["beer", "tea", "milk"], vec![3, 0, 2])?, [milk, unknown, tea]);
    let error = predictor.predict(&Columns::numbers(["x"]), &rows).expect_err("there is no drink");
    assert!(matches!(&error, Error::ColumnNames { .. }), "{error}");
    Ok(())
}
