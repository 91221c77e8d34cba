//! The roles of columns and the treatment of their cells: categories, classes, missing values, other dtypes, matching another
//! table.

use std::fs;
use std::path::PathBuf;

use brisk_table::{
    BadRows, Categorical, Class, ColumnOptions, ColumnRef, CsvOptions, DType, FeatureDType, Header, ImportReport, Imported,
    Indicators, LabelKind, Missing, Schema, Table, TableWriter, import, import_if_changed,
};

fn columns() -> ColumnOptions {
    ColumnOptions::default()
}

/// Imports the text with different numbers of threads, which must give the same bytes.
fn table_of(text: impl AsRef<[u8]>, options: &CsvOptions) -> Result<(ImportReport, Table), String> {
    let (folder, dest) = crate::scratch();
    let source = folder.path().join("rows.csv");
    fs::write(&source, text).unwrap();
    let run = |n_threads| import(&source, &dest, &CsvOptions { n_threads, ..options.clone() }).map_err(|error| error.to_string());
    let report = run(1)?;
    let bytes = fs::read(&dest).unwrap();
    for n_threads in [2, 3, 7] {
        run(n_threads).unwrap();
        assert!(fs::read(&dest).unwrap() == bytes, "{n_threads} threads made another table");
    }
    let table = Table::open(&dest).unwrap();
    table.verify().unwrap();
    assert_eq!((report.n_rows, &report.column_names[..]), (table.n_rows(), table.column_names()));
    assert_eq!((&report.dictionaries[..], &report.classes[..]), (table.dictionaries(), table.classes()));
    Ok((report, table))
}

fn of(columns: ColumnOptions) -> CsvOptions {
    CsvOptions { columns, ..CsvOptions::default() }
}

#[track_caller]
fn imported(text: impl AsRef<[u8]>, columns: ColumnOptions) -> Table {
    table_of(text, &of(columns)).unwrap().1
}

#[track_caller]
fn refuse(text: impl AsRef<[u8]>, options: &CsvOptions, says: &[&str]) {
    let message = table_of(text, options).map(|(report, _)| report).expect_err("it was imported");
    for part in says {
        assert!(message.contains(part), "`{message}` does not say `{part}`");
    }
}

/// The values of the dictionaries, one dictionary per line.
fn values(table: &Table) -> Vec<String> {
    table.dictionaries().iter().map(|dictionary| format!("{}: {}", dictionary.name(), dictionary.values().join("|"))).collect()
}

#[test]
fn text_becomes_codes() {
    let text = "y,town,x,colour\n1, Bern ,2,red\n0,\"Bern\",3,\n1,Zürich,4,?\n0,\"a \"\"b\"\", c\",5,red\n1,NA,6,blue\n";
    for categorical in [Categorical::Auto, Categorical::Columns(vec![3.into(), "town".into(), 1.into()])] {
        let table = imported(text, ColumnOptions { categorical, ..columns() });
        assert_eq!(table.column_names(), ["x"]);
        assert_eq!(table.rows::<f32>(0..5).unwrap(), [2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(values(&table), ["town: Bern|Zürich|a \"b\", c", "colour: red|blue"]);
        assert_eq!(table.categories(0..5).unwrap(), [1, 1, 1, 0, 2, 0, 3, 1, 0, 2]);
    }
    let numbers = imported(
        text,
        ColumnOptions { categorical: Categorical::Columns(vec!["x".into()]), drop: vec![1.into(), 3.into()], ..columns() },
    );
    assert_eq!((numbers.n_cols(), &values(&numbers)[..]), (0, &["x: 2|3|4|5|6".to_owned()][..]));

    let auto = of(ColumnOptions { categorical: Categorical::Auto, ..columns() });
    refuse(
        text,
        &of(columns()),
        &["line 2, column 2 (`town`): found \"Bern\"", "name the column in `ColumnOptions::categorical`"],
    );
    refuse(b"y,a\n1,ok\n1,\xff\n", &auto, &["line 3, column 2 (`a`)", "expected text in UTF-8"]);
    let label = ColumnOptions { categorical: Categorical::Columns(vec![0.into()]), ..columns() };
    refuse(text, &of(label), &["`y` is categorical and also label"]);
    let none = ColumnOptions { categorical: Categorical::Columns(vec!["z".into()]), ..columns() };
    refuse(text, &of(none), &["no column `z` for the categorical columns"]);
    // Text that first occurs after the first megabyte is not detected.
    let late = "y,a\n".to_owned() + &"1,2\n".repeat(300_000) + "1,late\n";
    refuse(late, &auto, &["line 300002, column 2 (`a`): found \"late\""]);
}

/// Values of skipped rows are not in a dictionary, and the chunks share one dictionary.
#[test]
fn dictionaries_are_those_of_the_rows() {
    let mut text = String::from("y,c,x\n");
    for i in 0..200_000_u64 {
        text += &format!("{},v{},{}\n", i % 3, (i * i) % 1009 + i / 1000, if i % 500 == 7 { "bad" } else { "1" });
        if i % 500 == 7 {
            text += "0,only here,x\n";
        }
    }
    let skip = ColumnOptions { categorical: Categorical::Columns(vec![1.into()]), bad_rows: BadRows::Skip, ..columns() };
    let (report, table) = table_of(&text, &of(skip)).unwrap();
    assert_eq!((report.n_rows, report.n_skipped), (199_600, 800));
    let dictionary = &table.dictionaries()[0];
    assert_eq!(dictionary.code("only here"), 0);
    let lines = text.lines().skip(1).filter(|line| line.ends_with('1'));
    let expected: Vec<&str> = lines.map(|line| line.split(',').nth(1).unwrap()).collect();
    let codes = table.categories(0..report.n_rows).unwrap();
    assert!(
        codes.iter().zip(expected).all(|(&code, value)| dictionary.value(code) == Some(value)),
        "codes stand for other values"
    );
    assert_eq!(codes.iter().max().map(|&code| code as usize), Some(dictionary.values().len()), "a value that no row has");
}

#[test]
fn labels_may_be_classes() {
    let classes = |label_kind| ColumnOptions { label_kind, ..columns() };
    let check = |text: &str, label_kind, names: &[&str], labels: &[u32]| {
        let table = imported(text, classes(label_kind));
        assert_eq!(
            (table.classes(), table.label_dtype()),
            (&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()[..], DType::U32)
        );
        assert_eq!(table.labels::<u32>().unwrap(), labels);
    };
    check("y,a\nsmurf.,1\nnormal.,2\n\"smurf.\",3\nAZ,4\n", LabelKind::Classes, &["AZ", "normal.", "smurf."], &[2, 1, 2, 0]);
    check("y,a\n10,1\n9,2\n-1,3\n9,4\n", LabelKind::Classes, &["-1", "9", "10"], &[2, 1, 0, 1]);
    check("y,a\n10,1\n9,2\nx,3\n", LabelKind::Classes, &["10", "9", "x"], &[0, 1, 2]);
    let given = LabelKind::Given(vec![Class { also: vec!["hi.".into()], ..Class::from("hi") }, Class::from("lo")]);
    check("y,a\nlo,1\nhi,2\nhi.,3\n", given.clone(), &["hi", "lo"], &[1, 0, 0]);

    refuse("y,a\nlo,1\nmid,2\n", &of(classes(given)), &["line 3, column 1 (`y`): found \"mid\", expected one of the classes"]);
    refuse("y,a\nlo,1\n,2\n", &of(classes(LabelKind::Classes)), &["line 3", "expected a class, this is a missing value"]);
    refuse("y,a\nlo,1\n", &of(columns()), &["pass `LabelKind::Classes`"]);
    let twice = LabelKind::Given(vec!["a".into(), "a".into()]);
    refuse("y,a\na,1\n", &of(classes(twice)), &["the classes have \"a\" twice"]);

    // Many rows, so that labels are in a temporary file and chunks find classes in different orders.
    let text = "y,a\n".to_owned() + &(0..2_200_000_u64).map(|i| format!("{},1\n", (i * i / 7) % 101)).collect::<String>();
    let (folder, dest) = crate::scratch();
    let source = folder.path().join("rows.csv");
    fs::write(&source, &text).unwrap();
    import(&source, &dest, &of(classes(LabelKind::Classes))).unwrap();
    let table = Table::open(&dest).unwrap();
    let labels = table.labels::<u32>().unwrap();
    let name = |label: u32| table.classes()[label as usize].parse::<u64>().unwrap();
    assert!((0..2_200_000).all(|i| name(labels[i as usize]) == (i * i / 7) % 101), "labels stand for other classes");
}

#[test]
fn the_label_may_be_the_last_column_or_absent() {
    let last = ColumnOptions { labels: vec![ColumnRef::Last], ..columns() };
    let table = imported("a,b,y\n1,2,3\n4,5,6\n", last);
    assert_eq!((table.column_names(), table.label_names()), (&["a".to_owned(), "b".to_owned()][..], &["y".to_owned()][..]));
    assert_eq!(table.labels::<f32>().unwrap(), [3.0, 6.0]);

    let absent = ColumnOptions { label_kind: LabelKind::Absent, ..columns() };
    let table = imported("a,b\n1,2\n4,5\n", absent.clone());
    assert_eq!((table.column_names(), table.label_names()), (&["a".to_owned(), "b".to_owned()][..], &[][..]));
    assert_eq!(table.labels::<f32>().unwrap(), [0.0, 0.0]);
    assert_eq!(table.rows::<f32>(0..2).unwrap(), [1.0, 2.0, 4.0, 5.0]);

    // Matches a table with a label: the rows to predict have none, and other columns are dropped.
    let (folder, like) = crate::scratch();
    let source = folder.path().join("train.csv");
    fs::write(&source, "y,a,b\n1,2,u\n0,5,v\n").unwrap();
    import(&source, &like, &of(ColumnOptions { categorical: Categorical::Auto, ..columns() })).unwrap();
    let table = imported("extra,b,a\nx,v,7\n?,w,8\n", ColumnOptions { like: Some(like), ..absent });
    assert_eq!(table.rows::<f32>(0..2).unwrap(), [7.0, 8.0]);
    assert_eq!(table.categories(0..2).unwrap(), [2, 0]);
}

#[test]
fn missing_values_may_be_filled_in() {
    let text = "y,a,b\n1,,5\n0,2,-999\n1,4,7\n0,-999.0,6\n";
    let missing_values = vec!["-999".to_owned(), "unknown".to_owned()];
    let fill = |missing| ColumnOptions { missing, missing_values: missing_values.clone(), ..columns() };
    let value = imported(text, fill(Missing::Value(-1.0)));
    assert_eq!(value.rows::<f32>(0..4).unwrap(), [-1.0, 5.0, 2.0, -1.0, 4.0, 7.0, -1.0, 6.0]);
    assert_eq!(value.imputed().unwrap(), [-1.0, -1.0]);

    let mean = imported(text, fill(Missing::Mean));
    assert_eq!(mean.rows::<f32>(0..4).unwrap(), [3.0, 5.0, 2.0, 6.0, 4.0, 7.0, 3.0, 6.0]);
    assert_eq!(mean.imputed().unwrap(), [3.0, 6.0]);
    let a = mean.statistics().unwrap()[0];
    assert_eq!((a.count, a.mean, a.std, a.min, a.max), (4, 3.0, 0.5_f64.sqrt(), 2.0, 4.0));

    let marked = imported(text, ColumnOptions { indicators: Indicators::All, ..fill(Missing::Mean) });
    assert_eq!(marked.column_names(), ["a", "b", "a_missing", "b_missing"]);
    assert_eq!(marked.rows::<f32>(0..2).unwrap(), [3.0, 5.0, 1.0, 0.0, 2.0, 6.0, 0.0, 1.0]);
    let kept = imported(text, ColumnOptions { indicators: Indicators::Columns(vec!["b".into()]), ..fill(Missing::Keep) });
    let row = kept.rows::<f32>(1..2).unwrap();
    assert!(row[0] == 2.0 && row[1].is_nan() && row[2] == 1.0 && kept.imputed().is_none(), "{row:?}");

    let words = imported(
        "y,a,c\n1,unknown,x\n0,2,Unknown\n",
        ColumnOptions { categorical: Categorical::Auto, ..fill(Missing::Value(0.5)) },
    );
    assert_eq!((words.rows::<f32>(0..2).unwrap(), words.categories(0..2).unwrap()), (&[0.5, 2.0][..], &[1, 0][..]));

    refuse(
        text,
        &of(fill(Missing::Error)),
        &["line 2, column 2 (`a`)", "pass `Missing::Mean` or `Missing::Value` to replace it"],
    );
    refuse("y,a\n1,-999\n", &of(fill(Missing::Error)), &["line 2, column 2 (`a`): found \"-999\"", "this is a missing value"]);
    refuse(
        "y,a,b\n1,,2\n0,-999,3\n",
        &of(fill(Missing::Mean)),
        &["every value of `a` is missing", "name the column in `ColumnOptions::drop` or pass `Missing::Value`"],
    );
    refuse("y,a\n1,inf\n", &of(fill(Missing::Mean)), &["expected a finite number"]);
    let no_feature = ColumnOptions { indicators: Indicators::Columns(vec!["y".into()]), ..columns() };
    refuse(text, &of(no_feature), &["`y` cannot have an indicator, since it is not a feature"]);
}

/// Several blocks, some of them without missing values, and a number of columns that does not divide a block.
#[test]
fn means_are_filled_in_far_into_a_table() {
    let mut text = String::from("y,a,b,c\n");
    for i in 0..150_000 {
        let a = if i % 3 == 0 && !(20_000..=140_000).contains(&i) { String::new() } else { (i % 5).to_string() };
        text += &format!("0,{a},{},{}\n", i % 1000, if i == 149_999 { "" } else { "2" });
    }
    let dtypes = [
        FeatureDType::F32,
        #[cfg(feature = "half")]
        FeatureDType::F16,
    ];
    for dtype in dtypes {
        let table = imported(&text, ColumnOptions { missing: Missing::Mean, dtype, ..columns() });
        let n_cols = table.n_cols();
        let means = table.imputed().unwrap();
        assert_eq!((means.len(), means[n_cols - 1]), (n_cols, 2.0));
        let rows: Vec<f32> = match dtype {
            FeatureDType::F32 => table.rows::<f32>(0..150_000).unwrap().to_vec(),
            #[cfg(feature = "half")]
            FeatureDType::F16 => table.rows::<half::f16>(0..150_000).unwrap().iter().map(|x| x.to_f32()).collect(),
            FeatureDType::U8 => unreachable!("it is not among those tried"),
        };
        for (i, row) in rows.chunks_exact(n_cols).enumerate() {
            let missing = i % 3 == 0 && !(20_000..=140_000).contains(&i);
            assert_eq!(row[0], if missing { means[0] } else { (i % 5) as f32 }, "row {i}");
            assert_eq!(row[n_cols - 1], 2.0, "row {i}");
        }
    }
}

#[test]
fn features_may_be_stored_in_fewer_bits() {
    let u8s = |missing| of(ColumnOptions { dtype: FeatureDType::U8, missing, ..columns() });
    let (report, table) = table_of("y,a,b\n1,0,255\n0,17.0,1e1\n1,,3\n", &u8s(Missing::Value(9.0))).unwrap();
    assert_eq!(table.rows::<u8>(0..3).unwrap(), [0, 255, 17, 10, 9, 3]);
    assert_eq!((report.statistics[1].max, table.labels::<f32>().unwrap()), (255.0, &[1.0, 0.0, 1.0][..]));
    for cell in ["256", "-1", "0.5"] {
        let says = ["line 2, column 2 (`a`)", cell, "a whole number from 0 to 255, to be stored as u8"];
        refuse(format!("y,a\n1,{cell}\n"), &u8s(Missing::Error), &says);
    }
    refuse("y,a\n1,2\n", &u8s(Missing::Mean), &["u8 cannot hold a mean"]);
    refuse("y,a\n1,\n", &u8s(Missing::Keep), &["a whole number from 0 to 255"]);
    #[cfg(feature = "half")]
    {
        let halfs = of(ColumnOptions { dtype: FeatureDType::F16, ..columns() });
        let (report, table) = table_of("y,a\n1,0.1\n0,65504\n", &halfs).unwrap();
        assert_eq!(table.rows::<half::f16>(0..2).unwrap(), [half::f16::from_f32(0.1), half::f16::MAX]);
        assert_eq!(report.statistics[0].min, f64::from(half::f16::from_f32(0.1)), "statistics are of what is stored");
        refuse("y,a\n1,1\n0,65600\n", &halfs, &["line 3, column 2 (`a`)", "within the range of f16"]);
    }
}

#[test]
fn several_columns_may_be_labels() {
    let text = "id,rent,a,price,w,b\nx,1,10,-2.5,0.5,100\ny,0,20,4e3,2,200\n";
    let labels = |names: &[&str]| names.iter().map(|&name| name.into()).collect::<Vec<ColumnRef>>();
    let options =
        ColumnOptions { labels: labels(&["price", "rent"]), weight: Some("w".into()), drop: vec!["id".into()], ..columns() };
    let table = imported(text, options.clone());
    assert_eq!((table.n_labels(), table.label_names()), (2, &["price".to_owned(), "rent".to_owned()][..]));
    assert_eq!(table.labels::<f32>().unwrap(), [-2.5, 1.0, 4000.0, 0.0]);
    assert_eq!((table.column_names(), table.weights()), (&["a".to_owned(), "b".to_owned()][..], Some(&[0.5, 2.0][..])));
    assert_eq!(table.rows::<f32>(0..2).unwrap(), [10.0, 100.0, 20.0, 200.0]);
    // In addition, features are filled in and have indicators, and rows are skipped.
    let gaps = "a,l,m\n,1,0\n3,0,1\n4,nan,1\n";
    let options = ColumnOptions {
        labels: labels(&["l", "m"]),
        label_kind: LabelKind::Binary,
        missing: Missing::Mean,
        indicators: Indicators::All,
        bad_rows: BadRows::Skip,
        ..columns()
    };
    let table = imported(gaps, options.clone());
    assert_eq!(table.labels::<f32>().unwrap(), [1.0, 0.0, 0.0, 1.0]);
    assert_eq!(table.rows::<f32>(0..2).unwrap(), [3.0, 1.0, 3.0, 0.0]);

    let fails = |text: &str, options: ColumnOptions, expected: &str| refuse(text, &of(options), &[expected]);
    let strict = |options: ColumnOptions| ColumnOptions { bad_rows: BadRows::Error, ..options };
    fails(gaps, strict(options.clone()), "line 4, column 2 (`l`): found \"nan\", expected");
    fails("a,l,m\n1,1,0\n2,0,2\n", strict(options.clone()), "line 3, column 3 (`m`): found \"2\", expected a label 0 or 1");
    fails("a,l,m\n1,1,yes\n", strict(options.clone()), "line 2, column 3 (`m`): found \"yes\"");
    let named = |names: &[&str]| ColumnOptions { labels: labels(names), drop: vec!["id".into()], ..columns() };
    fails(
        text,
        named(&["price", "rnt"]),
        "there is no column `rnt` for the label, did you mean `rent`?; the columns are [\"id\", \"rent\"",
    );
    fails(text, named(&["price", "rent", "price"]), "column `price` is named as a label twice; name it once");
    fails(text, named(&["price", "id"]), "column `id` is both dropped and used as label or weight");
    fails(text, named(&[]), "no column is named as the label");
    let classes = ColumnOptions { label_kind: LabelKind::Classes, ..named(&["price", "rent"]) };
    fails(
        text,
        classes,
        "columns `price` and `rent` are both named as labels with classes, but only one column can have classes",
    );
    let weight = ColumnOptions { weight: Some("rent".into()), ..named(&["price", "rent"]) };
    fails(text, weight, "column `rent` is named as both label and weight");
}

#[test]
fn a_test_table_has_the_labels_of_its_training_table() {
    let (folder, train) = crate::scratch();
    let source = folder.path().join("rows.csv");
    fs::write(&source, "a,l,m\n1,2,3\n").unwrap();
    let options = of(ColumnOptions { labels: vec!["m".into(), "l".into()], ..columns() });
    import(&source, &train, &options).unwrap();
    fs::write(&source, "m,l,b,a\n4,5,6,7\n").unwrap();
    let like = |columns| {
        let dest = folder.path().join("like.safetensors");
        let options = of(ColumnOptions { like: Some(train.clone()), ..columns });
        import(&source, &dest, &options).map(|_| Table::open(&dest).unwrap()).map_err(|error| error.to_string())
    };
    let table = like(columns()).unwrap();
    assert_eq!((table.label_names(), table.labels::<f32>().unwrap()), (&["m".to_owned(), "l".to_owned()][..], &[4.0, 5.0][..]));
    let table = like(ColumnOptions { label_kind: LabelKind::Absent, ..columns() }).unwrap();
    assert_eq!((table.n_labels(), table.labels::<f32>().unwrap()), (1, &[0.0][..]));
    // A table whose labels have no names still determines their number.
    let mut writer = TableWriter::create(&train, Schema { n_labels: 2, ..Schema::named(["a"]) }).unwrap();
    writer.push(&[1.0_f32], &[2.0_f32, 3.0]).unwrap();
    writer.finish().unwrap();
    assert!(like(columns()).unwrap_err().contains("1 label columns, the table to match has 2; name as many"), "one is named");
    let two = ColumnOptions { labels: vec!["l".into(), "m".into()], ..columns() };
    assert_eq!(like(two).unwrap().labels::<f32>().unwrap(), [5.0, 4.0]);
}

/// A training file, and a test file with its columns in another order, an extra one, and values that the training file does not
/// have.
struct Pair {
    folder: tempfile::TempDir,
    train: PathBuf,
}

impl Pair {
    fn new(columns: ColumnOptions) -> Self {
        let (folder, train) = crate::scratch();
        let source = folder.path().join("train.csv");
        fs::write(&source, "id,y,a,c,b\n1,no,1,red,10\n2,yes,,blue,20\n3,no,3,red,\n").unwrap();
        let drop = vec!["id".into()];
        import(&source, &train, &of(ColumnOptions { labels: vec!["y".into()], drop, ..columns })).unwrap();
        Self { folder, train }
    }

    fn test(&self, text: &str, columns: ColumnOptions) -> Result<Table, String> {
        let (source, dest) = (self.folder.path().join("test.csv"), self.folder.path().join("test.safetensors"));
        fs::write(&source, text).unwrap();
        let options = of(ColumnOptions { like: Some(self.train.clone()), ..columns });
        import(&source, &dest, &options).map_err(|error| error.to_string())?;
        assert!(matches!(import_if_changed(&source, &dest, &options, |_| ()).unwrap(), Imported::Unchanged));
        Ok(Table::open(&dest).unwrap())
    }
}

#[test]
fn a_table_may_be_like_another() {
    let options = ColumnOptions {
        label_kind: LabelKind::Classes,
        categorical: Categorical::Auto,
        missing: Missing::Mean,
        indicators: Indicators::All,
        ..columns()
    };
    let pair = Pair::new(options);
    let table = pair.test("c,extra,b,a,y\nblue,text,,5,yes\ngreen,text,7,,no\n", columns()).unwrap();
    let train = Table::open(&pair.train).unwrap();
    assert_eq!(table.column_names(), ["a", "b", "a_missing", "b_missing"]);
    assert_eq!(
        (table.column_names(), table.dictionaries(), table.classes()),
        (train.column_names(), train.dictionaries(), train.classes())
    );
    assert_eq!(table.imputed(), Some(&[2.0, 15.0][..]));
    assert_eq!(table.rows::<f32>(0..2).unwrap(), [5.0, 15.0, 0.0, 1.0, 2.0, 7.0, 1.0, 0.0]);
    assert_eq!(table.categories(0..2).unwrap(), [2, 0]);
    assert_eq!(table.labels::<u32>().unwrap(), [1, 0]);

    let spelled = |name: &str| Class { also: vec![format!("{name}.")], ..Class::from(name) };
    let given = ColumnOptions { label_kind: LabelKind::Given(vec![spelled("no"), spelled("yes")]), ..columns() };
    let table = pair.test("c,b,a,y\nblue,1,5,yes.\n", given).unwrap();
    assert_eq!((table.labels::<u32>().unwrap(), table.classes()), (&[1][..], train.classes()));

    let check = |text, says| {
        let error = pair.test(text, columns()).map(|_| ()).expect_err("it was imported");
        assert!(error.contains(says), "{error}");
    };
    check("c,b,a,y\nblue,1,5,perhaps\n", "found \"perhaps\", expected one of the classes");
    check("c,a,y\nblue,1,yes\n", "no column `b` for the features");
    check("b,a,y\n1,1,yes\n", "no column `c` for the categorical columns");
    check("c,b,a\nblue,1,5\n", "no column `y` for the label");
    let (_folder, none) = crate::scratch();
    refuse("y,a\n1,2\n", &of(ColumnOptions { like: Some(none), ..columns() }), &["cannot open"]);
}

#[test]
fn lines_may_be_left_out_at_the_start() {
    let skip = |skip_lines| CsvOptions { skip_lines, header: Header::Auto, ..of(columns()) };
    let (_, table) = table_of("|1x3 Cross validator\n1,2\n3,4\n", &skip(1)).unwrap();
    assert_eq!((table.rows::<f32>(0..2).unwrap(), table.column_names()), (&[2.0, 4.0][..], &["column_1".to_owned()][..]));
    let (_, table) = table_of("\u{feff}# one\r\n# two, \"open\r\n\r\ny,a\r\n3,4\r\n", &skip(2)).unwrap();
    assert_eq!((table.rows::<f32>(0..1).unwrap(), table.column_names()), (&[4.0][..], &["a".to_owned()][..]));
    refuse("# one\ny,a\n1,x\n", &skip(1), &["line 3, column 2 (`a`)"]);
    refuse("# one\n", &skip(1), &["nothing after the lines to skip"]);
    refuse("# one\n", &skip(7), &["nothing after the lines to skip"]);
}

#[test]
fn only_rows_without_a_label_are_skipped() {
    let skipping = |kind| ColumnOptions { label_kind: kind, bad_rows: BadRows::SkipUnlabelled, ..columns() };
    let check = |text: &str, columns: ColumnOptions, n_skipped: u64, first: &str| {
        let (report, table) = table_of(text, &of(columns)).unwrap();
        assert_eq!((report.n_skipped, table.rows::<f32>(0..table.n_rows()).unwrap()), (n_skipped, &[1.0, 4.0][..]));
        assert!(report.first_skipped[0].to_string().contains(first), "{}", report.first_skipped[0]);
    };
    check("y,a\nlo,1\n,2\nNA,3\nhi,4\n", skipping(LabelKind::Classes), 2, "line 3, column 1 (`y`): found \"\"");
    check("y,a\n7,1\n,2\nnan,3\n8,4\n", skipping(LabelKind::Number), 2, "line 3, column 1 (`y`): found \"\"");
    let marked = ColumnOptions { missing_values: vec!["-9".into(), "?".into()], ..skipping(LabelKind::Number) };
    check("y,a\n7,1\n-9,2\n?,3\n8,4\n", marked, 2, "line 3, column 1 (`y`): found \"-9\"");

    // Whatever else is wrong with a row is an error, wherever unlabelled ones are.
    let refuse_row = |text: &str, says: &str| refuse(text, &of(skipping(LabelKind::Number)), &[says]);
    refuse_row("y,a\n,1\n7,x\n,2\n", "line 3, column 2 (`a`): found \"x\"");
    refuse_row("y,a\n,1\n,2\nlow,3\n", "line 4, column 1 (`y`): found \"low\"");
    refuse_row("y,a\n7,1\n,2,3\n", "line 3");
    refuse_row("y,a\n,1\n,2\n", "only rows that were skipped");
}
