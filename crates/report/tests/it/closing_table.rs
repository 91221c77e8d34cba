use brisk_report::{closing_table, mebibytes, rows_per_second, seconds, thousands};

#[track_caller]
fn check(found: String, expected: &str) {
    assert_eq!(found, expected, "as people read it");
}

#[test]
fn whole_numbers_have_commas() {
    check(thousands(0), "0");
    check(thousands(999), "999");
    check(thousands(1000), "1,000");
    check(thousands(10_500_000), "10,500,000");
    check(thousands(u64::MAX), "18,446,744,073,709,551,615");
}

#[test]
fn rates_are_rounded() {
    check(rows_per_second(205_311.7), "205,312");
    check(rows_per_second(9.94), "9.9");
    check(rows_per_second(9.96), "10");
    check(rows_per_second(0.0), "0.0");
    check(rows_per_second(f64::NAN), "-");
    check(rows_per_second(f64::INFINITY), "-");
}

#[test]
fn bytes_are_mebibytes() {
    check(mebibytes(0), "0.0 MiB");
    check(mebibytes(13_107_200), "12.5 MiB");
    check(mebibytes(5 << 30), "5,120.0 MiB");
    check(mebibytes(u64::MAX), "17,592,186,044,416.0 MiB");
}

#[test]
fn durations_have_the_unit_that_suits() {
    check(seconds(0.0), "0 ms");
    check(seconds(0.25), "250 ms");
    check(seconds(0.9996), "1.0 s");
    check(seconds(12.34), "12.3 s");
    check(seconds(59.96), "1 min 00 s");
    check(seconds(204.4), "3 min 24 s");
    check(seconds(3599.6), "1 h 00 min");
    check(seconds(7_500.0), "2 h 05 min");
    check(seconds(f64::INFINITY), "-");
}

#[test]
fn columns_are_aligned() {
    let table = closing_table(&[("device", "cpu".into()), ("a", "1".into()), ("größe", String::new())]);
    check(table, "device  cpu\na       1\ngröße\n");
    check(closing_table(&[]), "");
}
