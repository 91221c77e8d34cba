//! Forged headers: every file of `tests/attacks/` is refused, for the reason that it was made for.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use brisk_table::{Error, Table};

const REFUSALS: [(&str, &str); 53] = [
    ("bytes_appended", "something was appended"),
    ("categories_as_floats", "expected U32 of shape [2, columns]"),
    ("categories_no_columns", "expected U32 of shape [2, columns]"),
    ("categories_one_dimension", "expected U32 of shape [2, columns]"),
    ("categories_too_few", "expected U32 of shape [2, columns]"),
    ("checksums_too_few", "expected U32 of shape [2]"),
    ("columns_not_json", "metadata `columns`: is not JSON"),
    ("columns_too_few", "names 1 columns, `features` has 2"),
    ("deep_json", "invalid type: sequence"),
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
    ("features_one_dimension", "at least one column"),
    ("field_missing", "missing field `data_offsets`"),
    ("field_twice", "duplicate field `dtype`"),
    ("field_unknown", "unknown field `stride`"),
    ("fractional_shape", "not that of a safetensors file"),
    ("header_of_all_memory", "claims 18446744073709551615 bytes"),
    ("header_past_end", "ends at byte 4104, the file has"),
    ("hole", "without gap or overlap"),
    ("junk_after_json", "trailing characters"),
    ("labels_too_few", "one for each row of `features`"),
    ("many_dimensions", "too large"),
    ("metadata_key_twice", "metadata `a` is given twice"),
    ("metadata_not_strings", "expected a string"),
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
    ("seven_bytes", "the file has 7; it is truncated"),
    ("shape_overflows", "too large"),
    ("shape_overflows_behind_zero", "too large"),
    ("starts_late", "starts at byte 4 of the data"),
    ("statistics_not_numbers", "-1 is not a count"),
    ("statistics_too_few", "`mean` is not an array of 2"),
    ("tensor_twice", "tensor `labels` is given twice"),
    ("truncated_data", "it is truncated"),
    ("version_of_tomorrow", "format version 2, this version reads 1"),
    ("weights_too_few", "expected F32 of shape [2]"),
];

#[test]
fn forged_headers_are_refused() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/attacks");
    for (name, reason) in REFUSALS {
        let path = folder.join(name).with_extension("safetensors");
        // SAFETY: nobody writes to the files of the repository.
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
    let stem = |entry: fs::DirEntry| entry.path().file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let there: BTreeSet<_> = fs::read_dir(folder).unwrap().filter_map(|entry| stem(entry.unwrap())).collect();
    let listed = REFUSALS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(there, listed, "files in tests/attacks and their reasons here");
}

/// No byte of a header makes opening panic, whatever becomes of it.
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
                // Some are still headers of a table, such as with another name in it: but verifying tells.
                assert!(table.verify().is_err(), "byte {at} ^ {flip:#x} went unnoticed");
                _ = table.row_bytes(0..table.n_rows()).unwrap();
            }
        }
    }
}
