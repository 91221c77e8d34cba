//! Malicious files: sizes that overflow, headers that request all memory, names with control characters.

use std::io::Write as _;

use super::{Seed, rows};

pub(super) fn seeds() -> Vec<Seed> {
    let mut seeds = tables();
    seeds.extend(texts());
    seeds.extend(packed());
    seeds.into_iter().map(|(name, bytes)| Seed { name: name.to_owned(), bytes }).collect()
}

/// A safetensors file with this header.
fn with_header(header: &str, n_data: usize) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.bytes());
    bytes.resize(bytes.len() + n_data, 0);
    bytes
}

fn tables() -> Vec<(&'static str, Vec<u8>)> {
    // A message that lists all names has megabytes.
    let names = (0..300_000).map(|i| format!(r#""tensor number {i}":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}"#));
    let many = format!("{{{}}}", names.collect::<Vec<_>>().join(","));
    let long_name = "n".repeat(1 << 20);
    let table = |metadata: &str, tensors: &str, n_data: usize| {
        with_header(&format!("{{\"__metadata__\":{{{metadata}}},{tensors}}}"), n_data)
    };
    const TENSORS: &str = r#""features":{"dtype":"F32","shape":[20,2],"data_offsets":[0,160]},"labels":{"dtype":"F32","shape":[20],"data_offsets":[160,240]}"#;
    vec![
        ("many_names.safetensors", with_header(&many, 0)),
        (
            "long_name.safetensors",
            with_header(&format!(r#"{{"{long_name}":{{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}}}"#), 4),
        ),
        ("deep.safetensors", with_header(&"[".repeat(1 << 20), 0)),
        ("deep_objects.safetensors", with_header(&r#"{"a":"#.repeat(200_000), 0)),
        ("length_of_all_memory.safetensors", vec![0xff; 64]),
        ("length_of_1_tib.safetensors", [&(1_u64 << 40).to_le_bytes()[..], b"{}"].concat()),
        (
            "shape_of_all_memory.safetensors",
            with_header(
                r#"{"features":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]},"labels":{"dtype":"F32","shape":[4294967296],"data_offsets":[8,16]}}"#,
                16,
            ),
        ),
        (
            "rows_of_nothing.safetensors",
            with_header(
                r#"{"features":{"dtype":"F32","shape":[9223372036854775807,0],"data_offsets":[0,0]},"labels":{"dtype":"F32","shape":[9223372036854775807],"data_offsets":[0,0]}}"#,
                0,
            ),
        ),
        (
            "names_with_escapes.safetensors",
            table(r#""columns":"[\"\\u001b[31mred\",\"\\u0007\"]","label":"\u001b]0;title\u0007""#, TENSORS, 240),
        ),
        (
            "name_of_a_tensor_with_escapes.safetensors",
            with_header(r#"{"\u001b[31m":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#, 4),
        ),
        ("columns_of_a_megabyte.safetensors", table(&format!(r#""columns":"[\"{long_name}\",\"b\"]""#), TENSORS, 240)),
        ("header_of_1_mib_of_blanks.safetensors", with_header(&format!("{{{TENSORS}}}{}", " ".repeat(1 << 20)), 240)),
        ("all_labels_alike.safetensors", with_header(&format!("{{{TENSORS}}}"), 240)),
        ("values_not_finite.safetensors", [with_header(&format!("{{{TENSORS}}}"), 0), [0, 0, 0xc0, 0x7f].repeat(60)].concat()),
        ("empty.safetensors", Vec::new()),
        ("zeros.safetensors", vec![0; 4096]),
    ]
}

fn texts() -> Vec<(&'static str, Vec<u8>)> {
    let wide: Vec<String> = (0..200_000).map(|i| i.to_string()).collect();
    let wide = wide.join(",");
    vec![
        ("empty.csv", Vec::new()),
        ("only_header.csv", b"label,a,b\n".to_vec()),
        ("one_row.csv", b"label,a\n1,2\n".to_vec()),
        ("zeros.csv", vec![0; 4096]),
        ("wide.csv", format!("{wide}\n{wide}\n").into_bytes()),
        ("one_cell_of_16_mib.csv", [b"label,a\n0,".to_vec(), vec![b'1'; 16 << 20], b"\n1,2\n".to_vec()].concat()),
        ("open_quote_of_16_mib.csv", [b"label,a\n0,\"".to_vec(), vec![b'x'; 16 << 20]].concat()),
        ("only_line_breaks.csv", vec![b'\n'; 1 << 20]),
        ("only_delimiters.csv", vec![b','; 1 << 20]),
        ("names_with_escapes.csv", b"label,\x1b[31mred\x1b[0m,b\n0,x,2\n1,2,3\n".to_vec()),
        ("cells_with_escapes.csv", b"label,a\n0,\x1b]0;title\x07\n1,2\n".to_vec()),
        ("classes_with_escapes.csv", b"label,a\n\x1b[2J,1\nb,2\nc,3\n".to_vec()),
        ("name_of_1_mib.csv", [b"label,".to_vec(), vec![b'n'; 1 << 20], b"\n0,x\n".to_vec()].concat()),
        ("names_alike.csv", b"a,a,a\n1,2,3\n".to_vec()),
        ("latin1.csv", b"label,gr\xf6\xdfe\n0,1\n1,2\n".to_vec()),
        ("utf16.csv", "label,a\n0,1\n".encode_utf16().flat_map(u16::to_le_bytes).collect()),
        ("ragged.csv", b"label,a,b\n0,1,2\n1,2\n0,1,2,3\n".to_vec()),
        (
            "numbers_at_the_limits.csv",
            b"label,a\n0,1e308\n1,-1e-400\n0,99999999999999999999999999999999999999999\n1,0x10\n".to_vec(),
        ),
        ("indices_of_all_memory.svm", b"1 1:1 4294967295:2\n0 18446744073709551615:1\n".to_vec()),
        ("last_index_large.svm", b"1 1:1\n0 2000000000:1\n".to_vec()),
    ]
}

fn packed() -> Vec<(&'static str, Vec<u8>)> {
    let gz = |bytes: &[u8]| {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        packed.write_all(bytes).and_then(|()| packed.finish()).expect("a Vec takes any bytes")
    };
    let text = rows(50, 3).into_bytes();
    let whole = gz(&text);
    vec![
        ("trailing_zeros.csv.gz", [whole.clone(), vec![0; 512]].concat()),
        ("trailing_garbage.csv.gz", [whole.clone(), b"garbage".to_vec()].concat()),
        ("cut_off.csv.gz", whole[..whole.len() / 2].to_vec()),
        ("without_length.csv.gz", whole[..whole.len() - 4].to_vec()),
        ("only_the_magic.csv.gz", vec![0x1f, 0x8b]),
        ("packed_twice.csv.gz", gz(&whole)),
        ("one_line_of_zeros.csv.gz", gz(&vec![b'0'; 64 << 20])),
        ("line_breaks.csv.gz", gz(&vec![b'\n'; 64 << 20])),
    ]
}
