//! Third-party files with text, classes and missing values: the counts are those in the README of the data.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use brisk_table::{
    BadRows, Categorical, Class, ColumnOptions, CsvOptions, Decimal, FeatureDType, Header, Indicators, LabelKind, Missing, Table,
    import,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::real_files::{columns, data, of};

/// The table imported from a file with this checksum.
struct Imported {
    _folder: TempDir,
    table: Table,
    n_skipped: u64,
}

fn table_of(name: &str, sha256: &str, options: &CsvOptions) -> Option<Imported> {
    let source = data(name)?;
    check_sum(&source, sha256);
    let (folder, dest) = crate::scratch();
    let report = import(&source, &dest, options).unwrap();
    let table = Table::open(&dest).unwrap();
    table.verify().unwrap();
    Some(Imported { _folder: folder, table, n_skipped: report.n_skipped })
}

#[track_caller]
fn check_sum(source: &Path, sha256: &str) {
    let sum: String = Sha256::digest(fs::read(source).unwrap()).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(sum, sha256, "{} is not the file that is expected", source.display());
}

fn class_counts(table: &Table) -> Vec<(&str, usize)> {
    let mut counts = vec![0; table.classes().len()];
    for &label in table.labels::<u32>().unwrap() {
        counts[label as usize] += 1;
    }
    table.classes().iter().map(String::as_str).zip(counts).collect()
}

/// How often code 0 occurs in each categorical column.
fn n_missing(table: &Table) -> Vec<usize> {
    let n = table.n_categories();
    let codes = table.categories(0..table.n_rows()).unwrap();
    (0..n).map(|col| codes.iter().skip(col).step_by(n).filter(|&&code| code == 0).count()).collect()
}

const ADULT: (&str, &str) = ("tabular/adult.data.gz", "fb9b6b419c38dd70d75d31f014b7f0905bf76e9625473c593455e31679a93184");
const ADULT_TEST: (&str, &str) = ("tabular/adult.test.gz", "5dd8e51005f6a86e42f058d66a957721196362cf8e8dde3efc8508532af4a083");

fn adult() -> CsvOptions {
    // The labels of the test file end in a full stop.
    let income = |name: &str| Class { also: vec![format!("{name}.")], ..Class::from(name) };
    let label_kind = LabelKind::Given(vec![income("<=50K"), income(">50K")]);
    let columns = ColumnOptions { labels: vec![14.into()], label_kind, categorical: Categorical::Auto, ..columns() };
    CsvOptions { header: Header::Absent, ..of(columns) }
}

#[test]
fn adult_and_its_test_file() {
    let Some(Imported { _folder, table: train, .. }) = table_of(ADULT.0, ADULT.1, &adult()) else { return };
    assert_eq!((train.n_rows(), train.n_cols()), (32_561, 6));
    assert_eq!(class_counts(&train), [("<=50K", 24_720), (">50K", 7_841)]);
    assert_eq!(n_missing(&train), [1_836, 0, 0, 1_843, 0, 0, 0, 583]);
    let n_values: Vec<usize> = train.dictionaries().iter().map(|dictionary| dictionary.values().len()).collect();
    assert_eq!(n_values, [8, 16, 7, 14, 6, 5, 2, 41]);

    let like = ColumnOptions { like: Some(train.path().to_owned()), ..adult().columns };
    let options = CsvOptions { skip_lines: 1, columns: like, ..adult() };
    let test = table_of(ADULT_TEST.0, ADULT_TEST.1, &options).unwrap().table;
    assert_eq!((test.n_rows(), test.dictionaries()), (16_281, train.dictionaries()));
    assert_eq!(class_counts(&test), [("<=50K", 12_435), (">50K", 3_846)]);
    assert_eq!(n_missing(&test), [963, 0, 0, 966, 0, 0, 0, 274]);
}

#[test]
fn kdd_cup_and_its_test_file() {
    let columns =
        ColumnOptions { labels: vec![41.into()], label_kind: LabelKind::Classes, categorical: Categorical::Auto, ..columns() };
    let options = CsvOptions { header: Header::Absent, ..of(columns.clone()) };
    let sums = [
        "7bfaa8cef1350f72842018c32893e2fa4539d57efbb22f998eb74ecefc3da3b4",
        "74f0daef49b242badc09f2adbd457dea6a45b4f77177efbd11216d333651044b",
    ];
    let Some(Imported { _folder, table: train, .. }) = table_of("tabular/kddcup.data_10_percent.gz", sums[0], &options) else {
        return;
    };
    assert_eq!((train.n_rows(), train.n_cols(), train.classes().len()), (494_021, 38, 23));
    assert!(train.classes().is_sorted(), "classes are in another order");
    let n_values: Vec<usize> = train.dictionaries().iter().map(|dictionary| dictionary.values().len()).collect();
    assert_eq!(n_values, [3, 66, 11]);
    let mut counts = class_counts(&train);
    counts.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    assert_eq!(counts[..3], [("smurf.", 280_790), ("neptune.", 107_201), ("normal.", 97_278)]);

    // Rows with the 17 classes that the training file does not have are bad rows.
    let like = ColumnOptions { like: Some(train.path().to_owned()), bad_rows: BadRows::Skip, ..columns };
    let test = table_of("tabular/kddcup.corrected.gz", sums[1], &CsvOptions { columns: like, ..options }).unwrap();
    assert_eq!((test.table.n_rows(), test.n_skipped), (292_300, 18_729));
    assert_eq!(test.table.classes(), train.classes());
}

#[test]
fn housing_with_its_missing_bedrooms() {
    const SUM: &str = "b2e79251d5497489c09db2cb6b7771e5cb0b1065198c2611c4f2f3c63403d30c";
    let options = of(ColumnOptions {
        labels: vec!["median_house_value".into()],
        categorical: Categorical::Auto,
        missing: Missing::Mean,
        indicators: Indicators::Columns(vec!["total_bedrooms".into()]),
        ..columns()
    });
    let Some(Imported { table, _folder, .. }) = table_of("tabular/california_housing.csv.gz", SUM, &options) else { return };
    assert_eq!((table.n_rows(), table.n_cols(), table.n_categories()), (20_640, 9, 1));
    assert_eq!(table.column_names()[8], "total_bedrooms_missing");
    let marks = table.rows::<f32>(0..20_640).unwrap().chunks_exact(9).filter(|row| row[8] == 1.0);
    assert_eq!(marks.clone().count(), 207);
    let mean = table.imputed().unwrap()[4];
    // pandas' mean of the 20,433 values that are present.
    assert!((mean - 537.870_55).abs() < 1e-3, "the mean is {mean}");
    assert!(marks.into_iter().all(|row| row[4] == mean), "something else was put in");
    let dictionary = &table.dictionaries()[0];
    let codes = table.categories(0..20_640).unwrap();
    for (value, n) in [("<1H OCEAN", 9_136), ("INLAND", 6_551), ("NEAR OCEAN", 2_658), ("NEAR BAY", 2_290), ("ISLAND", 5)] {
        assert_eq!(codes.iter().filter(|&&code| code == dictionary.code(value)).count(), n, "{value}");
    }
}

#[test]
fn atlas_higgs_with_weights_and_undefined_values() {
    const SUM: &str = "1e4d35b2b0d46930120e7eb69545855033418c17b0e84d1ecebaaa8b4d6f1689";
    let options = of(ColumnOptions {
        labels: vec!["Label".into()],
        label_kind: LabelKind::Given(vec!["b".into(), "s".into()]),
        weight: Some("Weight".into()),
        drop: vec!["EventId".into(), "KaggleSet".into(), "KaggleWeight".into()],
        missing: Missing::Keep,
        missing_values: vec!["-999.0".into()],
        ..columns()
    });
    let Some(Imported { table, _folder, .. }) = table_of("higgs/atlas_higgs_10k.csv.gz", SUM, &options) else { return };
    assert_eq!((table.n_rows(), table.n_cols()), (9_998, 30));
    assert_eq!(class_counts(&table), [("b", 4_999), ("s", 4_999)]);
    assert_eq!((table.labels::<u32>().unwrap()[0], table.weights().unwrap()[0]), (1, 0.000_814_480_4));
    let statistics = table.statistics().unwrap();
    assert_eq!(statistics.iter().filter(|column| column.count < 9_998).count(), 11);
    assert!(statistics.iter().all(|column| column.min > -999.0), "an undefined value was taken for a number");
}

#[test]
fn digits_in_bytes_and_a_file_with_a_first_line_of_its_own() {
    const DIGITS: &str = "09f66e6debdee2cd2b5ae59e0d6abbb73fc2b0e0185d2e1957e9ebb51e23aa22";
    const CANCER: &str = "aa86c8de0789d7e6c1462566542a259ad97c64e5c553f83245f34e0828d6460e";
    let digits = ColumnOptions { labels: vec![64.into()], label_kind: LabelKind::Classes, dtype: FeatureDType::U8, ..columns() };
    let Some(Imported { table, _folder, .. }) = table_of("tabular/digits.csv.gz", DIGITS, &of(digits)) else { return };
    assert_eq!((table.n_rows(), table.n_cols(), table.classes().len()), (1_797, 64, 10));
    assert!(
        table.classes().iter().map(String::as_str).eq(["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]),
        "{:?}",
        table.classes()
    );
    assert_eq!(table.rows::<u8>(0..1_797).unwrap().iter().max(), Some(&16));

    let cancer = ColumnOptions { labels: vec![30.into()], label_kind: LabelKind::Binary, ..columns() };
    let table = table_of("tabular/breast_cancer.csv.gz", CANCER, &CsvOptions { skip_lines: 1, ..of(cancer) }).unwrap().table;
    assert_eq!((table.n_rows(), table.n_cols()), (569, 30));
    assert_eq!(table.labels::<f32>().unwrap().iter().filter(|&&label| label == 1.0).count(), 357);
}

#[test]
fn a_file_with_notes_over_several_lines() {
    const SUM: &str = "ff110aaa466d2bc4b41cc1826399765da094bb2c482cb2be7043d87c12a3c103";
    let columns = ColumnOptions {
        labels: vec!["income".into()],
        label_kind: LabelKind::Classes,
        categorical: Categorical::Auto,
        ..columns()
    };
    let name = "samples/adult500_quoted_multiline_bom.csv";
    let Some(Imported { table, _folder, .. }) = table_of(name, SUM, &of(columns)) else { return };
    assert_eq!((table.n_rows(), table.n_cols(), table.n_categories()), (500, 6, 9));
    assert_eq!(table.dictionaries()[8].value(1), Some("quoted, \"Adm-clerical\"\nsecond line"));
}

const PANDAS: &str = "
import json, sys, pandas
frame = pandas.read_csv(sys.argv[1], header=None, skipinitialspace=True, na_values=['?'])
label = frame.pop(14)
text = [c for c in frame if frame[c].dtype.kind not in 'if']
print(json.dumps({
    'means': [frame[c].mean() for c in frame if c not in text],
    'values': [frame[c].value_counts().to_dict() for c in text],
    'labels': label.value_counts().to_dict(),
}))
";

/// Compares every count and mean with another reader.
#[test]
fn pandas_counts_the_same() {
    let Some(python) = crate::interop::python("pandas_counts_the_same") else { return };
    let Some(Imported { table, _folder, .. }) = table_of(ADULT.0, ADULT.1, &adult()) else { return };
    let args = [data(ADULT.0).unwrap().into_os_string()];
    let Some(theirs) = pandas("pandas_counts_the_same", &python, PANDAS, &args) else { return };
    for (column, mean) in table.statistics().unwrap().iter().zip(theirs["means"].as_array().unwrap()) {
        assert!((column.mean - mean.as_f64().unwrap()).abs() < 1e-9 * column.mean.abs(), "{} and {mean}", column.mean);
    }
    let (n, codes) = (table.n_categories(), table.categories(0..table.n_rows()).unwrap());
    for (col, dictionary) in table.dictionaries().iter().enumerate() {
        let mut counts = BTreeMap::new();
        for value in codes.iter().skip(col).step_by(n).filter_map(|&code| dictionary.value(code)) {
            *counts.entry(value).or_insert(0) += 1;
        }
        assert_eq!(json!(counts), theirs["values"][col], "column {}", dictionary.name());
    }
    assert_eq!(json!(class_counts(&table).into_iter().collect::<BTreeMap<_, _>>()), theirs["labels"]);
}

/// The JSON output of a program that uses pandas; `None` without pandas.
fn pandas(test: &str, python: &str, program: &str, args: &[OsString]) -> Option<Value> {
    let output = Command::new(python).args(["-c", program]).args(args).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.contains("No module named 'pandas'") {
        crate::not_run(test, "the Python of BRISK_PYTHON has no pandas");
        return None;
    }
    assert!(output.status.success(), "{stderr}");
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

const PANDAS_NUMBERS: &str = "
import json, sys, pandas
frame = pandas.read_csv(sys.argv[1], **json.loads(sys.argv[2]))
label = frame.pop(frame.columns[int(sys.argv[3])])
frame = frame.select_dtypes('number')
columns = [[int(frame[c].count()), *map(float, [frame[c].mean(), frame[c].std(ddof=0), frame[c].min(), frame[c].max()])] for c in frame]
print(json.dumps({'rows': len(frame), 'label': float(label.mean()), 'columns': columns}))
";

/// For files of numbers: the count, mean, standard deviation and extremes of each column.
#[test]
fn pandas_reads_the_same_numbers() {
    let Some(python) = crate::interop::python("pandas_reads_the_same_numbers") else { return };
    let check = |name: &str, options: CsvOptions, label: &str, arguments: Value| -> Option<()> {
        let source = data(name)?;
        let args = [source.clone().into_os_string(), arguments.to_string().into(), label.into()];
        let theirs = pandas("pandas_reads_the_same_numbers", &python, PANDAS_NUMBERS, &args)?;
        let (_folder, dest) = crate::scratch();
        let report = import(&source, &dest, &options).unwrap();
        assert_eq!(json!(report.n_rows), theirs["rows"], "{name}");
        let labels = Table::open(&dest).unwrap().labels::<f32>().unwrap().iter().map(|&y| f64::from(y)).sum::<f64>();
        let mean = labels / report.n_rows as f64;
        assert!((mean - theirs["label"].as_f64().unwrap()).abs() <= 1e-7 * mean.abs(), "{name}: the mean label is {mean}");
        let columns = theirs["columns"].as_array().unwrap();
        assert_eq!(report.statistics.len(), columns.len(), "{name}");
        for (ours, theirs) in report.statistics.iter().zip(columns) {
            assert_eq!(json!(ours.count), theirs[0], "{name}");
            // pandas computes in f64: each of our values is rounded to f32, with a relative error of 6e-8.
            let rounded = 1e-7 * ours.min.abs().max(ours.max.abs());
            for (i, ours) in [ours.mean, ours.std, ours.min, ours.max].into_iter().enumerate() {
                assert!((ours - theirs[i + 1].as_f64().unwrap()).abs() <= rounded, "{name}: {ours} and {theirs}");
            }
        }
        Some(())
    };
    for name in ["higgs/higgs_train.csv.gz", "higgs/higgs_test.csv.gz"] {
        check(name, of(columns()), "0", json!({}));
    }
    for name in ["higgs/lightgbm_example_train.tsv.gz", "higgs/lightgbm_example_test.tsv.gz"] {
        check(name, of(columns()), "0", json!({ "sep": "\t", "header": null }));
    }
    let drop = vec!["ocean_proximity".into()];
    let columns = ColumnOptions { labels: vec![8.into()], drop, missing: Missing::Keep, ..columns() };
    let options = CsvOptions { decimal: Decimal::Comma, ..of(columns) };
    let name = "samples/housing500_semicolon_decimalcomma_crlf.csv";
    check(name, options, "8", json!({ "sep": ";", "decimal": "," }));
}
