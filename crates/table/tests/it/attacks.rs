//! Forged headers and indexes: every file of `tests/attacks/` is refused, for the expected reason.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use brisk_table::{Error, ShardedTable, Table};

const REFUSALS: [(&str, &str); 64] = [
    ("bytes_appended", "something was appended"),
    ("categories_as_floats", "expected U32 of shape [2, columns]"),
    ("categories_no_columns", "expected U32 of shape [2, columns]"),
    ("categories_one_dimension", "expected U32 of shape [2, columns]"),
    ("categories_too_few", "expected U32 of shape [2, columns]"),
    ("checksums_too_few", "expected U32 of shape [2]"),
    ("classes_not_strings", "metadata `classes`: is not an array of strings"),
    ("columns_not_json", "metadata `columns`: is not JSON"),
    ("columns_too_few", "names 1 columns, `features` has 2"),
    ("deep_json", "recursion limit exceeded"),
    ("dictionaries_missing", "metadata `dictionaries`: is not an array of 1"),
    ("dictionaries_name_number", "a `name` is not a string"),
    ("dictionaries_not_json", "metadata `dictionaries`: is not JSON"),
    ("dictionaries_too_many", "is not an array of 1, one for each column of `categories`"),
    ("dictionaries_value_twice", "has \"x\" twice"),
    ("dictionaries_values_numbers", "the `values` of `a` are not an array of strings"),
    ("dtype_disagrees", "F64 of shape [2, 2] takes 32 bytes"),
    ("dtype_unknown", "dtype `Q4`"),
    ("empty_file", "the file has 0; it is truncated"),
    ("empty_header", "not that of a safetensors file"),
    ("features_no_columns", "at least one column"),
    ("features_scalar", "F32 of shape [], expected [n, …]"),
    ("field_missing", "`data_offsets` is missing or invalid"),
    ("field_twice", "`dtype` is given twice"),
    ("field_unknown", "has an unknown field `stride`"),
    ("fractional_shape", "not that of a safetensors file"),
    ("header_of_all_memory", "claims 18446744073709551615 bytes"),
    ("header_past_end", "ends at byte 4104, the file has"),
    ("hole", "without gap or overlap"),
    ("imputed_not_numbers", "metadata `imputed`: \"x\" is not a number"),
    ("imputed_too_few", "metadata `imputed`: is not an array of 2"),
    ("indicators_not_json", "metadata `indicators`: is not JSON"),
    ("indicators_too_many", "names 3 columns, `features` has 2 in all"),
    ("junk_after_json", "trailing characters"),
    ("labels_no_columns", "expected shape [2] or [2, columns], one row for each row of `features`"),
    ("labels_three_dimensions", "expected shape [2] or [2, columns], one row for each row of `features`"),
    ("labels_too_few", "one row for each row of `features`"),
    ("many_dimensions", "too large"),
    ("metadata_key_twice", "`a` is given twice"),
    ("metadata_not_strings", "`__metadata__` is not an object of strings"),
    ("metadata_twice", "`__metadata__` is given twice"),
    ("misaligned", "starts at byte"),
    ("negative_shape", "not that of a safetensors file"),
    ("no_labels", "there is no tensor `labels`"),
    ("not_json", "not that of a safetensors file"),
    ("not_utf8", "not that of a safetensors file"),
    ("overlap", "without gap or overlap"),
    ("range_backwards", "takes 16 bytes, its range 16..0"),
    ("range_disagrees", "takes 24 bytes, its range 0..16 has 16"),
    ("range_of_all_memory", "takes 16 bytes"),
    ("row_overflows", "too large"),
    ("settings_not_json", "metadata `settings`: is not JSON"),
    ("settings_not_numbers", "metadata `settings`: `offsets` is not an object of numbers"),
    ("seven_bytes", "the file has 7; it is truncated"),
    ("shape_overflows", "too large"),
    ("shape_overflows_behind_zero", "too large"),
    ("starts_late", "starts at byte 4 of the data"),
    ("statistics_not_numbers", "-1 is not a count"),
    ("statistics_too_few", "`mean` is not an array of 2"),
    ("tensor_twice", "`labels` is given twice"),
    ("truncated_data", "it is truncated"),
    ("version_of_tomorrow", "format version 2, this version reads 1"),
    ("weights_not_f32", "expected F32 of shape [2]"),
    ("weights_too_few", "expected F32 of shape [2]"),
];

#[test]
fn forged_headers_are_refused() {
    for (name, reason) in REFUSALS {
        let path = folder().join(name).with_extension("safetensors");
        // SAFETY: no process writes to the files of the repository.
        #[expect(unsafe_code, reason = "maps refuse what copies refuse")]
        let mapped = unsafe { Table::open_mapped(&path) };
        for opened in [Table::open(&path), mapped] {
            let error = opened.map(|table| table.n_rows()).expect_err(name);
            assert!(matches!(error, Error::Format { .. }), "{name}: {error}");
            let message = error.to_string();
            assert!(message.contains(reason), "{name}: `{message}` does not say `{reason}`");
            assert!(message.contains(name), "{name}: `{message}` does not name the file");
        }
    }
    check_listed(&["safetensors"], REFUSALS.iter().map(|(name, _)| format!("{name}.safetensors")));
}

const INDEX_REFUSALS: [(&str, &str); 24] = [
    ("absolute_path", "\"/etc/passwd\", expected the name of a file in the folder of the index"),
    ("bytes_disagree", "`metadata.total_size` is 1, its shards have 8264"),
    ("deep", "recursion limit exceeded"),
    ("empty_file", "it is not the JSON of an index"),
    ("empty_name", "shard 0 is \"\""),
    ("file_twice", "shard 1 is table-0.safetensors, which an earlier shard is already"),
    ("key_twice", "`rows` is given twice"),
    ("name_with_nul", "expected the name of a file"),
    ("no_shards", "`shards` is not a list of at least one shard"),
    ("not_an_object", "`metadata.brisk_shards` is null"),
    ("not_json", "it is not the JSON of an index"),
    ("of_a_model", "`metadata.brisk_shards` is null"),
    ("outside_the_folder", "\"../table.safetensors\""),
    ("parent_folder", "shard 0 is \"..\""),
    ("rows_disagree", "`metadata.total_rows` is 3, its shards have 2"),
    ("rows_fractional", "`shards[0].rows` is not a count"),
    ("rows_missing", "`shards[0].rows` is not a count"),
    ("rows_negative", "`shards[0].rows` is not a count"),
    ("rows_overflow", "its shards have 18446744073709551616"),
    ("shards_not_a_list", "`shards` is not a list of at least one shard"),
    ("sum_too_wide", "`shards[0].header_crc32` is more than 32 bits"),
    ("total_missing", "`metadata.total_size` is not a count"),
    ("version_of_tomorrow", "`metadata.brisk_shards` is \"2\", this version reads \"1\""),
    ("windows_path", "expected the name of a file"),
];

#[test]
fn forged_indexes_are_refused() {
    for (name, reason) in INDEX_REFUSALS {
        let path = folder().join(format!("{name}.index.json"));
        let error = ShardedTable::open(&path).map(|table| table.n_rows()).expect_err(name);
        assert!(matches!(error, Error::Index { .. }), "{name}: {error}");
        let message = error.to_string();
        assert!(message.contains(reason), "{name}: `{message}` does not say `{reason}`");
        assert!(message.contains(name), "{name}: `{message}` does not name the file");
    }
    check_listed(&["json"], INDEX_REFUSALS.iter().map(|(name, _)| format!("{name}.index.json")));
}

/// An index that is too long is refused because of its length.
#[test]
fn an_index_without_end_is_not_read() {
    let (_folder, path) = crate::scratch();
    let path = path.with_file_name("huge.index.json");
    fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
    let message = ShardedTable::open(&path).unwrap_err().to_string();
    assert!(message.contains("it is 1099511627776 bytes long, at most 100000000 are read"), "{message}");
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/attacks")
}

/// Checks that the files of `tests/attacks` with those extensions are the listed ones, so that none is left untested.
pub(crate) fn check_listed(endings: &[&str], listed: impl Iterator<Item = impl Into<String>>) {
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let has_ending =
        |name: &String| endings.iter().any(|ending| name.rsplit_once('.').is_some_and(|(_, found)| found == *ending));
    let there: BTreeSet<_> = fs::read_dir(folder()).unwrap().map(name).filter(has_ending).collect();
    assert_eq!(there, listed.map(Into::into).collect(), "files in tests/attacks and their reasons in the tests");
}

/// A damaged byte of a header never makes opening panic.
#[test]
fn any_byte_of_a_header_may_be_wrong() {
    let (_folder, path) = crate::scratch();
    crate::table::write_ramp(&path, 3);
    let good = fs::read(&path).unwrap();
    let header_len = good.iter().position(|&byte| byte == b' ').unwrap();
    for at in 0..header_len {
        for flip in [1, 0x10, 0x80] {
            let mut bad = good.clone();
            bad[at] ^= flip;
            fs::write(&path, &bad).unwrap();
            if let Ok(table) = Table::open(&path) {
                // Some are still valid headers, such as with another name in it, but `verify` detects the damage.
                assert!(table.verify().is_err(), "byte {at} ^ {flip:#x} went unnoticed");
                _ = table.row_bytes(0..table.n_rows()).unwrap();
            }
        }
    }
}
