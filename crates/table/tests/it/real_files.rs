//! Third-party files, if they are available: `BRISK_DATA` names their folder.

use std::fs;
use std::path::PathBuf;

use brisk_table::{ColumnOptions, ColumnRef, CsvOptions, Decimal, LabelKind, Missing, Table, import};
use sha2::{Digest, Sha256};

/// The file of real data of that name, after checking that it is the one that the README there describes.
pub(crate) fn data(name: &str) -> Option<PathBuf> {
    let Some(folder) = std::env::var_os("BRISK_DATA") else {
        crate::not_run(name, "BRISK_DATA does not name the folder of the real data");
        return None;
    };
    let path = PathBuf::from(&folder).join(name);
    assert!(path.is_file(), "{} is not there, though BRISK_DATA is set", path.display());
    // `| `NAME` | … | `SHA-256` |`
    let readme = fs::read_to_string(PathBuf::from(folder).join("README.md")).unwrap();
    let line = readme.lines().find(|line| line.starts_with(&format!("| `{name}` |")));
    let expected =
        line.and_then(|line| line.rsplit('`').nth(1)).unwrap_or_else(|| panic!("the README there has no sum of {name}"));
    let found: String = Sha256::digest(fs::read(&path).unwrap()).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(found, expected, "{name} is not the file that the README there describes");
    Some(path)
}

pub(crate) fn columns() -> ColumnOptions {
    ColumnOptions::default()
}

pub(crate) fn of(columns: ColumnOptions) -> CsvOptions {
    CsvOptions { columns, ..CsvOptions::default() }
}

#[track_caller]
fn check(name: &str, options: CsvOptions, n_rows: usize, n_cols: usize, share_of_ones: Option<f64>) {
    let Some(source) = data(name) else { return };
    let (_folder, dest) = crate::scratch();
    let report = import(&source, &dest, &options).unwrap();
    let table = Table::open(&dest).unwrap();
    table.verify().unwrap();
    assert_eq!((report.n_rows, table.n_rows(), table.n_cols()), (n_rows, n_rows, n_cols), "{name}");
    if let Some(expected) = share_of_ones {
        let ones = table.labels::<f32>().unwrap().iter().filter(|&&y| y == 1.0).count();
        let found = ones as f64 / n_rows as f64;
        assert!((found - expected).abs() < 5e-4, "{name}: {found} of the labels are 1, expected {expected}");
    }
}

#[test]
fn higgs() {
    let binary = of(ColumnOptions { label_kind: LabelKind::Binary, ..columns() });
    check("higgs/higgs_train.csv.gz", binary.clone(), 33_813, 28, Some(0.532));
    check("higgs/higgs_test.csv.gz", binary.clone(), 7_749, 28, Some(0.524));
    check("higgs/lightgbm_example_train.tsv.gz", binary.clone(), 7_000, 28, None);
    check("higgs/lightgbm_example_test.tsv.gz", binary, 500, 28, None);
}

#[test]
fn other_tables() {
    check("tabular/digits.csv.gz", of(ColumnOptions { labels: vec![64.into()], ..columns() }), 1_797, 64, None);
    let drop = vec!["ocean_proximity".into()];
    let housing = of(ColumnOptions { drop, labels: vec!["median_house_value".into()], missing: Missing::Keep, ..columns() });
    check("tabular/california_housing.csv.gz", housing.clone(), 20_640, 8, None);
    let comma = CsvOptions { decimal: Decimal::Comma, ..housing };
    check("samples/housing500_semicolon_decimalcomma_crlf.csv", comma, 500, 8, None);
}

/// Text columns are dropped, so that the test is about where the rows end.
#[test]
fn quotes_over_several_lines() {
    let text =
        ["workclass", "education", "marital-status", "occupation", "relationship", "race", "sex", "native-country", "income"];
    let drop = text.into_iter().chain(["note"]).map(ColumnRef::from).collect();
    let options = of(ColumnOptions { labels: vec!["age".into()], drop, ..columns() });
    check("samples/adult500_quoted_multiline_bom.csv", options, 500, 5, None);
}

#[test]
fn text_where_numbers_should_be() {
    let refused = |name: &str, options: CsvOptions, says: &str| {
        let Some(source) = data(name) else { return };
        let (_folder, dest) = crate::scratch();
        let message = import(&source, &dest, &options).unwrap_err().to_string();
        assert!(message.contains(says) && !dest.exists(), "{message}");
    };
    refused(
        "samples/adult500_quoted_multiline_bom.csv",
        CsvOptions::default(),
        "line 2, column 2 (`workclass`): found \"State-gov\"",
    );
    refused("tabular/california_housing.csv.gz", CsvOptions::default(), "column 10 (`ocean_proximity`): found \"NEAR BAY\"");
    refused("tabular/breast_cancer.csv.gz", CsvOptions::default(), "may be a header or a row");
}
