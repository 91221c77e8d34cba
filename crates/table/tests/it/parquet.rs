//! Parquet: the same columns as Arrow's, the real samples of pandas, polars and pyarrow, and files that are refused.

use brisk_table::{Categorical, ColumnOptions, ColumnRole, ImportWarning, LabelKind, Missing};

use crate::arrow::{check_any_byte, check_forged, check_mixed, check_threads, columns, mixed, table_of};
use crate::real_files::data;

#[test]
fn every_kind_of_column() {
    let (report, table) = table_of(&mixed("mixed.parquet"), columns()).unwrap();
    check_mixed(&report, &table);
}

#[test]
fn any_number_of_threads_makes_the_same_table() {
    check_threads("mixed.parquet");
}

/// The same rows in three layouts, one of them with lists.
#[test]
fn higgs() {
    let Some(lists) = data("samples/higgs2k_pyarrow_fixedsizelist_lz4.parquet") else { return };
    let binary = ColumnOptions { label_kind: LabelKind::Binary, ..ColumnOptions::default() };
    let (_, reference) = table_of(&lists, binary.clone()).unwrap();
    assert_eq!((reference.n_rows(), reference.n_cols()), (2_000, 28));
    assert_eq!(reference.column_names()[27], "features_27");
    for name in ["higgs2k_pyarrow_plain_uncompressed", "higgs2k_pyarrow_v2page_zstd_bytestreamsplit"] {
        let (_, table) = table_of(&data(&format!("samples/{name}.parquet")).unwrap(), binary.clone()).unwrap();
        assert_eq!(table.rows::<f32>(0..2_000).unwrap(), reference.rows::<f32>(0..2_000).unwrap(), "{name}");
        assert_eq!(table.labels::<f32>().unwrap(), reference.labels::<f32>().unwrap(), "{name}");
    }
    let message = table_of(&data("samples/higgs_empty_pyarrow.parquet").unwrap(), binary).unwrap_err();
    assert!(message.contains("higgs_empty_pyarrow.parquet: columns and no rows"), "{message}");
}

#[test]
fn adult() {
    let Some(polars) = data("samples/adult5k_polars_zstd_categorical.parquet") else { return };
    let pyarrow = data("samples/adult5k_pyarrow_gzip_dictionary.parquet").unwrap();
    let columns = ColumnOptions {
        labels: vec!["income".into()],
        label_kind: LabelKind::Classes,
        categorical: Categorical::Auto,
        ..ColumnOptions::default()
    };
    let (report, table) = table_of(&polars, columns.clone()).unwrap();
    assert_eq!((report.n_rows, table.n_cols(), table.n_categories()), (5_000, 6, 8));
    assert_eq!(report.classes, ["<=50K", ">50K"]);
    let missing = table.categories(0..5_000).unwrap().iter().step_by(8).filter(|&&code| code == 0).count();
    assert!(missing > 200, "{missing} of 5,000 rows lack a work class; in the whole set it is one in 18");
    let (_, other) = table_of(&pyarrow, columns).unwrap();
    assert_eq!(table.rows::<f32>(0..5_000).unwrap(), other.rows::<f32>(0..5_000).unwrap());
    assert_eq!(table.categories(0..5_000).unwrap(), other.categories(0..5_000).unwrap());
    assert_eq!(table.dictionaries(), other.dictionaries());
    assert_eq!(table.labels::<u32>().unwrap(), other.labels::<u32>().unwrap());
}

#[test]
fn housing() {
    let Some(source) = data("samples/housing_pandas_snappy.parquet") else { return };
    let columns = ColumnOptions {
        labels: vec!["median_house_value".into()],
        drop: vec!["__index_level_0__".into()],
        categorical: Categorical::Auto,
        missing: Missing::Keep,
        ..ColumnOptions::default()
    };
    let (report, table) = table_of(&source, columns).unwrap();
    assert_eq!((report.n_rows, table.n_cols()), (20_640, 8));
    let bedrooms = table.column_names().iter().position(|name| name == "total_bedrooms").unwrap();
    assert_eq!(table.statistics().unwrap()[bedrooms].count, 20_640 - 207);
    let dictionary = &table.dictionaries()[0];
    let codes = table.categories(0..20_640).unwrap();
    let expected = [("<1H OCEAN", 9_136), ("INLAND", 6_551), ("NEAR OCEAN", 2_658), ("NEAR BAY", 2_290), ("ISLAND", 5)];
    for (value, count) in expected {
        assert_eq!(codes.iter().filter(|&&code| code == dictionary.code(value)).count(), count, "{value}");
    }
}

#[test]
fn odd_types() {
    let Some(source) = data("samples/types_pyarrow_brotli.parquet") else { return };
    let drop = |names: &[&str]| names.iter().map(|&name| name.into()).collect();
    let columns = |dropped: &[&str]| ColumnOptions {
        labels: vec!["i8".into()],
        drop: drop(dropped),
        categorical: Categorical::Auto,
        missing: Missing::Keep,
        ..ColumnOptions::default()
    };
    let (report, table) = table_of(&source, columns(&["ts_us", "list_f32"])).unwrap();
    assert_eq!((report.n_rows, table.n_categories()), (1_000, 3));
    assert_eq!(table.column_names(), ["u16", "i64_null", "f16", "f64", "dec", "all_null"]);
    let counts: Vec<u64> = table.statistics().unwrap().iter().map(|column| column.count).collect();
    assert_eq!(counts, [1_000, 994, 1_000, 1_000, 1_000, 0]);
    let first_rows = table.rows::<f32>(0..3).unwrap();
    assert_eq!([first_rows[4], first_rows[10], first_rows[16]], [452_600.0, 358_500.0, 352_100.0]);
    // Truth values are categories as in a CSV file of pandas, unless no columns are.
    let truths = table.dictionaries().iter().find(|dictionary| dictionary.name() == "bool_null").unwrap();
    assert_eq!(truths.n_codes(), 3);
    assert!(truths.values().iter().all(|truth| truth == "True" || truth == "False"), "{:?}", truths.values());
    let numbers = ColumnOptions { categorical: Categorical::No, ..columns(&["ts_us", "list_f32", "str_null", "large_str"]) };
    let (_, table) = table_of(&source, numbers).unwrap();
    let truths = table.column_names().iter().position(|name| name == "bool_null").unwrap();
    assert_eq!(table.statistics().unwrap()[truths].count, 989);
    let no_categories = ColumnOptions { categorical: Categorical::No, ..columns(&["list_f32", "str_null", "large_str"]) };
    let message = table_of(&source, no_categories).unwrap_err();
    assert!(message.contains("column `ts_us` is Timestamp") && message.contains("`ColumnOptions::drop`"), "{message}");
    let message = table_of(&source, columns(&["ts_us"])).unwrap_err();
    assert!(message.contains("column `list_f32` is List") && message.contains("`ColumnOptions::drop`"), "{message}");
}

const REFUSALS: [(&str, &str); 6] = [
    ("cut_before_footer.parquet", "the footer"),
    ("empty.parquet", "the footer"),
    ("footer_damaged.parquet", "footer_damaged.parquet"),
    ("footer_of_all_memory.parquet", "the footer"),
    ("only_magic.parquet", "the footer"),
    ("pages_damaged.parquet", "row group 0"),
];

#[test]
fn forged_files_are_refused() {
    check_forged("parquet", &REFUSALS);
}

#[test]
fn any_byte_may_be_wrong() {
    check_any_byte(&["small.parquet"]);
}

#[test]
fn classes_of_floats_have_their_shortest_names() {
    let classes = ColumnOptions { label_kind: LabelKind::Classes, ..ColumnOptions::default() };
    let (report, _) = table_of(&mixed("float_classes.parquet"), classes).unwrap();
    assert_eq!(report.classes, ["0.1", "0.25"]);
}

/// 2^60 and 239 numbers after it, in some order.
#[test]
fn whole_numbers_beyond_f64_keep_their_digits() {
    let columns = ColumnOptions { features: Some(vec!["id".into()]), labels: vec!["none".into()], ..ColumnOptions::default() };
    let (report, _) = table_of(&mixed("pandas.parquet"), columns).unwrap();
    let warning = ImportWarning::Rounded {
        column: "id".into(),
        role: ColumnRole::Feature,
        n_values: 239,
        first: "1152921504606846980".to_owned(),
        stored: 1_152_921_504_606_846_976.0,
    };
    assert!(report.warnings.contains(&warning), "{:?}", report.warnings);
    for is_label in [false, true] {
        let [feature, label] = if is_label { ["none", "id"] } else { ["id", "none"] };
        let columns = ColumnOptions {
            features: Some(vec![feature.into()]),
            labels: vec![label.into()],
            offsets: vec![("id".into(), 1_152_921_504_606_846_976.0)],
            ..ColumnOptions::default()
        };
        let (_, table) = table_of(&mixed("pandas.parquet"), columns).unwrap();
        let values = if is_label { table.labels::<f32>() } else { table.rows::<f32>(0..240) };
        let mut values = values.unwrap().to_vec();
        assert_eq!(values[0], 4.0);
        values.sort_unstable_by(f32::total_cmp);
        assert_eq!(values, (0..240_u16).map(f32::from).collect::<Vec<_>>());
    }
}
